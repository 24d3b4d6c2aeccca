//! Writes that git can undo.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_agent::tool::Workspace;
use amplifier_core::ComparedWith;
use amplifier_process::files::read_regular;
use amplifier_process::sandbox::Sandbox;
use amplifier_process::{Command, Environment};

/// The largest file whose content is compared. Changes of larger files need approval.
const MAX_FILE_BYTES: usize = 10 << 20;

/// The time limit of one call of git.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The files of a workspace whose changes git can undo. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub(crate) struct GitUndo {
    workspace: Workspace,
    sandbox: Sandbox,
    // A std lock: nothing awaits while it is held.
    accepted: Arc<Mutex<BTreeMap<PathBuf, AcceptedWrite>>>,
}

/// A write to a file that git could restore before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AcceptedWrite {
    /// The tool has not ended yet.
    Running,
    /// The file with the content that the tool has written.
    Written(ComparedWith),
}

impl GitUndo {
    /// The files of a workspace. git runs in the sandbox.
    pub(crate) fn new(workspace: Workspace, sandbox: Sandbox) -> Self {
        Self { workspace, sandbox, accepted: Arc::default() }
    }

    /// Accepts a write to a file if git can undo it. Returns the version of the file that is accepted. Blocks while git runs.
    ///
    /// git can undo a write if it has the present content of the file, in `HEAD` or in the index, or if there is no such file yet and git does
    /// not ignore it. The content may also be that of an accepted write: undoing it loses only what the agent has written.
    pub(crate) fn accept(&self, file_path: &str) -> Option<ComparedWith> {
        let path = self.writable_path(file_path)?;
        let undoable = match read_file(&path) {
            FileContent::Missing => self.is_new(&path).then(|| self.workspace.bind_version(&path, None)),
            FileContent::Bytes(content) => {
                let version = self.workspace.bind_version(&path, Some(&content));
                (self.is_own(&path, &version) || self.has_content(&path, &content)).then_some(version)
            }
            FileContent::Unusable => None,
        };
        let mut accepted = self.lock();
        if undoable.is_some() {
            accepted.entry(path).or_insert(AcceptedWrite::Running);
        } else {
            // A write that the user approves may replace content that git does not have.
            accepted.remove(&path);
        }
        undoable
    }

    /// Records the content that a tool has written, if the write was accepted.
    pub(crate) fn record_written(&self, file_path: &str) {
        let Some(path) = self.writable_path(file_path) else { return };
        let written = match read_file(&path) {
            FileContent::Bytes(content) => {
                Some(AcceptedWrite::Written(self.workspace.bind_version(&path, Some(&content))))
            }
            FileContent::Missing | FileContent::Unusable => None,
        };
        let mut accepted = self.lock();
        match written {
            Some(written) if accepted.contains_key(&path) => _ = accepted.insert(path, written),
            Some(_) => {}
            None => _ = accepted.remove(&path),
        }
    }

    /// Returns the path without links, if it is in the workspace and neither protected nor git's own.
    fn writable_path(&self, file_path: &str) -> Option<PathBuf> {
        let path = self.workspace.resolve(file_path).ok()?;
        let relative = path.strip_prefix(self.workspace.root()).ok()?;
        let is_of_git = relative.components().any(|component| is_git_name(component.as_os_str().to_str()));
        let is_file = relative.components().next_back().is_some_and(|last| matches!(last, Component::Normal(_)));
        let is_protected = || path.to_str().is_none_or(|text| self.workspace.protects(text).is_some());
        (is_file && !is_of_git && !is_protected()).then_some(path)
    }

    fn is_own(&self, path: &Path, version: &ComparedWith) -> bool {
        matches!(self.lock().get(path), Some(AcceptedWrite::Written(written)) if written == version)
    }

    /// Returns `true` if git has the content of the file.
    fn has_content(&self, path: &Path, content: &[u8]) -> bool {
        let Some((folder, name)) = split_existing(path) else { return false };
        // Whole objects are compared, so that no filter of the repository runs and a missing object is noticed.
        ["HEAD:./", ":0:./"].iter().any(|revision| {
            let object = format!("{revision}{name}");
            self.git(&folder, &["cat-file", "blob", &object]).is_some_and(|(code, bytes)| code == 0 && bytes == content)
        })
    }

    /// Returns `true` if git would show a new file with this path.
    fn is_new(&self, path: &Path) -> bool {
        let Some((folder, name)) = split_existing(path) else { return false };
        // Without the index, the path is no pattern. 0: ignored. 1: not ignored. Anything else: no repository, or an error.
        let arguments = ["check-ignore", "--quiet", "--no-index", "--", &format!("./{name}")];
        self.git(&folder, &arguments).is_some_and(|(code, _)| code == 1)
    }

    /// Runs git, without any program from the configuration of the repository.
    fn git(&self, folder: &Path, arguments: &[&str]) -> Option<(i32, Vec<u8>)> {
        let git = Command::new("git", Environment::Hooks)
            .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
            .args(arguments)
            .folder(folder)
            .variable("LC_ALL", "C")
            .variable("GIT_NO_LAZY_FETCH", "1")
            .variable("GIT_ALLOW_PROTOCOL", "none")
            .without_input()
            .sandbox(&self.sandbox);
        let completed = git.run_blocking(&[], GIT_TIMEOUT, MAX_FILE_BYTES).ok()?;
        if !completed.in_time || completed.stdout.exceeds_limit() {
            return None;
        }
        Some((completed.status?.code()?, completed.stdout.bytes))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, AcceptedWrite>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` for `.git` in any spelling that a file system may read as it, and for names that cannot be read.
fn is_git_name(name: Option<&str>) -> bool {
    name.is_none_or(|name| {
        let name: String = name.chars().filter(char::is_ascii).collect();
        let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
        name == ".git" || name.starts_with("git~")
    })
}

enum FileContent {
    Missing,
    Bytes(Vec<u8>),
    /// Not a regular file, too large, or unreadable.
    Unusable,
}

fn read_file(path: &Path) -> FileContent {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return FileContent::Missing,
        _ => return FileContent::Unusable,
    }
    read_regular(path, MAX_FILE_BYTES as u64).map_or(FileContent::Unusable, FileContent::Bytes)
}

/// Splits a path at its deepest existing folder. The rest is separated by `/`.
fn split_existing(path: &Path) -> Option<(PathBuf, String)> {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let rest: Option<Vec<&str>> =
        path.strip_prefix(folder).ok()?.components().map(|part| part.as_os_str().to_str()).collect();
    Some((folder.to_owned(), rest?.join("/")))
}
