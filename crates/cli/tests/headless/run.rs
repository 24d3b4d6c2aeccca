//! One task: what comes out, and how it ends.

use serde_json::{Value, json};

use crate::common::{Place, Ran, Running, with_input};

/// Looks first, then says what it saw.
fn bash(command: &str) -> Value {
    json!([
        { "text": "Let me try.", "tools": [{ "name": "Bash", "input": { "command": command } }] },
        { "when": "Denied by hook", "text": "Then I leave it." },
        { "text": "Done." }
    ])
}

#[test]
fn the_answer_alone_goes_to_standard_output() {
    let place = Place::with(json!([{ "text": "Good *morning*." }]));
    assert_eq!(place.run(&["Greet me"]).fine(), "Good *morning*.\n");
    assert_eq!(place.conversation(), [said("user", "Greet me"), said("assistant", "Good *morning*.")]);
    place.check_sealed(1);
}

#[test]
fn what_fails_is_told_on_standard_error() {
    let place = Place::with(json!([{ "error": "rejected" }]));
    let Ran { code, out, error } = place.run(&["Greet me"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("Failed: ") && error.contains("as the script says"), "{error}");
    place.check_sealed(1);
}

#[test]
fn an_answer_that_breaks_off_ends_its_line() {
    let place = Place::with(json!([{ "text": "It is", "error": "truncated" }, { "error": "rejected" }]));
    let Ran { code, out, error } = place.run(&["What is it?"]);
    assert_eq!((code, out.as_str()), (1, "It is\n"), "{error}");
}

#[test]
fn every_event_is_a_line_of_json_and_the_result_is_the_last() {
    let place = Place::with(bash("echo hello"));
    place.rules(json!({ "confirm:Run `echo *`?": "allow" }));
    let Ran { code, out, error } = place.run(&["--json", "Say hello"]);
    let allowed = "✓ allowed by the approval rule `confirm:Run `echo *`?`: Run `echo hello`?\n";
    assert_eq!((code, error.as_str()), (0, format!("{allowed}● Bash  echo hello\n  └ hello\n").as_str()));
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();

    let (id, tokens, duration) = (&result["session_id"], &result["tokens"], &result["duration_ms"]);
    let expected = json!({
        "result": "success", "text": "Done.", "session_id": id, "tokens": tokens, "duration_ms": duration, "denials": 0,
    });
    assert_eq!(*result, expected);
    assert!(tokens.as_u64() > Some(0) && duration.as_u64() > Some(0), "{result}");
    let mut last = "";
    for event in events {
        assert_eq!(event["data"]["session_id"], *id, "{event}");
        let timestamp = event["data"]["timestamp"].as_str().unwrap();
        assert!(timestamp >= last && timestamp.ends_with('Z'), "{event}");
        last = timestamp;
    }
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let told: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("content_block:")).collect();
    let expected = [
        "session:start",
        "prompt:submit",
        "execution:start",
        "provider:request",
        "provider:response",
        "decision:tool_resolution",
        "tool:pre",
        "approval:granted",
        "tool:post",
        "provider:request",
        "provider:response",
        "execution:complete",
        "orchestrator:complete",
        "prompt:complete",
        "session:end",
    ];
    assert_eq!(told, expected);
    assert_eq!(names.iter().filter(|name| **name == "content_block:delta").count(), 4);
}

#[test]
fn a_failure_is_a_result_too() {
    let place = Place::with(json!([{ "error": "rejected" }]));
    let Ran { code, out, .. } = place.run(&["--json", "Greet me"]);
    let result: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &result["result"]), (1, &json!("error")));
}

#[test]
fn a_task_may_come_from_standard_input() {
    let place = Place::with(json!([{ "when": "from a pipe", "text": "I read it." }]));
    assert_eq!(with_input(place.scripted(&["run"]), "A task from a pipe\n").fine(), "I read it.\n");
    assert_eq!(with_input(place.scripted(&["run", "-"]), "Also from a pipe").fine(), "I read it.\n");
}

#[test]
fn an_empty_task_is_none() {
    let place = Place::with(json!([]));
    let explanation = "amplifier: empty task; give one: amplifier run \"…\"";
    place.run(&[" \n"]).check_usage(explanation);
    place.run(&["-"]).check_usage(explanation);
    place.run(&[]).check_usage(explanation);
    assert_eq!(place.amplifier(&["sessions", "list", "--json"]).fine(), "");
}

#[test]
fn questions_are_denied_where_nobody_can_answer_and_it_says_what_to_do() {
    let place = Place::with(bash("touch made"));
    let Ran { code, out, error } = place.run(&["Make it"]);
    assert_eq!((code, out.as_str()), (3, "Let me try.\nThen I leave it.\n"));
    let expected = "● Bash  touch made\n  └ Denied by hook confirm: Approval failed (no terminal to ask on; run in a terminal, or \
                    add the approval rule `\"confirm:Run `touch made`?\": \"allow\"`): Run `touch made`?\n";
    assert!(error.starts_with(expected), "{error}");
    assert!(!place.at("workspace/made").exists());

    // What it says works.
    place.rules(json!({ "confirm:Run `touch made`?": "allow" }));
    let Ran { code, out, error } = place.run(&["Make it"]);
    assert_eq!((code, out.as_str()), (0, "Let me try.\nDone.\n"));
    let allowed = "✓ allowed by the approval rule `confirm:Run `touch made`?`: Run `touch made`?\n";
    assert_eq!(error, format!("{allowed}● Bash  touch made\n  └ (no output)\n"));
    assert!(place.at("workspace/made").exists());
    place.check_sealed(2);
}

/// A rule for the prompt would match other commands, so the suggested rule is about the operation.
#[test]
fn a_prompt_that_does_not_name_the_command_gets_a_rule_about_the_operation() {
    let vague = "hooks: [{ rule: mind, on: tool:pre, when: tool_name == 'Bash', ask: 'Go on?', options: [Allow always, Deny] }]";
    for (bundle, command, made, expected) in [
        ("hooks: []", "touch 'a*b'", "a*b", json!({ "confirm": { "run touch 'a*b'": "allow" } })),
        (vague, "touch made", "made", json!({ "mind": { "run touch made": "allow" } })),
    ] {
        let place = Place::with(bash(command));
        place.write("bundle.yaml", bundle);
        let Ran { code, error, .. } = place.run(&["Make it", "--bundle", "../bundle.yaml"]);
        let (_, hint) = error.split_once("or add the approval rule `").unwrap();
        let (hint, _) = hint.split_once("`): ").unwrap();
        let rules: Value = serde_json::from_str(&format!("{{{hint}}}")).unwrap();
        assert_eq!((code, &rules), (3, &expected), "{error}");
        // What it says works.
        place.rules(rules);
        let Ran { code, error, .. } = place.run(&["Make it", "--bundle", "../bundle.yaml"]);
        assert_eq!((code, place.at("workspace").join(made).exists()), (0, true), "{error}");
    }
}

#[test]
fn a_standing_answer_allows_what_it_matches_and_nothing_else() {
    let place = Place::with(bash("touch made; touch more"));
    place.rules(json!({ "confirm:Run `touch made`?": "allow", "confirm:Run `echo *`?": "allow", "other:*": "allow" }));
    assert_eq!(place.run(&["Make it"]).out, "Let me try.\nThen I leave it.\n");
    place.rules(json!({ "confirm:*": "allow", "confirm:Run `touch *`?": "deny" }));
    assert_eq!(place.run(&["Make it"]).out, "Let me try.\nThen I leave it.\n");
    assert!(!place.at("workspace/made").exists());
}

#[test]
fn questions_are_denied_on_request() {
    let place = Place::with(bash("touch made"));
    let Ran { code, error, .. } = place.run(&["--mode", "deny", "Make it"]);
    let why = "Approval failed (requests are denied, because the mode is `deny`): Run `touch made`?";
    assert_eq!(code, 3);
    assert!(error.starts_with(&format!("● Bash  touch made\n  └ Denied by hook confirm: {why}\n")), "{error}");
    assert!(!place.at("workspace/made").exists());
}

/// The result that `--json` prints last.
fn result(ran: &Ran) -> Value {
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

#[test]
fn a_run_with_a_denied_result_is_refused() {
    let place =
        Place::with(json!([{ "tools": [{ "name": "Glob", "input": { "pattern": "*" } }] }, { "text": "Done." }]));
    place.write("home/bundle.yaml", "hooks: [{ rule: none, on: 'tool:post', when: 'true', deny: not for you }]\n");
    let ran = place.run(&["Look"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "Done.\n"), "{}", ran.error);
}

#[test]
fn a_run_with_a_denied_operation_is_refused_unless_denials_are_allowed() {
    let place = Place::with(bash("touch made"));
    let refused = place.run(&["Make it"]);
    assert_eq!((refused.code, refused.out.as_str()), (3, "Let me try.\nThen I leave it.\n"));
    let id = place.amplifier(&["sessions", "list", "--json"]).fine();
    let id = serde_json::from_str::<Value>(id.lines().next().unwrap()).unwrap()["id"].as_str().unwrap().to_owned();
    let mut last = refused.error.lines().rev();
    let why = "refused: the exit code is 3, because an operation was denied; `--allow-denials` makes it 0";
    assert_eq!(last.next(), Some(why));
    let summary = last.next().unwrap();
    assert!(summary.starts_with(&format!("session {}: ", &id[id.len() - 6..])), "{summary}");
    assert!(summary.contains(" tokens, ") && summary.ends_with(" s, 1 denial"), "{summary}");
    // What it names, other commands find.
    assert!(place.amplifier(&["sessions", "show", &id[id.len() - 6..]]).fine().contains("Then I leave it."));

    let refused = result(&place.run(&["--json", "Make it"]));
    assert_eq!(
        (&refused["result"], &refused["denials"], &refused["text"]),
        (&json!("refused"), &json!(1), &json!("Then I leave it."))
    );
    let allowed = place.run(&["--json", "--allow-denials", "Make it"]);
    assert_eq!(
        (allowed.code, &result(&allowed)["result"], &result(&allowed)["denials"]),
        (0, &json!("success"), &json!(1))
    );
}

#[test]
fn denials_of_sub_agents_count_and_a_failure_stays_a_failure() {
    let place = Place::with(json!([]));
    let task = json!({ "name": "Task", "input": { "task": "Make it", "agent_name": "helper" } });
    let script = json!({
        "answers": [{ "tools": [task] }, { "text": "Done." }],
        "agents": { "helper": [
            { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
            { "text": "I could not." },
        ] },
    });
    place.write("script.json", &script.to_string());
    let refused = place.run(&["--json", "Make it"]);
    assert_eq!((refused.code, &result(&refused)["denials"]), (3, &json!(1)), "{}", refused.error);

    place.answers(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "error": "rejected" },
    ]));
    let failed = place.run(&["--json", "--allow-denials", "Make it"]);
    assert_eq!((failed.code, &result(&failed)["result"]), (1, &json!("error")));
}

#[test]
fn nothing_can_be_allowed_silently() {
    let place = Place::with(bash("touch made"));
    let refused = place.run(&["--mode", "allow", "Make it"]);
    refused.check_usage(
        "amplifier: `mode`: unknown approval mode `allow`; expected one of: ask, accept-edits, plan, deny",
    );
}

#[test]
fn looking_needs_no_question() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Read", "input": { "file_path": "notes" } }] },
        { "when": "buy milk", "text": "Milk." }
    ]));
    place.write("workspace/notes", "buy milk");
    assert_eq!(place.run(&["What do I buy?"]).out, "Milk.\n");
}

#[test]
fn the_workspace_is_not_left() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Write", "input": { "file_path": "../made", "content": "x" } }] },
        { "when": "outside", "text": "Then not." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let Ran { code, out, error } = place.run(&["--json", "Make it"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("../made") && error.contains("outside"), "{error}");
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let violations: Vec<Value> = lines.filter(|line| line["event"] == "policy:violation").collect();
    assert_eq!(violations.len(), 1, "{out}");
    assert_eq!(violations[0]["data"]["policy"], "workspace");
    assert!(!place.at("made").exists());
}

#[test]
fn pipes_get_no_escape_codes() {
    let place = Place::with(json!([
        { "text": "\u{1b}[31mred\u{1b}[0m", "tools": [{ "name": "Bash", "input": { "command": "printf '\\033[2Jx'" } }] },
        { "text": "Done." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let mut colourful = place.scripted(&["run", "Go"]);
    colourful.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
    let mut forced = place.scripted(&["run", "Go"]);
    forced.env("NO_COLOR", "1").env("TERM", "xterm-256color");
    for command in [colourful, forced] {
        let Ran { code, out, error } = Running::start(command).end();
        assert_eq!((code, out.as_str()), (0, "␛[31mred␛[0m\nDone.\n"));
        assert!(!error.contains('\u{1b}') && error.contains("␛[2Jx"), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.scripted(&["run", "Greet me"]).stdout(full).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.starts_with("amplifier: the answer cannot be written to standard output: "), "{error}");
    place.check_sealed(1);
}

#[test]
fn without_its_record_nothing_more_runs() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "echo runs > alive; read word < go" } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Nobody saw it." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let alive = place.pipe("workspace/alive");
    place.make_pipe("workspace/go");
    let running = Running::start(place.scripted(&["run", "--json", "--audit", "record", "Hide it"]));
    assert_eq!(alive.line(), "runs");
    std::fs::remove_dir_all(place.at("home/audit")).unwrap();
    place.write("workspace/go", "word\n");
    let Ran { code, out, error } = running.end();
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("Denied by hook audit: ") && error.contains("{\"error\":\"the audit log of the session"),
        "{error}"
    );
    let result: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(result["result"], "refused");
    assert!(!place.at("workspace/made").exists());
}

pub(crate) fn said(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}
