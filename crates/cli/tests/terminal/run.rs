//! One task, with a person in front of it.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Pipe, Place};
use crate::terminal::{FRAMES, Terminal};

fn bash(command: &str) -> Value {
    json!([
        { "text": "Let me try.", "tools": [{ "name": "Bash", "input": { "command": command } }] },
        { "when": "Denied by hook", "text": "Then I leave it." },
        { "text": "Done." }
    ])
}

/// What the model read of the tool.
fn result(place: &Place) -> String {
    place.conversation().into_iter().find(|(role, _)| role == "tool").unwrap().1
}

#[test]
fn what_is_allowed_runs() {
    let place = Place::with(bash("touch made; echo hello"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.until("│   touch made; echo hello");
    assert!(!place.at("workspace/made").exists());
    terminal.answer("1");
    assert_eq!(terminal.end(), 0);
    assert!(place.at("workspace/made").exists());
    assert_eq!(result(&place), "hello");

    let screen = terminal.screen();
    let asked = ["sandbox: namespaces", "Let me try.", "╭─ approval needed  hook confirm asks at tool:pre"];
    assert_eq!(screen[..3], asked);
    let after = screen.iter().position(|line| line.ends_with("✓ allowed once")).unwrap() + 1;
    assert_eq!(screen[after..][..3], ["● Bash  touch made; echo hello", "  └ hello", "Done."]);
    let [summary] = &screen[after + 3..] else { panic!("{screen:?}") };
    assert!(summary.starts_with("session ") && summary.ends_with(" s, no denials"), "{summary}");
    place.check_sealed(1);
}

#[test]
fn what_is_denied_does_not_run_and_the_model_reads_so() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.answer("d");
    terminal.until("✗ denied");
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    assert!(!place.at("workspace/made").exists());
    assert_eq!(result(&place), "Denied by hook confirm: User denied: Run `touch made`?");
    place.check_sealed(1);
}

#[test]
fn a_question_about_a_command_says_why_it_needs_care() {
    let place = Place::with(bash("rm -rf build"));
    let mut terminal = Terminal::start(&place, &["run", "Clean up"]);
    terminal.until("│ Reason: deletes recursively (`rm -rf build`)");
    terminal.answer("d");
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    let logged = place.amplifier(&["audit", "export", "--event", "session:start", "--kind", "event"]).fine();
    assert!(logged.contains("\"client\":{\"name\":\"amplifier\",\"version\":"), "{logged}");
}

#[test]
fn the_model_reads_the_reason_that_is_typed_for_a_denial() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.answer("/");
    terminal.until("Enter denies, Esc returns to the options");
    // No key allows any more: a digit is text.
    terminal.keys("1 file is enough");
    terminal.until("1 file is enough");
    terminal.keys("\r");
    terminal.until("✗ denied");
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    assert!(!place.at("workspace/made").exists());
    let expected = "Denied by hook confirm: User denied: Run `touch made`?\nReason: 1 file is enough";
    assert_eq!(result(&place), expected);
    place.check_sealed(1);
}

#[test]
fn escape_leaves_the_reason_and_the_options_wait_again() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.answer("/");
    terminal.until("Enter denies, Esc returns to the options");
    terminal.keys("never mind");
    terminal.until("never mind");
    terminal.keys("\x1b");
    terminal.answer("/");
    terminal.until("Enter denies, Esc returns to the options");
    terminal.keys("\r");
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    // Nothing of the abandoned text is left.
    assert_eq!(result(&place), "Denied by hook confirm: User denied: Run `touch made`?");
}

#[test]
fn a_question_that_nobody_answers_in_time_is_denied() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "--approval-timeout", "1.5", "Make it"]);
    terminal.until("✗ denied by default: no answer in time");
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    assert!(!place.at("workspace/made").exists());
    let why = "Denied by hook confirm: Approval timed out, denied by default: Run `touch made`?";
    assert_eq!(result(&place), why);
}

#[test]
fn control_c_at_a_question_denies_it_and_stops_the_turn() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.answer("\x03");
    terminal.until("✗ denied");
    assert_eq!(terminal.end(), 130);
    assert!(!place.at("workspace/made").exists() && !terminal.seen.contains("Then I leave it."));
}

#[test]
fn control_c_at_a_question_of_the_demo_ends_it_too() {
    let place = Place::with(json!([]));
    let mut terminal = Terminal::start(&place, &["demo", "--fast"]);
    terminal.answer("\x03");
    terminal.until("✗ denied");
    terminal.until("Interrupted by the user.");
    assert_eq!(terminal.end(), 130);
    let session: Value = serde_json::from_str(&place.amplifier(&["sessions", "list", "--json"]).fine()).unwrap();
    assert_eq!((&session["name"], &session["ended"]), (&json!("demo"), &json!("user_exit")));
    place.check_sealed(1);
}

#[test]
fn a_decision_without_a_question_is_shown_with_the_rule_that_made_it() {
    let call = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
    let place = Place::with(json!([call("echo a"), call("echo b"), call("echo b"), { "text": "Done." }]));
    place.rules(json!({ "confirm:Run `echo a`?": "allow" }));
    let mut terminal = Terminal::start(&place, &["run", "Say it"]);
    terminal.until("✓ allowed by the approval rule `confirm:Run `echo a`?`: Run `echo a`?");
    terminal.answer("2");
    terminal.until("press 1–2 · p");
    terminal.keys("1");
    terminal.until("✓ allowed by the approval rule `run echo b`: Run `echo b`?");
    assert_eq!(terminal.end(), 0);
    let trace = place.amplifier(&["hooks", "trace", "last", "--event", "tool:pre"]).fine();
    assert!(trace.contains("allowed by the approval rule `confirm:Run `echo a`?`"), "{trace}");
    assert!(trace.contains(" in the terminal, after "), "{trace}");
    let shown = place.amplifier(&["audit", "show", "--kind", "approval_decision"]).fine();
    assert!(shown.contains("(rule `confirm:Run `echo a`?`)"), "{shown}");
}

#[test]
fn results_of_parallel_calls_name_their_tool() {
    let calls = json!([
        { "tools": [
            { "name": "Bash", "input": { "command": "echo one" } },
            { "name": "Glob", "input": { "pattern": "*.md" } }
        ] },
        { "text": "Done." }
    ]);
    let place = Place::with(calls);
    place.rules(json!({ "confirm:*": "allow" }));
    let mut terminal = Terminal::start(&place, &["run", "Look"]);
    terminal.until("└ Bash: one");
    terminal.until("└ Glob: ");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn what_is_always_allowed_is_not_asked_again_but_everything_else_is() {
    let call = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
    let place = Place::with(json!([call("echo a"), call("echo a"), call("echo ab"), { "text": "Done." }]));
    let mut terminal = Terminal::start(&place, &["run", "Say it"]);
    terminal.answer("2");
    terminal.until("press 1–2 · p");
    terminal.keys("1");
    terminal.until("✓ allowed from now on: exactly `echo a`");
    terminal.until("  └ a\r\n");
    terminal.until("  └ a\r\n");
    terminal.until("│   echo ab");
    terminal.answer("3");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 3);
    assert_eq!(terminal.seen.matches("approval needed").count(), 2);
}

#[test]
fn nobody_is_asked_where_questions_are_denied() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "--mode", "deny", "Make it"]);
    terminal.until("Then I leave it.");
    assert_eq!(terminal.end(), 3);
    assert!(!terminal.seen.contains("approval needed") && !place.at("workspace/made").exists());
}

/// A task whose tool runs now, with something in the background. It holds a pipe open, and waits for another one.
fn running() -> (Place, Terminal, Pipe) {
    let command = "exec 3> alive; sleep 1000 & echo runs >&3; read word < go; kill $!; echo \"got $word\"";
    let place = Place::with(bash(command));
    place.rules(json!({ "confirm:*": "allow" }));
    let alive = place.pipe("workspace/alive");
    place.make_pipe("workspace/go");
    let terminal = Terminal::start(&place, &["run", "Begin"]);
    assert_eq!(alive.line(), "runs");
    (place, terminal, alive)
}

#[test]
fn control_c_lets_the_tool_finish() {
    let (place, mut terminal, alive) = running();
    terminal.keys("\x03");
    terminal.until("stopping when the running tool has finished; Ctrl-C again stops it now");
    fs::write(place.at("workspace/go"), "word\n").unwrap();
    terminal.until("└ got word");
    assert_eq!(terminal.end(), 130);
    alive.check_closes();
    let screen = terminal.screen();
    assert_eq!(screen[screen.len() - 2], "Interrupted by the user.");
    place.check_sealed(1);
}

#[test]
fn control_c_twice_ends_the_tool_and_all_it_began() {
    let (place, mut terminal, alive) = running();
    terminal.keys("\x03");
    terminal.until("Ctrl-C again stops it now");
    terminal.keys("\x03");
    terminal.until("stopping now");
    assert_eq!(terminal.end(), 130);
    alive.check_closes();
    place.check_sealed(1);
}

#[test]
fn an_answer_appears_while_it_comes() {
    let place = Place::with(json!([{ "text": format!("begin {} end", "word ".repeat(1000)), "delay_ms": 50 }]));
    let mut terminal = Terminal::start(&place, &["run", "Talk"]);
    terminal.until("begin word word");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 130);
    assert!(!terminal.seen.contains(" end"));
    let screen = terminal.screen();
    assert_eq!(screen[screen.len() - 2], "Interrupted by the user.");
    place.check_sealed(1);
}

#[test]
fn the_progress_line_leaves_nothing_behind() {
    let check = |answers: Value, code: i32, expected: &[&str]| {
        let place = Place::with(answers);
        let mut terminal = Terminal::start(&place, &["run", "Go"]);
        assert_eq!(terminal.end(), code);
        assert!(terminal.seen.contains(FRAMES), "{}", terminal.seen);
        let screen = terminal.screen();
        assert_eq!(screen[0], "sandbox: namespaces");
        let (summary, screen) = screen[1..].split_last().unwrap();
        assert_eq!(screen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert!(summary.starts_with("session "), "{summary}");
    };
    check(json!([{ "text": "Good morning.", "delay_ms": 150 }]), 0, &["Good morning."]);
    check(
        json!([{ "error": "rejected", "delay_ms": 150 }]),
        1,
        &["Failed: the provider rejected the request: as the script says"],
    );
}

#[test]
fn without_a_task_it_says_how_to_give_one() {
    let place = Place::with(json!([]));
    let mut terminal = Terminal::start(&place, &["run"]);
    assert_eq!(terminal.end(), 2);
    assert_eq!(terminal.screen(), ["amplifier: missing task; give one: amplifier run \"…\""]);
}

#[test]
fn a_terminal_that_goes_away_at_a_question_ends_the_session_in_order() {
    let place = Place::with(bash("touch made"));
    let mut terminal = Terminal::start(&place, &["run", "Make it"]);
    terminal.until(crate::terminal::WAITS);
    drop(terminal);
    let begun = std::time::Instant::now();
    loop {
        let report: Value = serde_json::from_str(&place.amplifier(&["audit", "verify", "--json"]).out).unwrap();
        if report["sealed"] == 1 {
            assert_eq!(report["in_doubt"], json!([]));
            break;
        }
        assert!(begun.elapsed() < crate::terminal::LIMIT, "{report}");
        std::thread::yield_now();
    }
    assert!(!place.at("workspace/made").exists());
}

#[test]
fn a_file_that_is_saved_while_its_question_is_open_is_not_written_over() {
    let input = json!({ "file_path": "notes.txt", "content": "mine\n" });
    let place = Place::with(json!([
        { "tools": [{ "name": "Write", "input": input }] },
        { "when": "changed after the approval was requested", "text": "I read it again." },
        { "text": "Done." }
    ]));
    place.write("workspace/notes.txt", "before\n");
    let mut terminal = Terminal::start(&place, &["run", "Write it"]);
    terminal.until("-before");
    place.write("workspace/notes.txt", "a day's work\n");
    terminal.answer("1");
    terminal.until("I read it again.");
    assert_eq!(terminal.end(), 0);
    assert_eq!(place.read("workspace/notes.txt"), "a day's work\n");
    let text = "Error: `notes.txt` changed after the approval was requested, so nothing was written; read it again";
    assert_eq!(result(&place), text);
}

#[test]
fn always_allowing_a_tool_of_an_mcp_server_accepts_its_new_definition() {
    let call = json!({ "tools": [{ "name": "mcp__notes__add", "input": {} }] });
    let place = Place::with(json!([call, { "text": "Done." }]));
    let tool = |description: &str| {
        format!(r#"{{"name":"add","description":"{description}","inputSchema":{{"type":"object"}}}}"#)
    };
    let server = |description: &str| {
        let result = format!(
            "{{'initialize': {{'protocolVersion': '2025-06-18', 'capabilities': {{'tools': {{}}}}, \
             'serverInfo': {{'name': 'n', 'version': '1'}}}}, 'tools/list': {{'tools': [{}]}}}}",
            tool(description)
        );
        let text = "{'content': [{'type': 'text', 'text': 'added'}]}";
        format!(
            "import json, sys\nfor line in sys.stdin:\n    message = json.loads(line)\n    if 'id' in message:\n        \
             result = {result}.get(message['method'], {text})\n        \
             print(json.dumps({{'jsonrpc': '2.0', 'id': message['id'], 'result': result}}), flush=True)\n"
        )
    };
    let file = place.at("server.py");
    place.write("home/config.toml", &format!("[mcp.notes]\ncommand = \"python3\"\nargs = [\"{}\"]\n", file.display()));
    place.rules(json!({ "confirm:Use the tool `mcp__notes__add`?": "allow" }));

    place.write("server.py", &server("Adds a note."));
    assert_eq!(place.run(&["Add it"]).out, "Done.\n");
    place.write("server.py", &server("Adds another note."));
    let mut terminal = Terminal::start(&place, &["run", "Add it"]);
    terminal.until("the MCP server `notes` has changed the description of its tool `add`");
    terminal.until("the definition of this tool has changed");
    terminal.answer("2");
    terminal.until("rule: use mcp__notes__add");
    terminal.until("press 1 · p");
    terminal.keys("1");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 0);
    let mut terminal = Terminal::start(&place, &["run", "Add it"]);
    terminal.until("Done.");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.seen.contains("approval needed"), "{}", terminal.seen);
}
