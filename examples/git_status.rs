//! Tells the model at the start of a session what is going on in the repository it works on.
//!
//! Run it with `cargo run --example git_status`. It needs `git`.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_core::{Conversation, Coordinator, HookRegistry, HookResult, Map, Message, SESSION_START, SessionStart};
use tokio::process::Command;

/// A repository can have thousands of changes; the model needs an idea of them.
const MOST_LINES: usize = 50;

async fn git_status(repository: PathBuf) -> std::io::Result<HookResult> {
    let status = git(&repository, &["status", "--short"]).await?;
    let lines: Vec<_> = status.lines().take(MOST_LINES).collect();
    Ok(HookResult::inject(match lines.as_slice() {
        [] => "Git status: nothing changed".to_owned(),
        lines => format!("Git status:\n{}", lines.join("\n")),
    }))
}

async fn git(directory: &Path, arguments: &[&str]) -> std::io::Result<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(directory).args(arguments);
    // Git sets these for its own hooks. Without them, the directory alone says which repository is meant.
    git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    // Killed on drop, because a hook whose time is up is dropped.
    let output = git.kill_on_drop(true).output().await?;
    if !output.status.success() {
        return Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn scene(repository: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for (file, content) in [("README.md", "# Parser\n"), ("notes.txt", "ask Ada\n")] {
        std::fs::write(repository.join(file), content)?;
    }
    for arguments in [["init", "--quiet"], ["add", "README.md"]] {
        git(repository, &arguments).await?;
    }

    let hooks = HookRegistry::new();
    let watched = repository.to_owned();
    let status = hooks.hook(SESSION_START).named("git-status").timeout(Duration::from_secs(10));
    status.run(move |_| git_status(watched.clone()));
    let conversation = Conversation::new();
    let session = Coordinator::builder(hooks).context(conversation.clone()).build();

    let start = SessionStart::new(Map::new(), "startup");
    if session.emit(SESSION_START, start).await.is_proceed() {
        conversation.push(Message::user("What did I forget to commit?"));
    }
    println!("the model sees:");
    for message in conversation.next_call() {
        println!("{:?}: {}", message.role, message.content);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repository = std::env::temp_dir().join(format!("git-status-{}", std::process::id()));
    std::fs::create_dir(&repository)?;
    let result = scene(&repository).await;
    std::fs::remove_dir_all(&repository)?;
    result
}
