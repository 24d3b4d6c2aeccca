//! The answers that a client can express, found by asking its adapter.

use serde::Serialize;
use serde_json::{Value, json};

use crate::adapter;
use crate::answer::{Change, GuardAnswer};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, Dialect, EventKind, ToolOperation};

/// An answer at an event, as a client expresses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expression {
    /// The event.
    pub event: &'static str,
    /// The answer: `deny`, `modify`, `inject_context` or `user_message`.
    pub answer: &'static str,
    /// The effect: `exact`, or the effect instead.
    pub effect: String,
}

/// Returns the effect of each answer in a client.
pub fn explain(client: Client) -> Vec<Expression> {
    let events = [
        ("session:start", EventKind::SessionStart { source: "startup".to_owned() }),
        ("prompt:submit", EventKind::Prompt { text: "prompt".to_owned() }),
        ("tool:pre", EventKind::ToolPre(command())),
        (
            "tool:post",
            EventKind::ToolPost { tool: command(), result: json!({ "stdout": "a" }), success: true, milliseconds: 0 },
        ),
    ];
    let mut found = Vec::new();
    for (name, kind) in events {
        let change = match &kind {
            EventKind::Prompt { .. } => Some(Change::Prompt("another".to_owned())),
            EventKind::ToolPre(_) => Some(Change::Input(json!({ "command": "another" }))),
            EventKind::ToolPost { .. } => Some(Change::Result(json!({ "stdout": "b" }))),
            _ => None,
        };
        let event = event(client, kind);
        let mut add = |answer: &'static str, given: GuardAnswer| {
            let reply = adapter::answer(&event, &given);
            let effect = match reply.losses.first() {
                Some(loss) => loss.instead,
                None if !reply.deferred.is_empty() => "after the tool has run",
                None => "exact",
            };
            found.push(Expression { event: name, answer, effect: effect.to_owned() });
        };
        add("deny", GuardAnswer::deny("no"));
        if change.is_some() {
            add("modify", GuardAnswer { change, ..GuardAnswer::default() });
        }
        add("inject_context", GuardAnswer { context: vec!["text".to_owned()], ..GuardAnswer::default() });
        add("user_message", GuardAnswer { messages: vec!["text".to_owned()], ..GuardAnswer::default() });
    }
    found
}

fn command() -> ClientTool {
    let input = json!({ "command": "ls" });
    let ours = input.as_object().cloned().unwrap_or_default();
    let operations = vec![ToolOperation { tool: "Bash".to_owned(), input: ours }];
    ClientTool { name: "Bash".to_owned(), input, operations }
}

fn event(client: Client, kind: EventKind) -> ClientEvent {
    ClientEvent {
        client,
        name: String::new(),
        session: String::new(),
        agent: None,
        parent: None,
        call: None,
        folder: None,
        model: None,
        version: None,
        dialect: Dialect::Own,
        kind,
    }
}

/// Returns the payload of the canary for a client: a tool call that is always denied.
pub fn canary_payload(client: Client, tool: &str, nonce: &str, folder: &str) -> Value {
    let session = format!("canary-{nonce}");
    let input = json!({ "nonce": nonce });
    match client {
        Client::Claude => json!({
            "session_id": session, "prompt_id": nonce, "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": input, "tool_use_id": nonce,
        }),
        Client::Codex => json!({
            "session_id": session, "turn_id": nonce, "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": input, "tool_use_id": nonce,
        }),
        Client::Gemini => json!({
            "session_id": session, "cwd": folder, "hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": input,
        }),
        Client::Copilot => json!({ "sessionId": session, "cwd": folder, "toolName": tool, "toolArgs": input }),
        Client::Opencode => json!({
            "cwd": folder, "input": { "tool": tool, "sessionID": session, "callID": nonce }, "output": { "args": input },
        }),
        Client::Cursor => json!({
            "conversation_id": session, "cursor_version": "", "cwd": folder, "hook_event_name": "preToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": nonce,
        }),
    }
}
