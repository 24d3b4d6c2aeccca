//! What an agent or a project may try to get around the hooks of bundles.

use std::process::Command;

use crate::common::Place;
use serde_json::{Value, json};

fn call(tool: &str, input: Value) -> Value {
    json!({ "text": "I try.", "tools": [{ "name": tool, "input": input }] })
}

fn bash(command: &str) -> Value {
    call("Bash", json!({ "command": command }))
}

fn place(answers: Value) -> Place {
    let place = Place::with(answers);
    place.rules(json!({ "confirm:*": "allow" }));
    place
}

fn run(place: &Place, arguments: &[&str]) {
    let ran = place.run(arguments);
    assert!(ran.code == 0 && ran.out.ends_with("Done.\n"), "{ran:?}");
}

#[test]
fn an_agent_does_not_leave_its_confinement_through_a_filter_of_git() {
    let filter =
        "git config filter.x.clean 'touch ../home/owned; cat'; echo '* filter=x' > .gitattributes; echo b > a.txt";
    let place = place(json!([bash(filter), { "text": "Done." }]));
    place.write("home/bundle.yaml", "hooks:\n  - module: hooks-status-context\n    config: { every: call }\n");
    place.write("workspace/a.txt", "a\n");
    for arguments in [&["init", "--quiet"][..], &["add", "a.txt"]] {
        assert!(Command::new("git").args(arguments).current_dir(place.at("workspace")).status().unwrap().success());
    }
    run(&place, &["Do it"]);
    assert!(place.read("workspace/.git/config").contains("owned"));
    assert!(!place.at("home/owned").exists());
}

/// It leaves something behind, which it could not if it were confined.
const LINTING: &str = "hooks:\n  - module: hooks-linter\n    config:\n      linters:\n        - { files: '*.txt', command: [sh, tools/lint.sh], confine: false }\n";

#[test]
fn a_linter_of_a_project_is_pinned_and_out_of_reach() {
    let write = |path: &str, text: &str| call("Write", json!({ "file_path": path, "content": text }));
    let place = place(json!([write("a.txt", "a"), { "text": "Done." }]));
    for folder in ["workspace/.amplifier", "workspace/tools"] {
        std::fs::create_dir(place.at(folder)).unwrap();
    }
    place.write("workspace/.amplifier/bundle.yaml", LINTING);
    place.write("workspace/tools/lint.sh", "touch linted\n");
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    run(&place, &["Do it"]);
    std::fs::remove_file(place.at("workspace/linted")).unwrap();

    // With its own tools, whichever.
    place.answers(json!([
        bash("echo 'touch owned' > tools/lint.sh"),
        call("Edit", json!({ "file_path": "tools/lint.sh", "old_string": "linted", "new_string": "owned" })),
        write("b.txt", "b"),
        { "text": "Done." }
    ]));
    run(&place, &["Do it"]);
    assert_eq!(place.read("workspace/tools/lint.sh"), "touch linted\n");
    assert!(place.at("workspace/linted").exists() && !place.at("workspace/owned").exists());

    // By somebody else.
    place.write("workspace/tools/lint.sh", "touch owned\n");
    place.answers(json!([write("c.txt", "c"), { "text": "Done." }]));
    let ran = place.run(&["Do it"]);
    assert!(ran.error.contains("lint.sh` has other content"), "{ran:?}");
    assert!(!place.at("workspace/owned").exists());
}

#[test]
fn all_that_a_hook_is_made_of_is_out_of_reach() {
    let bundle = "hooks:\n  - command: sh guard.sh\n    name: guard\n    on: prompt:submit\n    files: [library.sh]\n    env: { RULES: rules.json }\n  \
                  - module: hooks-notify\n    config: { desktop: false, command: sh tell.sh }\n";
    let files = ["guard.sh", "library.sh", "rules.json", "tell.sh"];
    let attempts = files.map(|file| bash(&format!("echo 'exit 1' > hooks/{file}")));
    let place = place(attempts.into_iter().chain([json!({ "text": "Done." })]).collect());
    std::fs::create_dir(place.at("workspace/hooks")).unwrap();
    place.write("workspace/hooks/bundle.yaml", bundle);
    files.iter().for_each(|file| place.write(&format!("workspace/hooks/{file}"), "# as it was\n"));
    run(&place, &["--bundle", "hooks/bundle.yaml", "Do it"]);
    let now = files.map(|file| place.read(&format!("workspace/hooks/{file}")));
    assert_eq!(now, [const { "# as it was\n" }; 4]);
}

#[test]
fn what_a_module_of_a_project_writes_does_not_end_trust_in_it() {
    let place = place(json!([{ "text": "Done." }]));
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write(
        "workspace/.amplifier/bundle.yaml",
        "hooks:\n  - module: hooks-logging\n    config: { path: log.jsonl }\n  - module: hooks-metrics\n    config: { file: m.prom }\n",
    );
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    for _ in 0..3 {
        assert_eq!(place.run(&["Do it"]).error, "");
    }
    assert!(place.at("workspace/.amplifier/log.jsonl").exists() && place.at("workspace/.amplifier/m.prom").exists());
}
