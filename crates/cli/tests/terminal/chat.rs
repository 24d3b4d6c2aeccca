//! A conversation.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Place, send_signal};
use crate::terminal::{FRAMES, Terminal, WAITS};

fn chat(place: &Place) -> Terminal {
    begin(place, &["chat"])
}

fn begin(place: &Place, arguments: &[&str]) -> Terminal {
    let mut terminal = Terminal::start(place, arguments);
    let greeting = terminal.until_prompt();
    for label in ["model    script `", "folder   ", "policy   ", "mode     ", "session  "] {
        assert!(greeting.contains(&format!("\n{label}")) || greeting.starts_with(label), "{label}: {greeting}");
    }
    assert!(greeting.contains("/help lists the commands, Ctrl-D ends the session"), "{greeting}");
    terminal
}

/// The prompts and answers of the newest session.
fn spoken(place: &Place) -> Vec<String> {
    place.conversation().into_iter().map(|(role, text)| format!("{role}: {text}")).collect()
}

/// What the model was asked last: all but what it was told before everything else.
fn asked(place: &Place) -> Vec<String> {
    let records = place.amplifier(&["audit", "export", "--event", "provider:request"]).fine();
    let messages = |line: &str| find_messages(&serde_json::from_str(line).unwrap());
    let last = records.lines().filter_map(messages).next_back().unwrap();
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    let spoken = last.iter().filter(|message| message["role"] != "system");
    spoken.map(|message| format!("{}: {}", text(message, "role"), text(message, "content"))).collect()
}

fn find_messages(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Object(fields) => match fields.get("messages") {
            Some(Value::Array(messages)) => Some(messages.clone()),
            _ => fields.values().find_map(find_messages),
        },
        _ => None,
    }
}

#[test]
fn lines_that_begin_with_a_slash_are_commands() {
    let place = Place::with(json!([{ "text": "Good morning." }, { "text": "They greeted each other." }]));
    let mut chat = chat(&place);
    let help = chat.line("/help");
    for command in ["/help ", "/hooks ", "/history ", "/tokens ", "/compact ", "/mode ", "/exit "] {
        assert!(help.contains(&format!("\n{command}")), "{help}");
    }
    let hooks = chat.line("/hooks");
    assert!(hooks.contains("tool:pre             confirm                  1000  gate      deny"), "{hooks}");
    assert!(chat.line("/tokens").contains("\n0 tokens\r\n"));
    assert!(chat.line("/nope").contains("unknown command `/nope`; see /help"));
    let answer = chat.line("Greet me");
    assert!(answer.contains("Good morning.\r\n"), "{answer}");
    let history = chat.line("/history");
    assert!(history.contains("\nuser: Greet me\r\nassistant: Good morning.\r\n"), "{history}");
    let tokens = chat.line("/tokens");
    assert!(tokens.contains(" tokens\r\n") && !tokens.contains("\n0 tokens"), "{tokens}");
    let compacted = chat.line("/compact");
    assert!(compacted.contains("compacting the conversation"), "{compacted}");
    let history = chat.line("/history");
    assert!(history.contains("They greeted each other."), "{history}");
    chat.keys("/exit\r");
    assert_eq!(chat.end(), 0);
    let is_colourful = ["\x1b[3", "\x1b[9"].iter().any(|code| chat.seen.contains(code));
    assert!(!is_colourful, "NO_COLOR is set: {:?}", chat.seen);
    place.check_sealed(1);
}

#[test]
fn the_approval_mode_is_shown_at_the_prompt_changed_there_and_recorded() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "when": "plan mode", "text": "I only plan." },
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "when": "the mode is `deny`", "text": "It was denied." },
        { "text": "Done." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    place.write("home/config.toml", "forbid_modes = [\"accept-edits\"]\nconfirm = \"off\"\n");
    place.write("home/bundle.yaml", "hooks: [{ rule: own, on: tool:pre, ask: Really? }]\n");
    let mut chat = begin(&place, &["chat", "--mode", "plan"]);
    assert!(chat.seen.contains("\nmode     plan; sandbox: ") && chat.seen.contains("plan> "), "{}", chat.seen);
    assert!(chat.seen.contains("\npolicy   1 hook in "), "{}", chat.seen);
    assert!(chat.line("/mode").contains("\nmode: plan; allowed: ask, plan, deny\r\n"));
    assert!(chat.line("/hooks").contains("tool:pre             plan "));
    assert!(chat.line("Make it").contains("I only plan."));
    let refused = chat.line("/mode accept-edits");
    assert!(refused.contains("mode `accept-edits` is forbidden by `forbid_modes`"), "{refused}");
    assert!(
        chat.line("/mode all").contains("unknown approval mode `all`; expected one of: ask, accept-edits, plan, deny")
    );
    let changed = chat.line("/mode deny");
    assert!(changed.contains("\nmode: deny\r\n"), "{changed}");
    let denied = chat.line("Make it");
    assert!(denied.contains("It was denied.") && denied.contains("deny> "), "{denied}");
    assert!(!place.at("workspace/made").exists());
    assert!(!chat.line("/hooks").contains("tool:pre             plan "));
    chat.keys("/exit\r");
    assert_eq!(chat.end(), 0);
    let recorded = place.amplifier(&["audit", "export", "--kind", "policy_change"]).fine();
    let modes = recorded.lines().filter_map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        let mode = record.pointer("/body/change/mode")?;
        Some((mode["from"].clone(), mode["to"].clone(), mode["by"]["via"].clone()))
    });
    assert_eq!(modes.collect::<Vec<_>>(), [(json!("plan"), json!("deny"), json!("terminal"))], "{recorded}");
    place.check_sealed(1);
}

#[test]
fn control_c_during_a_turn_returns_to_the_prompt() {
    let place = Place::with(json!([
        { "text": "word ".repeat(1000), "delay_ms": 50 },
        { "when": "Greet me", "text": "Good morning." }
    ]));
    let mut chat = chat(&place);
    chat.keys("Talk\r");
    chat.until("word word");
    chat.keys("\x03");
    assert!(chat.until_prompt().contains("Interrupted by the user.\r\n"));
    assert!(chat.line("Greet me").contains("Good morning.\r\n"));
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
    let expected = ["user: Talk", "assistant: Interrupted by the user.", "user: Greet me", "assistant: Good morning."];
    assert_eq!(spoken(&place), expected);
    place.check_sealed(1);
}

#[test]
fn what_was_stopped_once_does_not_stop_what_comes_next() {
    let place = Place::with(json!([
        { "text": "word ".repeat(1000), "delay_ms": 50 },
        { "when": "Summarise", "text": "Words were said." }
    ]));
    let mut chat = chat(&place);
    chat.keys("Talk\r");
    chat.until("word word");
    chat.keys("\x03");
    chat.until_prompt();
    let compacted = chat.line("/compact");
    assert!(compacted.contains("the conversation now has 3 messages"), "{compacted}");
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
}

#[test]
fn control_c_at_the_prompt_throws_the_line_away_and_control_d_ends_the_session() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    let mut chat = chat(&place);
    chat.keys("Never said\x03");
    chat.until_prompt();
    assert!(chat.line("").len() < 200);
    assert!(chat.line("Greet me").contains("Good morning.\r\n"));
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
    assert_eq!(spoken(&place), ["user: Greet me", "assistant: Good morning."]);
    let list = place.amplifier(&["sessions", "list"]).fine();
    assert!(list.contains("  user_exit   Greet me\n"), "{list}");
    let mode = std::fs::metadata(place.at("home/history")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    place.check_sealed(1);
}

#[test]
fn a_question_is_answered_in_a_conversation_too() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." }
    ]));
    let mut chat = chat(&place);
    chat.keys("Make it\r");
    chat.answer("1");
    assert!(chat.until_prompt().contains("Done.\r\n"));
    assert!(place.at("workspace/made").exists());
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
}

#[test]
fn a_rule_that_is_given_or_taken_back_elsewhere_counts_from_the_next_question_on() {
    let touch = || json!({ "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] });
    let done = || json!({ "text": "Done." });
    let place = Place::with(json!([touch(), done(), touch(), done(), touch(), done(), touch(), done()]));
    let rule = json!({ "confirm:Run `touch made`?": "allow" });
    place.rules(rule.clone());
    let mut chat = chat(&place);
    let is_made = || std::fs::remove_file(place.at("workspace/made")).is_ok();
    assert!(chat.line("Make it").contains("Done.") && is_made());
    place.amplifier(&["approvals", "revoke", "1"]).fine();
    chat.keys("Make it\r");
    chat.answer("d");
    assert!(chat.until_prompt().contains("Done.") && !is_made());
    place.rules(rule);
    assert!(chat.line("Make it").contains("Done.") && is_made());
    // A file that cannot be read allows nothing.
    place.write("home/approvals.json", "{ \"confirm:");
    chat.keys("Make it\r");
    let seen = chat.until(WAITS);
    assert!(seen.contains("approval rules cannot be read, so rules that allow are ignored"), "{seen}");
    assert!(seen.contains("! approval rules cannot be read, and one may deny this"), "{seen}");
    chat.keys("d");
    assert!(chat.until_prompt().contains("Done.") && !is_made());
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
}

#[test]
fn after_a_failure_the_prompt_comes_back_and_nothing_moves_beside_it() {
    let place = Place::with(json!([{ "error": "rejected", "delay_ms": 150 }, { "text": "Good morning." }]));
    let mut chat = chat(&place);
    let failed = chat.line("Greet me");
    assert!(failed.contains("Failed: ") && failed.contains(FRAMES), "{failed}");
    let help = chat.line("/help");
    assert!(!help.contains(FRAMES), "{help}");
    assert!(chat.line("Greet me").contains("Good morning.\r\n"));
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
}

#[test]
fn being_told_to_end_ends_the_session_in_order() {
    let place = Place::with(json!([]));
    let mut chat = chat(&place);
    // It is a child of the shell that the terminal has started.
    let shell = chat.session.get_process().pid().as_raw().to_string();
    let found = Command::new("pgrep").args(["-P", &shell]).output().unwrap();
    let process = String::from_utf8(found.stdout).unwrap();
    send_signal("TERM", process.trim().parse().unwrap());
    assert_eq!(chat.end(), 0);
    place.check_sealed(1);
}

#[test]
fn a_session_is_resumed_where_it_ended() {
    let place = Place::with(json!([{ "text": "Hello, Ada." }]));
    assert_eq!(place.run(&["I am Ada"]).fine(), "Hello, Ada.\n");
    place.answers(json!([{ "when": "Who am I?", "text": "You are Ada." }]));
    let mut chat = begin(&place, &["sessions", "resume", "last"]);
    assert!(chat.line("Who am I?").contains("You are Ada.\r\n"));
    chat.keys("\x04");
    assert_eq!(chat.end(), 0);
    let expected = ["user: I am Ada", "assistant: Hello, Ada.", "user: Who am I?", "assistant: You are Ada."];
    assert_eq!(spoken(&place), expected);
    assert_eq!(asked(&place), expected[..3]);
    assert_eq!(place.amplifier(&["sessions", "list", "--json"]).fine().lines().count(), 1);
    assert!(place.amplifier(&["audit", "verify"]).fine().starts_with("sound: "));
}

#[test]
fn a_session_branches_off_after_a_turn() {
    let place = Place::with(json!([{ "text": "Hello, Ada." }, { "text": "Hello, Bob." }]));
    let mut first = chat(&place);
    first.line("I am Ada");
    first.line("I am Bob");
    first.keys("\x04");
    assert_eq!(first.end(), 0);
    let parent = place.amplifier(&["sessions", "list", "--json"]).fine();
    let parent: Value = serde_json::from_str(&parent).unwrap();

    place.answers(json!([{ "text": "You are Ada." }]));
    let mut branch = begin(&place, &["sessions", "fork", "last", "--turn", "1"]);
    assert!(branch.line("Who am I?").contains("You are Ada.\r\n"));
    branch.keys("\x04");
    assert_eq!(branch.end(), 0);
    assert_eq!(asked(&place), ["user: I am Ada", "assistant: Hello, Ada.", "user: Who am I?"]);
    let sessions = place.amplifier(&["sessions", "list", "--json"]).fine();
    let newest: Value = serde_json::from_str(sessions.lines().next().unwrap()).unwrap();
    assert_eq!((&newest["parent"], &newest["turns"]), (&parent["id"], &json!(2)));
    assert_eq!(sessions.lines().count(), 2);
    let mut terminal = Terminal::start(&place, &["sessions", "fork", "last", "--turn", "9"]);
    assert_eq!(terminal.end(), 1);
    assert!(terminal.screen()[0].ends_with(" has 2 turns, not 9"), "{}", terminal.seen);
}
