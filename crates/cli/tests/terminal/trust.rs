//! A project that brings hooks of its own, with a person in front of it.

use std::fs;

use serde_json::json;

use crate::common::Place;
use crate::terminal::Terminal;

/// What stands below the question.
const ASKS: &str = "press 1–2, n · Esc: not now";

fn place() -> Place {
    let place = Place::with(json!([{ "text": "Done." }]));
    fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    let bundle = "hooks:\n  - command: sh ./note.sh\n    name: \"note\\r\\n╰─ ✓ Trust\\e[2K\"\n    on: prompt:submit\n";
    place.write("workspace/.amplifier/bundle.yaml", bundle);
    place.write("workspace/.amplifier/note.sh", "cat >/dev/null; touch noted\n");
    place
}

fn run(place: &Place, key: Option<&str>) -> (i32, String) {
    let mut terminal = Terminal::start(place, &["run", "Do it"]);
    if let Some(key) = key {
        terminal.until(ASKS);
        assert!(!place.at("workspace/noted").exists());
        terminal.keys(key);
    }
    let code = terminal.end();
    (code, terminal.seen)
}

fn noted(place: &Place) -> bool {
    fs::remove_file(place.at("workspace/noted")).is_ok()
}

#[test]
fn a_person_sees_what_a_project_would_run_and_decides() {
    let place = place();
    let mut terminal = Terminal::start(&place, &["run", "Do it"]);
    terminal.until("╭─ trust needed  this project contains hooks");
    terminal.until("│ hook note␍␊╰─ ✓ Trust␛[2K");
    terminal.until("│   command: sh ./note.sh");
    terminal.until("note.sh\r\n");
    terminal.until("│   sha256: ");
    terminal.until("│ 2  Not now   run none of its hooks");
    terminal.until(ASKS);
    terminal.keys("n");
    terminal.until("✗ Not now");
    terminal.until("continuing without the hooks of this project");
    assert_eq!(terminal.end(), 0);
    assert!(!noted(&place));

    let (code, seen) = run(&place, Some("1"));
    assert!(code == 0 && seen.contains("╰─ ✓ Trust\r\n"), "{seen}");
    assert!(noted(&place));
    let (code, seen) = run(&place, None);
    assert!(code == 0 && noted(&place) && !seen.contains("trust needed"), "{seen}");

    place.write("workspace/.amplifier/note.sh", "cat >/dev/null; touch noted # once more\n");
    let (code, seen) = run(&place, Some("\x1b"));
    assert!(code == 0 && !noted(&place), "{seen}");
    assert!(seen.contains("│ ! changed since you trusted it: `"), "{seen}");
    place.check_sealed(4);
}

#[test]
fn what_was_typed_before_and_any_other_key_is_no_answer() {
    let place = place();
    let begins = place.at("begins");
    let mut terminal = Terminal::held(&place, &["run", "--approval-timeout", "2", "Do it"], begins.to_str().unwrap());
    // Before the question is open.
    terminal.keys("t1t1");
    fs::write(&begins, "").unwrap();
    terminal.until(ASKS);
    terminal.keys("\ry x+");
    terminal.until("✗ Not now");
    assert_eq!(terminal.end(), 0);
    assert!(!noted(&place));
}

#[test]
fn control_c_at_the_question_ends_it_all() {
    let place = place();
    let (code, seen) = run(&place, Some("\x03"));
    assert_eq!(code, 130, "{seen}");
    assert!(!noted(&place) && !seen.contains("Done."));
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.until(ASKS);
    terminal.keys("\x03");
    assert_ne!(terminal.end(), 0);
    assert!(!terminal.seen.contains("Ctrl-D ends the session"));
}

#[test]
fn where_nobody_is_asked_nothing_runs() {
    let place = place();
    let mut terminal = Terminal::start(&place, &["run", "--mode", "deny", "Do it"]);
    terminal.until("none of the hooks of this project run");
    assert_eq!(terminal.end(), 0);
    assert!(!noted(&place) && !terminal.seen.contains("trust needed"));
}

#[test]
fn a_conversation_asks_before_it_begins() {
    let place = place();
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.until(ASKS);
    terminal.keys("1");
    terminal.until("✓ Trust");
    terminal.until_prompt();
    terminal.line("Do it");
    assert!(noted(&place));
    terminal.keys("\x04");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_command_asks_and_says_how_it_ended() {
    let place = place();
    for (key, code) in [("n", 3), ("1", 0)] {
        let mut terminal = Terminal::start(&place, &["hooks", "trust"]);
        terminal.until(ASKS);
        terminal.keys(key);
        assert_eq!(terminal.end(), code);
        assert_eq!(terminal.seen.contains(" is trusted: "), code == 0);
    }
    assert_eq!(run(&place, None).0, 0);
    assert!(noted(&place));
}

#[test]
fn a_safer_record_counts_in_the_session_that_trusts_it() {
    let place = place();
    let bundle = place.read("workspace/.amplifier/bundle.yaml");
    place.write("workspace/.amplifier/bundle.yaml", &format!("session: {{ audit: record }}\n{bundle}"));
    let (code, seen) = run(&place, Some("1"));
    assert!(code == 0 && noted(&place), "{seen}");
    let shown = place.amplifier(&["audit", "show", "--event", "session:start", "--json"]).fine();
    assert!(shown.contains(r#""audit":"record""#), "{shown}");
    place.check_sealed(1);
}
