//! What git says about a folder.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use amplifier_process::is_inherited_by_hooks;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::builtin::text::{count, one_line};

/// More than this is not read: a folder can hold a million new files.
const LONGEST: u64 = 256 << 10;

/// The branch and the changed files, a line each; nothing where there is no git or no repository. The launcher stands before the command.
pub(super) async fn status(folder: &Path, launcher: &[OsString], files: usize, limit: Duration) -> Vec<String> {
    match tokio::time::timeout(limit, output(folder, launcher)).await {
        Ok(Ok(Some(output))) => readable(&output, files),
        Ok(_) => Vec::new(),
        Err(_) => vec![format!("git: gave no answer within {limit:?}")],
    }
}

/// What `git status` prints; none if it fails, as it does outside of a repository.
async fn output(folder: &Path, launcher: &[OsString]) -> io::Result<Option<String>> {
    // A repository names programs through which files go when they are compared. Agents can write there.
    let named = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
    let (filters, ended) = read(git(folder, launcher).args(named)).await?;
    if ended.is_none() {
        return Ok(None);
    }
    let mut status = git(folder, launcher);
    let filters = filters.split(|byte| *byte == 0).filter(|filter| !filter.is_empty()).map(OsStr::from_bytes);
    let count = filters.enumerate().fold(0, |_, (at, filter)| {
        let value = if filter.as_bytes().ends_with(b".required") { "false" } else { "" };
        status.env(format!("GIT_CONFIG_KEY_{at}"), filter).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        at + 1
    });
    status.env("GIT_CONFIG_COUNT", count.to_string());
    status.args(["status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"]);
    let (mut output, ended) = read(&mut status).await?;
    if ended.is_none() {
        // What there is will do, up to the last whole line.
        output.truncate(output.iter().rposition(|byte| *byte == b'\n').unwrap_or(0));
    }
    Ok(ended.unwrap_or(true).then(|| String::from_utf8_lossy(&output).into_owned()))
}

/// `git` in that folder, which runs no program that the repository names, and writes nothing.
pub(in crate::builtin) fn git(folder: &Path, launcher: &[OsString]) -> Command {
    let name = OsString::from("git");
    let mut words = launcher.iter().chain([&name]);
    let mut command = Command::new(words.next().unwrap_or(&name));
    // None of git's own either: they may point at another repository, as in a hook of git.
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| !is_inherited_by_hooks(variable)) {
        command.env_remove(variable);
    }
    command
        .args(words)
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .current_dir(folder)
        .env("LC_ALL", "C")
        // Objects that are missing would be fetched, by a program that the repository names.
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// What a command writes, and whether it ended well; none if it wrote more than is read.
async fn read(command: &mut Command) -> io::Result<(Vec<u8>, Option<bool>)> {
    let mut child = command.spawn()?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LONGEST).read_to_end(&mut output).await?;
    }
    let is_cut = output.len() as u64 == LONGEST;
    if is_cut {
        child.start_kill()?;
    }
    let ended = child.wait().await?;
    Ok((output, (!is_cut).then(|| ended.success())))
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
