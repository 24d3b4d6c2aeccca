//! Being stopped, by a person or by the system.

use std::fs;

use serde_json::{Value, json};

use super::run::said;
use crate::common::{Pipe, Place, Ran, Running, heeding_hangups};

const FIRST: &str = "stopping when the running tool has finished; Ctrl-C again stops it now";

/// A task whose tool runs now, with something in the background. It holds a pipe open, and waits for another one.
fn running() -> (Place, Running, Pipe) {
    let command = "exec 3> alive; sleep 1000 & echo runs >&3; read word < go; kill $!; echo \"got $word\"";
    let place = Place::with(json!([
        { "text": "I begin.", "tools": [{ "name": "Bash", "input": { "command": command } }] },
        { "text": "Never said." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let alive = place.pipe("workspace/alive");
    place.make_pipe("workspace/go");
    let running = Running::start(place.scripted(&["run", "Begin"]));
    assert_eq!(alive.line(), "runs");
    (place, running, alive)
}

#[test]
fn one_interrupt_lets_the_tool_finish() {
    let (place, mut running, alive) = running();
    running.signal("INT");
    running.until(FIRST);
    fs::write(place.at("workspace/go"), "word\n").unwrap();
    let Ran { code, out, error } = running.end();
    assert_eq!((code, out.as_str()), (130, "I begin.\n"));
    assert!(error.ends_with(&format!("{FIRST}\n  └ got word\nInterrupted by the user.\n")), "{error}");
    alive.check_closes();
    let expected = [
        said("user", "Begin"),
        said("assistant", "I begin."),
        said("tool", "got word"),
        said("assistant", "Interrupted by the user."),
    ];
    assert_eq!(place.conversation(), expected);
    place.check_sealed(1);
}

#[test]
fn two_interrupts_end_the_tool_and_all_it_began() {
    let (place, mut running, alive) = running();
    running.signal("INT");
    running.until(FIRST);
    running.signal("INT");
    let Ran { code, error, .. } = running.end();
    assert_eq!(code, 130);
    assert!(error.contains("stopping now\n") && error.ends_with("\nInterrupted by the user.\n"), "{error}");
    alive.check_closes();
    let conversation = place.conversation();
    assert_eq!(conversation[2], said("tool", "Error: Interrupted by the user."));
    assert_eq!(conversation.len(), 4);
    place.check_sealed(1);
}

#[test]
fn being_told_to_end_ends_the_tool_and_all_it_began() {
    let (place, running, alive) = running();
    running.signal("TERM");
    assert_eq!(running.end().code, 130);
    alive.check_closes();
    place.check_sealed(1);
}

/// A bundle whose hook, at that event, holds a pipe open and never answers.
fn with_hanging_hook(place: &Place, event: &str) -> (String, Pipe) {
    let alive = place.pipe("alive");
    let command = format!("exec 3> {}; echo runs >&3; sleep 1000", place.at("alive").display());
    place.write("hanging.yaml", &format!("hooks:\n  - command: '{command}'\n    on: {event}\n"));
    (place.at("hanging.yaml").display().to_string(), alive)
}

#[test]
fn a_hook_that_hangs_when_the_program_is_told_to_end_is_given_up_and_the_record_has_an_end() {
    for (event, code, result) in
        [("provider:response", 130, "interrupted"), ("prompt:complete", 0, "success"), ("session:end", 0, "success")]
    {
        let place = Place::with(json!([
            { "tools": [{ "name": "Glob", "input": { "pattern": "*" } }] },
            { "text": "Done." }
        ]));
        let (bundle, alive) = with_hanging_hook(&place, event);
        let running = Running::start(place.scripted(&["run", "--json", "--bundle", &bundle, "Look"]));
        assert_eq!(alive.line(), "runs");
        running.signal("TERM");
        running.signal("TERM");
        let ran = running.end();
        alive.check_closes();
        let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
        assert_eq!((ran.code, &last["result"]), (code, &json!(result)), "{event}: {}", ran.error);
        place.check_sealed(1);
        let report: Value = serde_json::from_str(&place.amplifier(&["audit", "verify", "--json"]).fine()).unwrap();
        assert_eq!(report["in_doubt"], json!([]), "{event}");
    }
}

#[test]
fn hooks_that_are_tried_or_tested_end_with_the_program() {
    for (signal, command) in [("TERM", "try"), ("INT", "try"), ("HUP", "test")] {
        let place = Place::with(json!([]));
        let (bundle, alive) = with_hanging_hook(&place, "tool:pre");
        let tests = "tests:\n  - { name: one, event: tool:pre, expect: { decision: continue } }\n";
        place.write("hanging.yaml", &(place.read("hanging.yaml") + tests));
        let arguments = match command {
            "try" => vec!["hooks", "try", "tool:pre", "--bundle", &bundle],
            _ => vec!["hooks", "test", &bundle],
        };
        let running = Running::start(heeding_hangups(place.command(&arguments)));
        assert_eq!(alive.line(), "runs");
        running.signal(signal);
        assert_eq!(running.end().code, 130, "{signal}");
        alive.check_closes();
    }
}

#[test]
fn an_answer_that_is_interrupted_ends_at_once() {
    let text = "word ".repeat(1000);
    let place = Place::with(json!([
        { "tools": [{ "name": "Glob", "input": { "pattern": "*" } }] },
        { "text": text, "delay_ms": 50 }
    ]));
    let mut running = Running::start(place.scripted(&["run", "Talk"]));
    running.until("● Glob");
    running.signal("INT");
    let Ran { code, out, .. } = running.end();
    assert_eq!(code, 130);
    assert!(out.len() < text.len(), "{out}");
    place.check_sealed(1);
}
