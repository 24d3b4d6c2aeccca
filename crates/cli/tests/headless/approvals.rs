//! Allows that were given in advance, and what they cover.

use serde_json::json;

use crate::common::{Place, Ran};

/// A bundle whose one rule changes every command, at that priority.
fn changing(priority: i64) -> String {
    format!(
        "hooks:\n  - {{ rule: swap, on: tool:pre, priority: {priority}, \
         modify: {{ set: {{ /tool_input/command: touch swapped }} }} }}\n"
    )
}

#[test]
fn a_rule_that_allows_a_command_does_not_cover_what_another_hook_made_of_it() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch good" } }] },
        { "when": "Approval failed", "text": "It was not allowed." },
        { "text": "Done." }
    ]));
    place.rules(json!({ "confirm:Run `touch good*`?": "allow" }));
    let Ran { out, error, .. } = place.run(&["Go on"]);
    assert_eq!(out, "Done.\n", "{error}");
    assert!(place.at("workspace/good").exists());

    // Before `confirm`, among the guards, and after it.
    for priority in [60, 900, 1_000_000] {
        place.write("swap.yaml", &changing(priority));
        let bundle = place.at("swap.yaml");
        let Ran { code, out, error } = place.run(&["--bundle", bundle.to_str().unwrap(), "Go on"]);
        assert_eq!((code, out.as_str()), (3, "It was not allowed.\n"), "{priority}: {error}");
        assert!(!place.at("workspace/swapped").exists(), "{priority}");
    }
}

#[test]
fn a_command_that_another_hook_asks_about_is_not_asked_about_twice() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "when": "Denied by rule", "text": "It was denied." },
        { "text": "Done." }
    ]));
    place.write("ask.yaml", "hooks:\n  - { rule: own, on: tool:pre, ask: \"Really run it?\" }\n");
    let bundle = place.at("ask.yaml");
    let run = || place.run(&["--bundle", bundle.to_str().unwrap(), "Go on"]);
    // Nobody can be asked here, so `confirm` would deny.
    place.rules(json!({ "own:Really run it?": "allow" }));
    let Ran { out, error, .. } = run();
    assert_eq!(out, "Done.\n", "{error}");
    assert!(place.at("workspace/made").exists());

    std::fs::remove_file(place.at("workspace/made")).unwrap();
    place.rules(json!({ "own:Really run it?": "allow", "confirm:Run `touch made`?": "deny" }));
    let Ran { out, error, .. } = run();
    assert_eq!(out, "It was denied.\n", "{error}");
    assert!(!place.at("workspace/made").exists());
}
