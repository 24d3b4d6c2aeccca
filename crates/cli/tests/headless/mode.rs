//! Approval modes.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Place, Ran};

fn call(name: &str, input: Value) -> Value {
    json!({ "tools": [{ "name": name, "input": input }] })
}

fn write(path: &str, content: &str) -> Value {
    call("Write", json!({ "file_path": path, "content": content }))
}

fn bash(command: &str) -> Value {
    call("Bash", json!({ "command": command }))
}

fn trust(place: &Place, project: &str) {
    std::fs::create_dir_all(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", project);
    assert_eq!(place.amplifier(&["hooks", "trust", "--yes"]).code, 0);
}

#[test]
fn nothing_changes_in_plan_mode_whatever_is_allowed() {
    let place = Place::with(json!([
        bash("cat notes"),
        bash("touch made"),
        write("written", "x"),
        call("Task", json!({ "task": "Try it in another way" })),
        bash("touch sub"),
        { "when": "plan mode", "text": "The sub-agent could not." },
        { "text": "Done." }
    ]));
    place.write("workspace/notes", "milk");
    place.rules(json!({ "confirm:*": "allow" }));
    for confirm in ["all", "off"] {
        let Ran { code, error, .. } = place.run(&["--mode", "plan", "--confirm", confirm, "--allow-denials", "Go on"]);
        assert_eq!(code, 0, "{error}");
        assert!(error.contains("● Bash  cat notes\n  └ milk\n"), "{error}");
        let sentence = "Read and search as needed, then describe the changes that you would make";
        let reasons = ["the command is not proven to only read", "`Write` may change something"];
        for reason in reasons {
            let denied = format!("Denied by hook plan: plan mode: {reason}. {sentence}");
            assert!(error.contains(&denied), "{error}");
        }
        for file in ["made", "written", "sub"] {
            assert!(!place.at("workspace").join(file).exists(), "{file}: {error}");
        }
    }
}

#[test]
fn a_hook_that_changes_a_command_late_changes_nothing_in_plan_mode() {
    let place =
        Place::with(json!([bash("ls"), { "when": "plan mode", "text": "It was denied." }, { "text": "Done." }]));
    place.rules(json!({ "confirm:*": "allow" }));
    place.write(
        "home/bundle.yaml",
        "hooks: [{ rule: swap, on: tool:pre, priority: 1000000, modify: { set: { /tool_input/command: touch made } } }]\n",
    );
    assert_eq!(place.run(&["--mode", "plan", "--confirm", "off", "Go on"]).out, "It was denied.\n");
    assert!(!place.at("workspace/made").exists());
}

/// A place whose workspace is a repository with a commit.
fn repository() -> Place {
    let place = Place::with(json!([]));
    for (file, content) in
        [("clean", "1"), ("changed", "1"), ("staged", "1"), (".gitignore", "ignored\nbuild/\n"), ("ignored", "1")]
    {
        place.write(&format!("workspace/{file}"), content);
    }
    git(&place, &["init", "--quiet"]);
    git(&place, &["add", "."]);
    git(&place, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"]);
    place.write("workspace/changed", "2");
    place.write("workspace/staged", "2");
    git(&place, &["add", "staged"]);
    place.write("workspace/untracked", "1");
    place
}

fn git(place: &Place, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(place.at("workspace")).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(git.status().unwrap().success());
}

/// Runs the task in the mode, and returns the files whose changes needed approval.
fn asked(place: &Place, calls: &[Value]) -> Vec<String> {
    place.answers(json!([calls, &[json!({ "text": "Done." })]].concat()));
    let Ran { code, out, error } = place.run(&["--mode", "accept-edits", "--allow-denials", "Go on"]);
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{error}");
    let lines = error.lines().filter(|line| line.contains("Denied by hook confirm"));
    lines.map(|line| line.rsplit('`').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn writes_that_git_can_undo_are_accepted_and_no_others() {
    let place = repository();
    std::fs::create_dir(place.at("workspace/folder")).unwrap();
    std::os::unix::fs::symlink("../changed", place.at("workspace/folder/link")).unwrap();
    let files = [
        "clean",
        "staged",
        "new",
        "folder/new",
        "other/deep/new",
        "changed",
        "untracked",
        "ignored",
        "build/new",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "folder/link",
        "sub/.git",
    ];
    let writes: Vec<Value> = files.iter().map(|file| write(file, "3")).collect();
    let expected =
        ["changed", "untracked", "ignored", "build/new", ".git/hooks/pre-commit", ".GIT/config", "changed", "sub/.git"];
    assert_eq!(asked(&place, &writes), expected);
    for file in &files[..5] {
        assert_eq!(place.read(&format!("workspace/{file}")), "3", "{file}");
    }
    assert_eq!(place.read("workspace/changed"), "2");
    // Other tools still need approval.
    assert_eq!(asked(&place, &[bash("cargo test")]), ["cargo test"]);
}

#[test]
fn commands_that_read_here_create_folders_or_change_one_file_are_accepted_and_no_others() {
    let place = repository();
    let accepted = [
        "cat clean | head -1",
        "git status",
        "mkdir -p folder/deep",
        "touch made",
        "sed -i s/1/2/ clean",
        "sed -i s/2/4/ clean",
    ];
    let calls: Vec<Value> = accepted.iter().map(|command| bash(command)).collect();
    assert!(asked(&place, &calls).is_empty());
    assert_eq!(place.read("workspace/clean"), "4");
    assert!(place.at("workspace/made").exists() && place.at("workspace/folder/deep").exists());
    let refused = [
        "sed -i s/2/3/ changed",
        "touch ignored",
        "mkdir -p .git/x",
        "cat /etc/hostname",
        "cat ../home/config.toml",
        "sed -i s/1/2/ clean staged",
        "rm clean",
        "echo x > untracked",
        "printenv",
        "cat clean && make",
    ];
    let calls: Vec<Value> = refused.iter().map(|command| bash(command)).collect();
    assert_eq!(asked(&place, &calls), refused);
}

#[test]
fn an_accepted_command_fails_if_its_file_changes_before_it_runs() {
    let place = repository();
    let change = "echo mine > \"$AMPLIFIER_WORKSPACE/clean\"";
    let hook = json!({ "name": "other", "on": "tool:pre", "when": "tool_name == 'Glob'", "command": change });
    place.write("home/bundle.yaml", &json!({ "hooks": [hook] }).to_string());
    let calls = json!({ "tools": [
        { "name": "Bash", "input": { "command": "sed -i s/m/x/ clean" } },
        { "name": "Glob", "input": { "pattern": "*" } },
    ] });
    assert!(asked(&place, &[calls]).is_empty());
    assert_eq!(place.read("workspace/clean"), "mine\n");
}

#[test]
fn what_the_agent_wrote_itself_can_be_changed_again_but_not_what_another_wrote_since() {
    let place = repository();
    let edit =
        |from: &str, to: &str| call("Edit", json!({ "file_path": "clean", "old_string": from, "new_string": to }));
    assert!(asked(&place, &[write("clean", "one"), edit("one", "two"), edit("two", "three")]).is_empty());
    assert_eq!(place.read("workspace/clean"), "three");

    git(&place, &["checkout", "--quiet", "clean"]);
    place.rules(json!({ "confirm:Run `sh -c 'echo mine > clean'`?": "allow" }));
    let calls = [write("clean", "one"), bash("sh -c 'echo mine > clean'"), write("clean", "two")];
    assert_eq!(asked(&place, &calls), ["clean"]);
    assert_eq!(place.read("workspace/clean"), "mine\n");
}

#[test]
fn an_accepted_write_fails_if_the_file_changes_before_the_tool_runs() {
    let place = repository();
    // The second call of the response is checked after the first one was accepted, and before it runs.
    let change = "echo mine > \"$AMPLIFIER_WORKSPACE/clean\"";
    let hook = json!({ "name": "other", "on": "tool:pre", "when": "tool_name == 'Glob'", "command": change });
    place.write("home/bundle.yaml", &json!({ "hooks": [hook] }).to_string());
    let calls = json!({ "tools": [
        { "name": "Write", "input": { "file_path": "clean", "content": "one" } },
        { "name": "Glob", "input": { "pattern": "*" } },
    ] });
    assert!(asked(&place, &[calls]).is_empty());
    assert_eq!(place.read("workspace/clean"), "mine\n");
}

#[test]
fn without_a_repository_every_write_needs_approval() {
    let place = Place::with(json!([]));
    assert_eq!(asked(&place, &[write("new", "1")]), ["new"]);
}

#[test]
fn a_configured_program_of_the_repository_does_not_run() {
    let place = repository();
    let ran = place.at("ran").display().to_string();
    let program = format!("touch {ran}; cat");
    git(&place, &["config", "core.fsmonitor", &program]);
    git(&place, &["config", "filter.f.clean", &program]);
    git(&place, &["config", "filter.f.smudge", &program]);
    place.write("workspace/.gitattributes", "* filter=f diff=f\n");
    git(&place, &["config", "diff.f.textconv", &program]);
    assert!(asked(&place, &[write("clean", "3"), write("new", "3")]).is_empty());
    assert!(!place.at("ran").exists());
}

#[test]
fn a_forbidden_mode_is_refused_or_becomes_the_next_stricter_one() {
    let place = Place::with(json!([bash("touch made"), { "text": "Done." }]));
    trust(&place, "session: { forbid_modes: [accept-edits] }\n");
    let refused = "amplifier: mode `accept-edits` is forbidden by `forbid_modes` in a bundle or the configuration; \
                   expected one of: ask, plan, deny";
    place.run(&["--mode", "accept-edits", "--allow-denials", "Go on"]).check_usage(refused);
    let mode = || {
        let report: Value = serde_json::from_str(&place.amplifier(&["doctor", "--json"]).out).unwrap();
        let setting = |name: &str| {
            let found = report["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name).cloned();
            found.map(|setting| setting["value"].as_str().unwrap().to_owned()).unwrap_or_default()
        };
        (setting("mode"), setting("forbid_modes"))
    };
    let expected = |mode: &str, forbidden: &str| (mode.to_owned(), forbidden.to_owned());
    place.write("home/config.toml", "mode = \"accept-edits\"\n");
    assert_eq!(mode(), expected("ask", "accept-edits"));
    place.write("home/config.toml", "mode = \"accept-edits\"\nforbid_modes = [\"ask\"]\n");
    assert_eq!(mode(), expected("plan", "ask, accept-edits"));
    place.write("home/config.toml", "mode = \"deny\"\nforbid_modes = [\"ask\"]\n");
    assert_eq!(mode(), expected("deny", "ask, accept-edits"));
    place.write("home/config.toml", "forbid_modes = [\"deny\"]\n");
    place
        .run(&["Go on"])
        .check_usage("amplifier: `forbid_modes`: mode `deny` cannot be forbidden; expected `ask` or `accept-edits`");
}

#[test]
fn a_project_can_only_make_the_mode_stricter() {
    let place = Place::with(json!([bash("touch made"), { "text": "Done." }]));
    let mode = || {
        let report: Value = serde_json::from_str(&place.amplifier(&["doctor", "--json"]).out).unwrap();
        let mut settings = report["settings"].as_array().unwrap().iter();
        settings.find(|setting| setting["name"] == "mode").unwrap()["value"].as_str().unwrap().to_owned()
    };
    for (user, project, expected) in [
        ("ask", "accept-edits", "ask"),
        ("accept-edits", "ask", "ask"),
        ("ask", "plan", "plan"),
        ("plan", "deny", "plan"),
        ("deny", "plan", "deny"),
    ] {
        trust(&place, &format!("session: {{ mode: {project} }}\n"));
        place.write("home/bundle.yaml", &format!("session: {{ mode: {user} }}\n"));
        assert_eq!(mode(), expected, "{user} {project}");
    }
}
