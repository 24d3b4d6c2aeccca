//! Git status of a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use amplifier_core::text::counted;
use amplifier_process::sandbox::Sandbox;
use amplifier_process::{Command, Environment, os_string};

use crate::builtin::shared::text::one_line;

/// Maximum output of git, in bytes: a folder can hold a million new files.
const LONGEST: usize = 256 << 10;

/// Returns the branch and the changed files, one line each; empty without git or a repository.
pub(super) async fn status(folder: &Path, sandbox: &Sandbox, files: usize, limit: Duration) -> Vec<String> {
    match tokio::time::timeout(limit, output(folder, sandbox)).await {
        Ok(Ok(Some(output))) => readable(&output, files),
        Ok(Ok(None) | Err(_)) => Vec::new(),
        Err(_) => vec![format!("git: gave no answer within {limit:?}")],
    }
}

/// Returns the output of `git status`; `None` if it fails, as it does outside of a repository.
async fn output(folder: &Path, sandbox: &Sandbox) -> io::Result<Option<String>> {
    // The configuration of a repository names filter programs that run when files are compared. Agents can write there.
    let named = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
    let filters = git(folder, sandbox).args(named).run(&[], Duration::MAX, LONGEST).await?;
    if filters.stdout.exceeds_limit() {
        return Ok(None);
    }
    let mut status = git(folder, sandbox);
    let filters = filters.stdout.bytes.split(|byte| *byte == 0).filter(|filter| !filter.is_empty());
    let mut count = 0;
    for filter in filters {
        let value = if filter.ends_with(b".required") { "false" } else { "" };
        // A filter whose name cannot be decoded cannot be disabled.
        let Some(filter) = os_string(filter) else { return Ok(None) };
        status = status.variable(format!("GIT_CONFIG_KEY_{count}"), filter);
        status = status.variable(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    status = status.variable("GIT_CONFIG_COUNT", count.to_string());
    status =
        status.args(["status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"]);
    let ended = status.run(&[], Duration::MAX, LONGEST).await?;
    let (is_cut, mut output) = (ended.stdout.exceeds_limit(), ended.stdout.bytes);
    if is_cut {
        // A truncated output is used up to the last complete line.
        output.truncate(output.iter().rposition(|byte| *byte == b'\n').unwrap_or(0));
    }
    let is_usable = is_cut || ended.status.is_some_and(|status| status.success());
    Ok(is_usable.then(|| String::from_utf8_lossy(&output).into_owned()))
}

/// Returns a `git` command for this folder, which runs no program from the repository's configuration and writes nothing.
pub(in crate::builtin) fn git(folder: &Path, sandbox: &Sandbox) -> Command {
    // Git's own variables are removed: they may point to another repository, for example inside a git hook.
    Command::new("git", Environment::Hooks)
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .folder(folder)
        .variable("LC_ALL", "C")
        // Missing objects would be fetched by a program from the repository's configuration.
        .variable("GIT_NO_LAZY_FETCH", "1")
        .without_input()
        .sandbox(sandbox)
}

fn readable(output: &str, most: usize) -> Vec<String> {
    let (heads, changes): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("## "));
    let branch = heads.first().map_or("no branch", |head| &head[3..]);
    let changed = match changes.len() {
        0 => "nothing changed".to_owned(),
        number => format!("{} changed", counted(number as u64, "file")),
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
