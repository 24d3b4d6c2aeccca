//! The demonstration, and the session that it leaves.

use serde_json::{Value, json};

use crate::common::Place;

#[test]
fn the_demo_leaves_a_session_that_can_be_shown() {
    let place = Place::with(json!([]));
    let ran = place.amplifier(&["demo", "--fast"]);
    assert_eq!(ran.code, 0, "{}", ran.error);
    let session: Value = serde_json::from_str(&place.amplifier(&["sessions", "list", "--json"]).fine()).unwrap();
    assert_eq!((&session["name"], &session["ended"]), (&json!("demo"), &json!("complete")));
    let id = session["id"].as_str().unwrap();
    let short = &id[id.len() - 6..];
    for command in [format!("sessions show {short}"), format!("hooks trace {short}")] {
        assert!(ran.error.contains(&format!("amplifier {command}")), "{command}: {}", ran.error);
        let arguments: Vec<&str> = command.split(' ').collect();
        assert!(place.amplifier(&arguments).fine().contains("greet.py"));
    }
    for next in ["amplifier serve ", "amplifier init ", "amplifier hooks new rule my-hooks ", "amplifier chat "] {
        assert!(ran.error.contains(next), "{next}: {}", ran.error);
    }
    let shown = place.amplifier(&["sessions", "show", short]).fine();
    assert!(shown.starts_with("# demo\n") && !shown.contains("sk-live"), "{shown}");
    place.check_sealed(1);
    // The workspace of the demo is gone, and the own one is untouched.
    assert_eq!(std::fs::read_dir(place.at("workspace")).unwrap().count(), 0);
}

#[test]
fn each_caption_stands_beside_its_call_and_result() {
    let place = Place::with(json!([]));
    let seen = place.amplifier(&["demo", "--fast"]).error;
    let at = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no `{text}` in {seen}"));
    let order = [
        "BLOCK ",
        "● Bash  rm -rf build",
        "● Read  settings.env",
        "TOKEN=[redacted]",
        "MODIFY ",
        "● Write  greet.py",
        "wrote 4 lines to `greet.py`",
        "INJECT ",
        "1 problem in greet.py",
        "linter added context",
        "● Edit  greet.py",
        "replaced the text once",
        "● Bash  cat greet.py",
        "def greet(name)",
        "\nASK ",
        "OBSERVE ",
        "CONTROL ",
        "checked 62 characters against 4 lists",
        "RECORD ",
    ];
    let places: Vec<usize> = order.iter().map(|text| at(text)).collect();
    assert!(places.is_sorted(), "{seen}");
}

#[test]
fn without_a_usable_home_the_demo_runs_and_says_that_nothing_stays() {
    let place = Place::with(json!([]));
    let mut command = place.command(&["demo", "--fast"]);
    command.env("AMPLIFIER_HOME", "/proc/nowhere");
    let ran = crate::common::Running::start(command).end();
    assert_eq!(ran.code, 0, "{}", ran.error);
    assert!(ran.error.contains("the session of the demo is not stored: `/proc/nowhere`"), "{}", ran.error);
    assert!(!ran.error.contains("Look at this session"), "{}", ran.error);
}
