//! What git says about a folder.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::builtin::text::{count, one_line};

/// More than this is not read: a folder can hold a million new files.
const LONGEST: u64 = 256 << 10;

/// The branch and the changed files, a line each; nothing where there is no git or no repository.
pub(super) async fn status(folder: &Path, files: usize, limit: Duration) -> Vec<String> {
    match tokio::time::timeout(limit, output(folder)).await {
        Ok(Ok(Some(output))) => readable(&output, files),
        Ok(_) => Vec::new(),
        Err(_) => vec![format!("git: gave no answer within {limit:?}")],
    }
}

/// What `git status` prints; none if it fails, as it does outside of a repository.
async fn output(folder: &Path) -> io::Result<Option<String>> {
    let mut command = Command::new("git");
    command
        // A program that a repository names must not run because somebody looks at it, and nothing is written.
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .args(["status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"])
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // They may point at another repository, as in a hook of git.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let mut child = command.spawn()?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LONGEST).read_to_end(&mut output).await?;
    }
    if output.len() as u64 == LONGEST {
        // It is still writing; what there is will do, up to the last whole line.
        child.start_kill()?;
        let end = output.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        output.truncate(end);
        child.wait().await?;
        return Ok(Some(String::from_utf8_lossy(&output).into_owned()));
    }
    let is_fine = child.wait().await?.success();
    Ok(is_fine.then(|| String::from_utf8_lossy(&output).into_owned()))
}

fn readable(output: &str, most: usize) -> Vec<String> {
    let (heads, changes): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("## "));
    let branch = heads.first().map_or("no branch", |head| &head[3..]);
    let changed = match changes.len() {
        0 => "nothing changed".to_owned(),
        number => format!("{} changed", count(number as u64, "file")),
    };
    let mut lines = vec![format!("git: {}, {changed}", one_line(branch, 200))];
    lines.extend(changes.iter().take(most).map(|change| {
        let (state, path) = change.split_at_checked(3).unwrap_or((change, ""));
        format!("  {state}{}", one_line(path, 200))
    }));
    if changes.len() > most {
        lines.push(format!("  … and {} more", changes.len() - most));
    }
    lines
}
