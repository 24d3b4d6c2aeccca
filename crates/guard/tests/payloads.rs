//! Payloads become our events, with our names of tools and fields.

use std::slice::from_ref;

use amplifier_guard::{Client, EventKind, parse};
use amplifier_modules::tool_words;
use serde_json::{Value, json};

use crate::samples;

fn operations(client: Client, event: &str, payload: &Value) -> Vec<(String, Value)> {
    let event = parse(client, Some(event), payload.to_string().as_bytes()).unwrap();
    let (EventKind::ToolPre(tool) | EventKind::ToolPost { tool, .. }) = event.kind else { panic!("{event:?}") };
    tool.operations.into_iter().map(|one| (one.tool, Value::Object(one.input))).collect()
}

fn pre(client: Client, tool: &str, input: &Value) -> Vec<(String, Value)> {
    let (event, payload) = match client {
        Client::Claude => {
            ("PreToolUse", json!({ "session_id": "s", "prompt_id": "p", "tool_name": tool, "tool_input": input }))
        }
        Client::Codex => {
            ("PreToolUse", json!({ "session_id": "s", "turn_id": "t", "tool_name": tool, "tool_input": input }))
        }
        Client::Gemini => ("BeforeTool", json!({ "session_id": "s", "tool_name": tool, "tool_input": input })),
        Client::Copilot => ("preToolUse", json!({ "sessionId": "s", "toolName": tool, "toolArgs": input })),
        Client::Opencode => (
            "tool.execute.before",
            json!({ "input": { "tool": tool, "sessionID": "s", "callID": "c" }, "output": { "args": input } }),
        ),
        Client::Cursor => (
            "preToolUse",
            json!({ "conversation_id": "s", "cursor_version": "3", "tool_name": tool, "tool_input": input }),
        ),
    };
    operations(client, event, &payload)
}

#[test]
fn every_captured_payload_parses_and_belongs_to_its_client() {
    let all = samples::all();
    assert!(all.len() > 150, "{}", all.len());
    for sample in all {
        let event = sample.parse();
        assert_eq!(event.client, sample.client, "{}", sample.event);
        assert!(!event.session.is_empty() || event.kind == EventKind::Other, "{}/{}", sample.client, sample.event);
        let is_gate =
            ["PreToolUse", "preToolUse", "BeforeTool", "tool.execute.before"].contains(&sample.event.as_str());
        assert_eq!(matches!(event.kind, EventKind::ToolPre(_)), is_gate, "{}/{}", sample.client, sample.event);
    }
}

#[test]
fn the_same_action_has_the_same_words_in_every_client() {
    let bash = ("Bash".to_owned(), json!({ "command": "ls" }));
    let names = ["Bash", "Bash", "run_shell_command", "bash", "bash", "Shell"];
    for (client, name) in Client::ALL.into_iter().zip(names) {
        assert_eq!(pre(client, name, &json!({ "command": "ls" })), from_ref(&bash), "{client}");
    }
    let write = ("Write".to_owned(), json!({ "file_path": "/r/a", "content": "x" }));
    let ours = json!({ "file_path": "/r/a", "content": "x" });
    for (client, name, input) in [
        (Client::Claude, "Write", ours.clone()),
        (Client::Gemini, "write_file", ours.clone()),
        (Client::Copilot, "create", json!({ "path": "/r/a", "file_text": "x" })),
        (Client::Opencode, "write", json!({ "filePath": "/r/a", "content": "x" })),
        (Client::Cursor, "Write", ours),
    ] {
        assert_eq!(pre(client, name, &input), from_ref(&write), "{client}");
    }
    let patch = json!({ "command": "*** Begin Patch\n*** Add File: /r/a\n+x\n*** End Patch\n" });
    let written = ("Write".to_owned(), json!({ "file_path": "/r/a", "content": "x\n" }));
    assert_eq!(pre(Client::Codex, "apply_patch", &patch), from_ref(&written));
    // Copilot sends the patch itself.
    assert_eq!(pre(Client::Copilot, "apply_patch", &patch["command"]), [written]);
    let edit = ("Edit".to_owned(), json!({ "file_path": "/r/a", "old_string": "x", "new_string": "y" }));
    assert_eq!(
        pre(Client::Copilot, "edit", &json!({ "path": "/r/a", "old_str": "x", "new_str": "y" })),
        from_ref(&edit)
    );
    assert_eq!(
        pre(Client::Opencode, "edit", &json!({ "filePath": "/r/a", "oldString": "x", "newString": "y" })),
        [edit]
    );
}

#[test]
fn tools_of_mcp_servers_have_one_form_of_name() {
    let echo = [("mcp__srv__echo".to_owned(), json!({ "text": "hello" }))];
    for (client, name) in [
        (Client::Claude, "mcp__srv__echo"),
        (Client::Codex, "mcp__srv__echo"),
        (Client::Gemini, "mcp_srv_echo"),
        (Client::Copilot, "srv-echo"),
        (Client::Opencode, "srv_echo"),
    ] {
        assert_eq!(pre(client, name, &json!({ "text": "hello" })), echo, "{client}");
    }
    // The payload of Gemini names the server, which may contain the separator.
    let payload = json!({
        "session_id": "s", "hook_event_name": "BeforeTool", "tool_name": "mcp_my_srv_echo", "tool_input": { "text": "hello" },
        "mcp_context": { "server_name": "my_srv", "tool_name": "echo" },
    });
    assert_eq!(operations(Client::Gemini, "BeforeTool", &payload)[0].0, "mcp__my_srv__echo");
}

#[test]
fn an_unknown_tool_keeps_its_name_and_input() {
    let input = json!({ "path": "a", "anything": [1, { "deep": null }] });
    for client in Client::ALL {
        assert_eq!(pre(client, "Teleport", &input), [("Teleport".to_owned(), input.clone())], "{client}");
    }
}

#[test]
fn an_unknown_event_that_may_decide_about_a_tool_is_a_gate() {
    let payload = json!({ "session_id": "s", "prompt_id": "p", "hook_event_name": "BeforeAnything", "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let event = parse(Client::Claude, None, payload.to_string().as_bytes()).unwrap();
    assert!(event.is_gate());
    let payload = json!({ "hook_event_name": "SomethingElse" });
    let event = parse(Client::Claude, None, payload.to_string().as_bytes()).unwrap();
    assert_eq!(event.kind, EventKind::Other);
}

#[test]
fn fields_translate_to_ours_and_back() {
    for row in tool_words::TOOLS {
        let theirs = row.fields.iter().map(|(theirs, _)| ((*theirs).to_owned(), json!(1))).collect();
        let ours = tool_words::to_ours(row.vocabulary, row.theirs, &theirs).unwrap();
        assert_eq!(tool_words::to_theirs(row.vocabulary, row.theirs, &ours), theirs, "{row:?}");
    }
}

#[test]
fn unusable_payloads_are_errors_that_say_why() {
    let deep = format!("{{\"session_id\":\"s\",\"tool_input\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let both =
        r#"{"sessionId":"s","toolName":"create","toolArgs":{"path":"/tmp/a","file_path":"/etc/b","file_text":"x"}}"#;
    for (client, event, payload, expected) in [
        (Client::Claude, "PreToolUse", &b""[..], "not a JSON object"),
        (Client::Claude, "PreToolUse", b"[1]", "not a JSON object"),
        (Client::Claude, "PreToolUse", b"{\"session_id\":\"\xff\"}", "not a JSON object"),
        (Client::Claude, "PreToolUse", b"{\"session_id\":\"s\"}\0", "not a JSON object"),
        (Client::Claude, "PreToolUse", deep.as_bytes(), "not a JSON object"),
        (Client::Claude, "PreToolUse", b"{}", "no usable field `tool_name`"),
        (Client::Claude, "PreToolUse", br#"{"tool_name":"Bash","tool_input":{}}"#, "no usable field `session_id`"),
        (Client::Claude, "PreToolUse", br#"{"session_id":"s","tool_name":"Bash","tool_input":[]}"#, "`tool_input`"),
        (Client::Claude, "PreToolUse", br#"{"session_id":"s","tool_name":7,"tool_input":{}}"#, "`tool_name`"),
        (Client::Claude, "UserPromptSubmit", br#"{"session_id":"s"}"#, "no usable field `prompt`"),
        (Client::Copilot, "preToolUse", br#"{"sessionId":"s","toolName":"bash","toolArgs":"rm"}"#, "`toolArgs`"),
        (Client::Copilot, "preToolUse", both.as_bytes(), "both `path` and `file_path`"),
        (
            Client::Codex,
            "PreToolUse",
            br#"{"session_id":"s","turn_id":"t","tool_name":"apply_patch","tool_input":{"command":"rm"}}"#,
            "line 1 of the patch",
        ),
        (Client::Opencode, "tool.execute.before", br#"{"tool":"bash"}"#, "`input`"),
    ] {
        let error = parse(client, Some(event), payload).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
