//! `changes(globs)`: the commands that change a protected file, and everyday commands that do not.

use std::fs;
use std::sync::Arc;

use amplifier_core::{EventData, data};
use amplifier_modules::{Condition, Scope};
use tempfile::TempDir;

/// Commands, each after `yes` or `no`: whether they may change something below `infra`, or a file called `.env`.
const COMMANDS: &str = include_str!("shell/changes.txt");
const HARMLESS: &str = include_str!("shell/harmless.txt");

const CONDITION: &str = r#"changes(["infra/**", "**/.env"])"#;

/// A workspace with a folder to protect, a source folder and an environment file.
fn workspace() -> (TempDir, Arc<Scope>) {
    let folder = tempfile::tempdir().unwrap();
    for file in
        ["infra/main.tf", "src/app.py", "services/api/.env", "docs/a.md", "Makefile", "new/b.txt", "b/infra/x.tf"]
    {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "x\n").unwrap();
    }
    std::os::unix::fs::symlink("infra", folder.path().join("link")).unwrap();
    let scope = Arc::new(Scope::new(folder.path()).unwrap());
    (folder, scope)
}

fn holds(condition: &str, scope: &Scope, data: &EventData) -> bool {
    Condition::compile(condition).unwrap().holds("tool:pre", data, scope).unwrap()
}

fn bash(command: &str) -> EventData {
    data! { "tool_name": "Bash", "tool_input": { "command": command } }
}

#[test]
fn each_command_is_judged_as_its_row_says() {
    let (_folder, scope) = workspace();
    let mut wrong = Vec::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expected, command) = line.split_once(' ').unwrap();
        let command = command.replace('⏎', "\n");
        if holds(CONDITION, &scope, &bash(&command)) != (expected == "yes") {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{} are judged otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn everyday_commands_are_taken_for_changes_in_five_of_a_hundred_cases_at_most() {
    let (_folder, scope) = workspace();
    let is_change = |line: &&str| holds(CONDITION, &scope, &bash(&line.replace('⏎', "\n")));
    let found: Vec<&str> = HARMLESS.lines().filter(is_change).collect();
    assert!(found.len() * 100 <= HARMLESS.lines().count() * 5, "{}: {found:#?}", found.len());
}

#[test]
fn one_condition_holds_for_every_tool_that_changes_files() {
    let (_folder, scope) = workspace();
    let call = |tool: &str, path: &str| data! { "tool_name": tool, "tool_input": { "file_path": path } };
    for (tool, path, expected) in [
        ("Write", "infra/a.tf", true),
        ("Edit", "docs/../infra/a.tf", true),
        ("MultiEdit", "link/a.tf", true),
        ("Write", "services/web/.env", true),
        ("Write", "src/app.py", false),
        ("Edit", "infrastructure/a.tf", false),
        ("Read", "infra/a.tf", false),
        // The input of other tools is unknown.
        ("mcp__files__put", "src/app.py", true),
    ] {
        assert_eq!(holds(CONDITION, &scope, &call(tool, path)), expected, "{tool} {path}");
    }
    let missing = data! { "tool_name": "Write", "tool_input": {} };
    assert!(holds(CONDITION, &scope, &missing), "an unknown file may be any");
}

#[test]
fn a_folder_without_wildcards_stands_for_everything_in_it() {
    let (_folder, scope) = workspace();
    for pattern in ["infra", "infra/**", "{infra,ops}/**", "i*/**", "infra/*.tf"] {
        let condition = format!("changes({pattern:?})");
        assert!(holds(&condition, &scope, &bash("sed -i s/a/b/ infra/main.tf")), "{pattern}");
        assert!(holds(&condition, &scope, &bash("rm -rf infra")), "{pattern}");
        assert!(!holds(&condition, &scope, &bash("sed -i s/a/b/ src/app.py")), "{pattern}");
    }
}

#[test]
fn a_pattern_from_the_event_works_as_a_literal_one() {
    let (_folder, scope) = workspace();
    let data = data! { "tool_name": "Bash", "tool_input": { "command": "touch infra/x", "description": "infra/**" } };
    assert!(holds("changes(tool_input.description)", &scope, &data));
    assert!(!holds("changes('docs/' + tool_input.description)", &scope, &data));
}

#[test]
fn long_commands_and_patterns_take_no_long_time() {
    let (_folder, scope) = workspace();
    let pattern = "**/a*".repeat(60).replace("a***", "a*/**");
    let condition = format!("changes([{:?}, \"infra/**\"])", &pattern[..pattern.len().min(300)]);
    let path = "a*/**/".repeat(2_000);
    let begun = std::time::Instant::now();
    holds(&condition, &scope, &bash(&format!("touch {path}x")));
    holds(&condition, &scope, &bash(&"touch a/b ".repeat(900)));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
