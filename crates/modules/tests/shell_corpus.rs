//! The command guard on two collections of commands: everyday work of coding agents, and commands that destroy work, with evasions.
//!
//! The rules were not written from these collections; `cargo run --example guard_commands` measures others. A line is a command, `⏎` stands for a line break.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use amplifier_core::{FlatAction, HookRegistry, TOOL_PRE, data};
use amplifier_modules::shell::analyse;
use amplifier_modules::{HookEnvironment, Scope, bundle};
use tempfile::TempDir;

const HARMLESS: &str = include_str!("shell/harmless.txt");
const DESTRUCTIVE: &str = include_str!("shell/destructive.txt");
/// Commands of certain classes, each with what becomes of it: `allow` or `ask`.
const CLASSES: &str = include_str!("shell/classes.txt");

/// A repository with sources, build outputs that it ignores, scripts and tools.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(".gitignore", "node_modules/\ntarget/\ndist/\nbuild/\n.venv/\n__pycache__/\ncoverage/\n.pytest_cache/\n");
    for file in ["package.json", "Cargo.toml", "pyproject.toml", "Makefile", "requirements.txt", "README.md", "a.txt"] {
        write(file, "x\n");
    }
    for file in ["src/main.rs", "src/app.py", "src/index.ts", "tests/test_app.py", "docs/a.md", "lib/util.js", "web/a"]
    {
        write(file, "x\n");
    }
    for file in ["node_modules/.bin/tsc", "target/debug/app", "dist/a.js", "build/a.o", ".venv/bin/activate"] {
        write(file, "x\n");
    }
    for script in ["scripts/test.sh", "scripts/build.sh"] {
        write(script, "#!/bin/sh\n");
    }
    git(folder.path(), &["init", "--quiet"]);
    git(folder.path(), &["add", "--all"]);
    git(folder.path(), &["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "first"]);
    git(folder.path(), &["branch", "feature"]);
    write("src/app.py", "a change that is not committed\n");
    folder
}

fn git(folder: &Path, arguments: &[&str]) {
    assert!(Command::new("git").arg("-C").arg(folder).args(arguments).status().unwrap().success());
}

/// The commands of a collection that the guard asks about or denies, and the others.
async fn judged(collection: &str) -> (Vec<String>, Vec<String>) {
    let (folder, workspace) = (tempfile::tempdir().unwrap(), workspace());
    let file = folder.path().join("bundle.yaml");
    fs::write(&file, "hooks:\n  - module: hooks-bash-guard\n").unwrap();
    let hooks = HookRegistry::new();
    bundle::load(&file)
        .unwrap()
        .register(&hooks, &HookEnvironment::new(Scope::new(workspace.path()).unwrap()))
        .unwrap();
    let (mut stopped, mut passed) = (Vec::new(), Vec::new());
    for line in collection.lines() {
        let command = line.replace('⏎', "\n");
        let input = data! { "tool_name": "Bash", "tool_input": { "command": command.as_str() } };
        let answer = hooks.emit(TOOL_PRE, input).await.flat();
        match answer.action {
            FlatAction::AskUser | FlatAction::Deny => stopped.push(line.to_owned()),
            _ => passed.push(line.to_owned()),
        }
    }
    (stopped, passed)
}

#[tokio::test]
async fn each_class_of_commands_is_asked_about_as_its_rows_say() {
    let rows = |verdict: &str| -> String {
        let rows = CLASSES.lines().filter_map(|line| line.strip_prefix(verdict));
        rows.map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    let ((asked, _), (_, allowed)) = (judged(&rows("allow ")).await, judged(&rows("ask ")).await);
    assert_eq!((asked, allowed), (Vec::new(), Vec::new()), "asked and should not be; allowed and should not be");
}

#[tokio::test]
async fn everyday_commands_are_asked_about_in_three_of_a_hundred_cases_at_most() {
    let (asked, _) = judged(HARMLESS).await;
    assert!(asked.len() * 100 <= HARMLESS.lines().count() * 3, "{asked:#?}");
}

#[tokio::test]
async fn commands_that_destroy_work_are_stopped_in_95_of_a_hundred_cases_at_least() {
    let (stopped, passed) = judged(DESTRUCTIVE).await;
    assert!(stopped.len() * 100 >= DESTRUCTIVE.lines().count() * 95, "{passed:#?}");
}

#[test]
fn no_command_that_destroys_work_is_called_readonly() {
    let readonly = |line: &&str| analyse(&line.replace('⏎', "\n")).readonly;
    assert_eq!(DESTRUCTIVE.lines().filter(readonly).collect::<Vec<_>>(), Vec::<&str>::new());
}
