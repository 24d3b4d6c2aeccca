//! The names that approval rules may give to tool calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may fail loudly")]

use amplifier_agent::tool::Workspace;
use amplifier_core::{EventData, OperationPart, OperationSource, TOOL_PRE, data};
use amplifier_host::{Confirm, WorkspaceOperations};
use serde_json::json;
use tempfile::TempDir;

fn workspace() -> (TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    for path in ["src/a", ".git", ".secrets", "docs", "guarded"] {
        std::fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
    let workspace = Workspace::new(folder.path()).unwrap().protect(["guarded"]);
    (folder, workspace)
}

async fn described(hook: &str, confirm: Confirm, data: EventData) -> Vec<String> {
    let (_folder, workspace) = workspace();
    let operations = WorkspaceOperations::new(workspace, confirm);
    let parts = operations.parts(hook, &TOOL_PRE.name(), &data).await.unwrap();
    let part = |part: &OperationPart| {
        let width = |width: &amplifier_core::OperationWidth| match width.allows {
            true => width.operation.clone(),
            false => format!("!{}", width.operation),
        };
        part.widths.iter().map(width).collect::<Vec<_>>().join(" | ")
    };
    parts.iter().map(part).collect()
}

async fn of_file(path: &str) -> Vec<String> {
    described("confirm", Confirm::Writes, data! { "tool_name": "Write", "tool_input": json!({ "file_path": path }) })
        .await
}

async fn of_command(command: &str) -> Vec<String> {
    described("confirm", Confirm::Writes, data! { "tool_name": "Bash", "tool_input": json!({ "command": command }) })
        .await
}

#[tokio::test]
async fn a_write_is_named_by_its_file_its_folders_and_the_workspace() {
    assert_eq!(of_file("src/a/b.rs").await, ["write src/a/b.rs | write src/a/** | write src/** | write **"]);
    assert_eq!(of_file("docs/../src/a/./b.rs").await, ["write src/a/b.rs | write src/a/** | write src/** | write **"]);
    assert_eq!(of_file("notes.md").await, ["write notes.md | write **"]);
}

#[tokio::test]
async fn tools_of_amplifier_are_named_by_what_they_do() {
    for (tool, input, expected) in [
        (
            "bash",
            json!({ "command": "cargo test --lib" }),
            &["run cargo test --lib | run cargo test * | run cargo * | run **"][..],
        ),
        ("write_file", json!({ "file_path": "notes.md" }), &["write notes.md | write **"]),
        ("edit_file", json!({ "file_path": "notes.md" }), &["write notes.md | write **"]),
        ("grep", json!({ "pattern": "x" }), &[]),
        ("web_fetch", json!({}), &["use web_fetch"]),
    ] {
        let data = data! { "tool_name": tool, "tool_input": input };
        assert_eq!(described("confirm", Confirm::Writes, data).await, expected, "{tool}");
    }
}

#[tokio::test]
async fn a_hidden_or_protected_file_is_allowed_only_by_its_own_name() {
    assert_eq!(
        of_file(".git/hooks/pre-commit").await,
        ["write .git/hooks/pre-commit | !write .git/hooks/** | !write .git/** | !write **"]
    );
    assert_eq!(of_file(".env").await, ["write .env | !write **"]);
    assert_eq!(of_file("guarded/x").await, ["write guarded/x | !write guarded/** | !write **"]);
}

#[tokio::test]
async fn a_file_outside_of_the_workspace_and_an_ambiguous_name_have_no_rule() {
    for path in ["/etc/passwd", "../x", "etc/passwd", "src/**", "src/a\u{1b}b"] {
        assert!(of_file(path).await.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn a_command_is_named_as_a_whole_and_by_its_programs() {
    assert_eq!(
        of_command("cargo test --lib").await,
        ["run cargo test --lib | run cargo test * | run cargo * | run **"]
    );
    assert_eq!(
        of_command("cat a && cargo fmt && git add -A").await,
        [
            "run cat a && cargo fmt && git add -A | run cargo fmt * | run cargo * | run **",
            "run cat a && cargo fmt && git add -A | run git add * | run git * | run **",
        ]
    );
    assert_eq!(of_command("git push -f").await, ["run git push -f | !run git push * | !run git * | !run **"]);
    assert_eq!(of_command("mkdir src/new").await, ["run mkdir src/new | write src/new | write src/** | write **"]);
    assert_eq!(of_command("echo x > .env").await, ["run echo x > .env | write .env | !write **"]);
}

#[tokio::test]
async fn a_command_that_leaves_the_workspace_is_only_itself() {
    for command in [
        "cd /etc && cargo test",
        "cd etc && cargo test",
        "cargo test --manifest-path ../x/Cargo.toml",
        "pytest /etc",
        "cargo test --manifest-path ~/x/Cargo.toml",
        "cargo build -o../x",
        "prettier --write etc/x",
        "gofmt -w src/../etc/x",
        "cd docs && prettier --write ../etc/x",
        "cargo run etc/passwd",
    ] {
        let parts = of_command(command).await;
        assert!(parts.iter().all(|part| part.split(" | ").skip(1).all(|name| name.starts_with('!'))), "{parts:?}");
        assert!(parts[0].starts_with(&format!("run {command}")), "{parts:?}");
    }
    assert_eq!(of_command("echo x > /etc/passwd").await, ["run echo x > /etc/passwd"]);
}

#[tokio::test]
async fn a_command_that_cannot_be_analysed_or_told_from_a_wide_name_has_no_rule() {
    assert!(of_command("$(echo rm) -rf x").await.is_empty());
    for command in ["git add *", "rm -rf *", "cargo test *"] {
        let parts = of_command(command).await;
        assert!(
            parts.iter().all(|part| part.split(" | ").all(|name| name.is_empty() || name.starts_with('!'))),
            "{parts:?}"
        );
    }
}

#[tokio::test]
async fn reading_needs_a_name_only_if_the_request_may_be_about_it() {
    let data = || data! { "tool_name": "Bash", "tool_input": json!({ "command": "cat .env && cargo test" }) };
    let tests = "run cat .env && cargo test | run cargo test * | run cargo * | run **";
    assert_eq!(described("confirm", Confirm::Writes, data()).await, [tests]);
    assert_eq!(described("secrets", Confirm::Writes, data()).await, ["run cat .env && cargo test", tests]);
    assert_eq!(described("confirm", Confirm::All, data()).await, ["run cat .env && cargo test | read **", tests]);
    let data = data! { "tool_name": "Bash", "tool_input": json!({ "command": "cat /etc/passwd" }) };
    assert_eq!(described("confirm", Confirm::All, data).await, ["run cat /etc/passwd"]);
}

#[tokio::test]
async fn another_tool_is_named_as_a_whole() {
    let data = data! { "tool_name": "mcp_search", "tool_input": json!({}) };
    assert_eq!(described("confirm", Confirm::Writes, data).await, ["use mcp_search"]);
}
