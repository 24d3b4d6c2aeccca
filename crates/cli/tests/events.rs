//! `amplifier events`, `completions` and `man`: what is said about hooks and commands.

mod reference;

use std::process::Command;

use amplifier_core::catalog;
use serde_json::{Value, json};

/// Runs it; gives its exit code, what it printed, and what it said about errors.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_amplifier")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn fine(arguments: &[&str]) -> String {
    let (code, out, error) = run(arguments);
    assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
    out
}

/// The objects that `--json` prints, one per line.
fn fine_lines(arguments: &[&str]) -> Vec<Value> {
    fine(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn all_events_are_listed_with_when_they_happen() {
    let list = fine(&["events"]);
    for spec in catalog() {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(spec.name));
        assert!(line.is_some_and(|line| line.ends_with(spec.when.trim())), "{}: {list}", spec.name);
    }
    assert!(list.starts_with("Session\n  session:start               * A session begins.\n"), "{list}");
}

#[test]
fn an_event_is_explained() {
    let expected = "\
tool:pre: A tool is about to run.

Data
  tool_name            string          The tool that is called.
  tool_input           object          Its parameters, which `amplifier tools NAME` lists.
  tool_call_id         string          Optional. Id of the call, which pairs it with its `tool:post`.
  tool_definition      string          Optional. The digest of the tool's description and input schema, for a tool of an MCP server.
  session_id           string          The session of the event.
  timestamp            string          The time of the event: UTC, RFC 3339.

Actions
  deny                 the tool does not run; the model reads `Denied by hook <name>: <reason>` as its result
  modify               `tool_input`
  inject_context       after this tool's result
  ask_user             requests approval; without approval, the operation is denied
";
    assert_eq!(fine(&["events", "tool:pre"]), expected);
}

#[test]
fn every_name_of_an_event_leads_to_it() {
    let page = fine(&["events", "error:tool"]);
    assert!(page.contains("Also called tool:error.\n"), "{page}");
    assert_eq!(fine(&["events", "tool:error"]), page);
    assert_eq!(fine(&["events", "context:pre-compact"]), fine(&["events", "context:pre_compact"]));
}

#[test]
fn programs_get_the_schema_and_what_answers_mean() {
    let event: Value = serde_json::from_str(&fine(&["events", "execution:end", "--json"])).unwrap();
    let expected = json!({
        "name": "execution:complete",
        "aliases": ["execution:end"],
        "when": "The orchestrator has finished a turn.",
        "answers": {
            "deny": "no effect: it is recorded",
            "modify": "no effect",
            "inject_context": "next call, if there is one",
            "ask_user": false,
        },
        "schema": {
            "title": "execution:complete",
            "description": "The orchestrator has finished a turn.",
            "type": "object",
            "properties": {
                "session_id": { "type": "string", "description": "The session of the event." },
                "timestamp": { "type": "string", "format": "date-time", "description": "The time of the event: UTC, RFC 3339." },
                "status": { "type": "string", "description": "Status: `success`, `error` or `interrupted`." },
                "response": { "type": "string", "description": "The response of the turn." },
            },
            "required": ["status"],
            "additionalProperties": true,
        },
    });
    assert_eq!(event, expected);

    let all = fine_lines(&["events", "--json"]);
    assert_eq!(all.iter().map(|event| event["name"].as_str().unwrap()).collect::<Vec<_>>(), {
        catalog().iter().map(|spec| spec.name).collect::<Vec<_>>()
    });
}

#[test]
fn a_name_that_is_none_leads_to_the_nearest() {
    for (written, nearest) in
        [("tool:per", "tool:pre"), ("Tool:post", "tool:post"), ("sesion:start", "session:start"), ("tool", "tool:pre")]
    {
        let (code, out, error) = run(&["events", written]);
        assert_ne!(code, 0);
        assert_eq!(out, "");
        let told = format!("unknown event `{written}`; did you mean `{nearest}`? See `amplifier events`");
        assert!(error.contains(&told), "{error}");
    }
}

#[test]
fn modules_are_listed_and_one_is_explained_with_its_options() {
    let list = fine(&["hooks", "modules"]);
    for module in amplifier_modules::MODULES {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(module.name));
        assert!(line.is_some_and(|line| line.ends_with(module.summary)), "{}: {list}", module.name);
    }
    let page = fine(&["hooks", "modules", "hooks-bash-guard"]);
    for line in [
        "  tools          list of string      default: [\"Bash\"]\n",
        "  timeout        number              default: 300\n",
    ] {
        assert!(page.contains(line), "{page}");
    }
    assert!(page.contains("allow, ask or deny  default: \"ask\"\n"), "{page}");
    let page = fine(&["hooks", "modules", "hooks-approval"]);
    assert!(page.lines().any(|line| line.starts_with("  rules[].tool ") && line.ends_with("  required")), "{page}");
}

#[test]
fn programs_get_the_options_of_modules_as_json() {
    let lines = fine(&["hooks", "modules", "--json"]);
    let all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = all.iter().map(|module| module["name"].as_str().unwrap()).collect();
    assert_eq!(names, amplifier_modules::MODULES.iter().map(|module| module.name).collect::<Vec<_>>());
    let one: Value = serde_json::from_str(&fine(&["hooks", "modules", "hooks-todo-display", "--json"])).unwrap();
    assert!(all.contains(&one));
    let option = |name: &str| {
        let options = one["options"].as_array().unwrap().iter();
        let mut option = options.clone().find(|option| option["name"] == name).unwrap().clone();
        assert!(!option.as_object_mut().unwrap().remove("meaning").unwrap().as_str().unwrap().is_empty());
        option
    };
    assert_eq!(option("most"), json!({ "name": "most", "type": "integer", "default": 30, "required": false }));
    assert_eq!(
        option("tools"),
        json!({ "name": "tools", "type": "list of string", "default": ["Todo"], "required": false })
    );
}

#[test]
fn an_unknown_module_leads_to_the_nearest() {
    let (code, out, error) = run(&["hooks", "modules", "hooks-bash-gaurd"]);
    assert_eq!((code, out.as_str()), (run(&["events", "tool:per"]).0, ""));
    assert!(error.contains("`hooks-bash-gaurd`") && error.contains("did you mean `hooks-bash-guard`?"), "{error}");
    let (code, _, error) = run(&["hooks", "modules", "nonsense"]);
    assert_ne!(code, 0);
    assert!(error.contains("`nonsense`") && error.contains("`amplifier hooks modules`"), "{error}");
}

#[test]
fn shells_are_told_how_to_complete() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fine(&["completions", shell]);
        assert!(script.contains("amplifier") && script.contains("verify"), "{shell}");
        assert!(script.contains("hooks-bash-guard") || !["bash", "zsh"].contains(&shell), "{shell}");
    }
    assert_eq!(run(&["completions", "nonsense"]).0, 2);
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let page = fine(&["man"]);
    assert!(page.contains(".TH amplifier 1"), "{page}");
    let page = fine(&["man", "audit", "verify"]);
    assert!(page.contains(".TH amplifier-audit-verify 1") && page.contains("PUBLIC_KEY"), "{page}");
    let (code, _, error) = run(&["man", "audit", "nonsense"]);
    assert_ne!(code, 0);
    assert!(error.contains("unknown command `audit nonsense`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    fine(&["man", "--output", &folder.path().join("man1").display().to_string()]);
    let names: Vec<String> = std::fs::read_dir(folder.path().join("man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["amplifier.1", "amplifier-audit.1", "amplifier-audit-show.1", "amplifier-events.1"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
}

#[test]
fn a_tool_is_explained_with_the_fields_of_its_input_and_its_result() {
    let page = fine(&["tools", "Edit"]);
    let expected = "\
Edit: Replaces a text in a file by another. Read the file first.

Input (`tool_input`)
  file_path                string          The file, absolute or relative to the workspace.
  old_string               string          ";
    assert!(page.starts_with(expected), "{page}");
    for field in [
        "replace_all              boolean         Optional. ",
        "\nResult (`tool_result` at `tool:post`)\n",
        "  replacements             integer         The number",
    ] {
        assert!(page.contains(field), "{page}");
    }
    let list = fine(&["tools"]);
    for name in ["Read", "Write", "Edit", "MultiEdit", "Bash", "Glob", "Grep", "Todo", "Task"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{list}");
    }
    let tool: Value = serde_json::from_str(&fine(&["tools", "Write", "--json"])).unwrap();
    assert_eq!(tool["result_schema"]["required"], json!(["output", "file_path"]));
}

#[test]
fn an_unknown_tool_is_refused_with_those_there_are() {
    let (code, out, error) = run(&["tools", "bash"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("amplifier: unknown tool `bash`; expected one of `Read`, `Write`, "), "{error}");
}
