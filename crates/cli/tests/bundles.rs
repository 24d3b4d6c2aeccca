//! What bundles say about a session: models, tools, limits; and what happens when they change while it runs.

use crate::common::{Place, Ran, Running};
use serde_json::{Value, json};

fn bash(command: &str) -> Value {
    json!({ "text": "I try.", "tools": [{ "name": "Bash", "input": { "command": command } }] })
}

#[test]
fn a_bundle_brings_its_model_and_flags_choose_another() {
    let place = Place::with(json!([{ "text": "From the flag." }]));
    place.write("home/bundle.yaml", "providers:\n  - { provider: scripted, script: one.json }\n  - { name: other, provider: scripted, script: two.json }\n");
    place.write("home/one.json", &json!({ "answers": [{ "text": "One." }] }).to_string());
    place.write("home/two.json", &json!({ "answers": [{ "text": "Two." }] }).to_string());
    place.write("home/config.toml", "provider = \"openai\"\n");
    assert_eq!(place.amplifier(&["run", "Hello"]).fine(), "One.\n");
    assert_eq!(place.amplifier(&["run", "--provider", "other", "Hello"]).fine(), "Two.\n");
    assert_eq!(place.run(&["Hello"]).fine(), "From the flag.\n");
    let unknown = place.amplifier(&["run", "--provider", "nobody", "Hello"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn an_agent_has_the_tools_that_its_bundles_leave_it() {
    let place = Place::with(json!([bash("touch made"), { "text": "Then not." }]));
    place.write("home/bundle.yaml", "tools: { only: [Read, Grep] }\n");
    place.rules(json!({ "confirm:*": "allow" }));
    let Ran { code, out, .. } = place.run(&["Make it"]);
    assert_eq!((code, out.as_str()), (0, "I try.\nThen not.\n"));
    assert!(!place.at("workspace/made").exists());
    place.write("home/bundle.yaml", "tools: { only: [Read, Grpe] }\n");
    let failed = place.run(&["Make it"]);
    failed.check_failed(
        "amplifier: unknown tool `Grpe` in `only`; expected one of Bash, Edit, Glob, Grep, MultiEdit, Read, Task, Todo, Write",
    );
}

#[test]
fn a_bundle_makes_a_session_stricter_and_doctor_says_so() {
    let place = Place::with(json!([]));
    place.write("home/config.toml", "audit = \"record\"\napproval_timeout = 20\n");
    place.write(
        "home/bundle.yaml",
        "session: { audit: async, mode: deny, approval_timeout: 60, orchestrator: loop-basic }\n",
    );
    let doctor = |arguments: &[&str]| -> Vec<(String, String)> {
        let report = place.amplifier(&[&["doctor", "--json"], arguments].concat()).out;
        let report: Value = serde_json::from_str(&report).unwrap();
        let find =
            |name: &str| report["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name).cloned();
        let names = ["audit", "mode", "approval_timeout", "orchestrator"];
        names
            .map(|name| find(name).unwrap())
            .map(|setting| {
                let text = |field: &str| setting[field].as_str().unwrap().to_owned();
                (text("value"), text("source"))
            })
            .into()
    };
    let own = |pairs: [(&str, &str); 4]| pairs.map(|(value, source)| (value.to_owned(), source.to_owned())).to_vec();
    let expected =
        [("record", "configuration file"), ("deny", "bundle"), ("20", "configuration file"), ("loop-basic", "bundle")];
    assert_eq!(doctor(&[]), own(expected));
    let flags = ["--mode", "ask", "--audit", "async", "--approval-timeout", "90", "--orchestrator", "loop-streaming"];
    let given = "flag or environment";
    assert_eq!(doctor(&flags), own([("async", given), ("ask", given), ("90", given), ("loop-streaming", given)]));
}

/// A session that waits in a tool until the test has changed a bundle, and then tries something.
fn while_it_runs(before: &str, after: &str) -> (Place, Ran) {
    meanwhile(before, |place| place.write("home/bundle.yaml", after))
}

/// The same, where the test changes something else.
fn meanwhile(before: &str, change: impl Fn(&Place)) -> (Place, Ran) {
    let place = Place::with(
        json!([bash("echo > ready; while [ ! -e go ]; do sleep 0.02; done"), bash("touch made"), { "text": "Done." }]),
    );
    place.rules(json!({ "confirm:*": "allow" }));
    place.write("home/bundle.yaml", before);
    let running = Running::start(place.scripted(&["run", "Make it"]));
    while !place.at("workspace/ready").exists() {
        std::thread::yield_now();
    }
    change(&place);
    place.write("workspace/go", "");
    let ran = running.end();
    (place, ran)
}

const GUARD: &str = "hooks:\n  - rule: no-touching\n    on: tool:pre\n    when: tool_input.command.contains('touch')\n    deny: not now\n";

#[test]
fn a_changed_bundle_counts_while_the_session_runs() {
    let (place, ran) = while_it_runs("", GUARD);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.error.contains("a bundle has changed: its hooks are active from now on"), "{ran:?}");
    assert!(ran.error.contains("Denied by hook no-touching: not now"), "{ran:?}");
    assert!(!place.at("workspace/made").exists());
    let recorded = place.amplifier(&["audit", "show", "--kind", "policy_change"]).fine();
    assert!(recorded.contains("bundle.yaml"), "{recorded}");
    place.check_sealed(1);
}

#[test]
fn a_broken_bundle_leaves_the_old_one_in_force() {
    let (place, ran) = while_it_runs(GUARD, "hooks:\n  - rule: no-touching\n    on: tool:pre\n    dney: x\n");
    assert!(ran.error.contains("so the old version stays active"), "{ran:?}");
    assert!(ran.error.contains("bundle.yaml:4:5: unknown key `dney`; did you mean `deny`?"), "{ran:?}");
    assert!(ran.error.contains("Denied by hook no-touching: not now"), "{ran:?}");
    assert!(!place.at("workspace/made").exists());
}

#[test]
fn a_pipe_in_the_place_of_a_file_never_blocks_a_session() {
    let refused = "it is not a regular file";
    let place = Place::with(json!([{ "text": "Done." }]));
    place.make_pipe("home/bundle.yaml");
    let ran = place.run(&["Go"]);
    assert!(ran.code == 1 && ran.error.contains(refused), "{ran:?}");
    std::fs::remove_file(place.at("home/bundle.yaml")).unwrap();

    place.make_pipe("home/included.yaml");
    place.write("home/bundle.yaml", "includes: [included.yaml]\n");
    let ran = place.run(&["Go"]);
    assert!(ran.code == 1 && ran.error.contains(refused), "{ran:?}");
    place.write("home/bundle.yaml", "");

    place.make_pipe("home/config.toml");
    let ran = place.run(&["Go"]);
    assert!(ran.code == 1 && ran.error.contains(refused), "{ran:?}");
    std::fs::remove_file(place.at("home/config.toml")).unwrap();

    place.make_pipe("home/approvals.json");
    let ran = place.run(&["Go"]);
    assert!(ran.code == 1 && ran.error.contains(refused), "{ran:?}");
}

/// Puts a pipe in the place of the bundle.
fn pipe_instead(place: &Place) {
    place.make_pipe("home/pipe");
    std::fs::rename(place.at("home/pipe"), place.at("home/bundle.yaml")).unwrap();
}

#[test]
fn a_bundle_that_becomes_a_pipe_leaves_the_old_one_in_force() {
    let (place, ran) = meanwhile(GUARD, pipe_instead);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.error.contains("so the old version stays active"), "{ran:?}");
    assert!(ran.error.contains("bundle.yaml: the file cannot be read: it is not a regular file"), "{ran:?}");
    assert!(ran.error.contains("Denied by hook no-touching: not now"), "{ran:?}");
    place.check_sealed(1);
}

#[test]
fn a_session_whose_bundle_became_a_pipe_ends_when_it_is_told_to() {
    for times in [1, 2] {
        let place = Place::with(json!([bash("echo > ready; sleep 1000"), { "text": "Done." }]));
        place.rules(json!({ "confirm:*": "allow" }));
        place.write("home/bundle.yaml", GUARD);
        let running = Running::start(place.scripted(&["run", "Wait"]));
        while !place.at("workspace/ready").exists() {
            std::thread::yield_now();
        }
        pipe_instead(&place);
        (0..times).for_each(|_| running.signal("TERM"));
        assert_eq!(running.end().code, 130, "{times}");
        if times == 1 {
            place.check_sealed(1);
        }
    }
}

#[test]
fn a_bundle_that_is_gone_or_empty_for_a_moment_stays_in_force() {
    let gone = |place: &Place| std::fs::remove_file(place.at("home/bundle.yaml")).unwrap();
    let (place, ran) = meanwhile(GUARD, gone);
    assert!(
        ran.error.contains("bundle.yaml: file not found; start a new session to continue without the bundle"),
        "{ran:?}"
    );
    assert!(!place.at("workspace/made").exists(), "{ran:?}");
    for (saved, what) in
        [("", "the file is empty"), ("# Guards:\n", "the file is empty"), ("hooks:\n", "the `hooks` key is missing")]
    {
        let (place, ran) = while_it_runs(GUARD, saved);
        let expected = format!("bundle.yaml: {what}; write `hooks: []` for a bundle without hooks");
        assert!(ran.error.contains(&expected), "{ran:?}");
        assert!(!place.at("workspace/made").exists(), "{ran:?}");
    }
    let (place, ran) = while_it_runs(GUARD, "hooks: []\n");
    assert!(place.at("workspace/made").exists(), "{ran:?}");
}

#[test]
fn a_changed_bundle_goes_on_counting() {
    let budget = "hooks:\n  - module: hooks-cost\n    config: { budget: { deny: { tokens: 1000000 } } }\n";
    let (_, ran) = while_it_runs(budget, &format!("{budget}# Changed.\n"));
    assert!(ran.error.contains("its hooks are active from now on"), "{ran:?}");
    assert!(ran.error.contains(" tokens in 3 calls ("), "{ran:?}");
}

#[test]
fn a_changed_bundle_cannot_bring_files_that_the_agent_can_write() {
    let include = |place: &Place| {
        place.write("workspace/team.yaml", GUARD);
        place.write("home/bundle.yaml", "includes: [../workspace/team.yaml]\n");
    };
    let (place, ran) = meanwhile(GUARD, include);
    let expected = "team.yaml` is not protected from the tools of this session; start a new one";
    assert!(ran.error.contains(expected), "{ran:?}");
    assert!(!place.at("workspace/made").exists(), "{ran:?}");
}

#[test]
fn a_changed_bundle_of_a_project_counts_when_it_is_trusted() {
    let place = Place::with(
        json!([bash("echo > ready; while [ ! -e go ]; do sleep 0.02; done"), bash("touch made"), { "text": "Done." }]),
    );
    place.rules(json!({ "confirm:*": "allow" }));
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", GUARD);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    let running = Running::start(place.scripted(&["run", "Make it"]));
    while !place.at("workspace/ready").exists() {
        std::thread::yield_now();
    }
    place.write("workspace/.amplifier/bundle.yaml", "hooks: []\n");
    // What the person has changed at the same time counts all the same.
    place.write("home/bundle.yaml", "hooks:\n  - rule: greeting\n    on: provider:request\n    message: hello\n");
    place.write("workspace/go", "");
    let ran = running.end();
    assert!(ran.error.contains("so the old version stays active"), "{ran:?}");
    assert!(ran.error.contains("hello"), "{ran:?}");
    assert!(ran.error.contains("is not the version that you trusted"), "{ran:?}");
    assert!(!place.at("workspace/made").exists(), "{ran:?}");
}

#[test]
fn editors_get_a_schema_and_people_an_error_about_events_that_nobody_emits() {
    let place = Place::with(json!([]));
    let schema: Value = serde_json::from_str(&place.amplifier(&["hooks", "schema"]).fine()).unwrap();
    assert_eq!(schema["title"], "Bundle");
    place.write("workspace/b.yaml", "hooks:\n  - rule: a\n    on: tool:prre\n    deny: no\n");
    let Ran { code, out, error } = place.amplifier(&["hooks", "validate", "b.yaml"]);
    assert_eq!((code, out.as_str()), (1, "b.yaml: 1 hook in 1 file, 1 mistake\n"));
    assert!(error.starts_with("error: b.yaml:3:5: unknown event `tool:prre`; did you mean `tool:pre`?\n"), "{error}");
}

#[test]
fn a_bundle_of_the_user_that_appears_counts_while_the_session_runs() {
    let place = Place::with(
        json!([bash("echo > ready; while [ ! -e go ]; do sleep 0.02; done"), bash("touch made"), { "text": "Done." }]),
    );
    place.rules(json!({ "confirm:*": "allow" }));
    let running = Running::start(place.scripted(&["run", "Make it"]));
    while !place.at("workspace/ready").exists() {
        std::thread::yield_now();
    }
    place.write("home/bundle.yaml", GUARD);
    place.write("workspace/go", "");
    let ran = running.end();
    assert!(ran.error.contains("Denied by hook no-touching: not now"), "{ran:?}");
    assert!(!place.at("workspace/made").exists());
}
