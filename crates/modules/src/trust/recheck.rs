//! Re-hashes pinned files before a program starts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_process::files::FileStatus;
use amplifier_process::sandbox::PinnedFile;

use super::pin::{Pin, leads_to, pin, resolve_parent};
use super::status::{Difference, FileChange};
use super::user_hooks::{MAX_PINNED_SIZE, is_changeable};

/// The files of a hook, pinned when the user trusted them or when the session read them.
#[derive(Debug)]
pub(crate) struct PinnedFiles {
    /// A std lock, as all here: nothing awaits while it is held.
    files: Mutex<Vec<PinnedPath>>,
    /// Names of files that did not exist.
    absent: Vec<PathBuf>,
    on_change: OnChange,
    /// The status of each file when it was last found unchanged.
    verified: Mutex<BTreeMap<PathBuf, FileStatus>>,
    notices: Mutex<Vec<String>>,
}

/// The reaction to a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnChange {
    /// The hook does not run until the user has trusted the new version: the file comes with a project.
    Distrust,
    /// The user's hook runs with the new version and the user is notified, if the file is in one of these folders, which no program of the session
    /// can change. Elsewhere a command may have changed the file, so the hook does not run.
    Adopt(Vec<PathBuf>),
}

/// A pinned file and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PinnedPath {
    /// Name used by the hook.
    pub(super) name: PathBuf,
    /// Resolved path at the time of pinning.
    pub(super) location: PathBuf,
    pub(super) pin: Pin,
}

impl PinnedFiles {
    pub(super) fn new(files: Vec<PinnedPath>, absent: Vec<PathBuf>, on_change: OnChange) -> Self {
        let (files, verified, notices) = (Mutex::new(files), Mutex::default(), Mutex::default());
        Self { files, absent, on_change, verified, notices }
    }

    /// `true` if both pin the same files in the same way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // One lock after the other: `other` may be `self`.
        self.files() == other.files() && self.absent == other.absent && self.on_change == other.on_change
    }

    /// Checks the files. The error is the reason for which the hook must not run. Blocks: a file with a new status is hashed.
    pub(crate) fn check(&self) -> Result<(), String> {
        for pinned in self.files() {
            let Some(difference) = self.difference(&pinned) else { continue };
            let change = FileChange { file: pinned.location.clone(), difference };
            match &self.on_change {
                OnChange::Distrust => return Err(untrusted_change(&change)),
                OnChange::Adopt(folders) => self.adopt(&pinned, folders).map_err(|why| format!("{change}: {why}"))?,
            }
        }
        match self.absent.iter().find(|file| file.is_file()) {
            None => Ok(()),
            Some(file) => Err(untrusted_change(&FileChange { file: file.clone(), difference: Difference::New })),
        }
    }

    /// Returns the messages for the user, once.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices))
    }

    /// Returns the files for the sandbox launcher, which starts the program with exactly the checked bytes. Large files, and those that no program of
    /// the user can change, are only checked.
    pub(crate) fn for_sandbox(&self) -> Vec<PinnedFile> {
        let is_copied = |file: &PinnedPath| {
            let is_small = file.location.metadata().is_ok_and(|metadata| metadata.len() <= MAX_PINNED_SIZE);
            is_small && is_changeable(&file.location)
        };
        let files = self.files().into_iter().filter(is_copied);
        let mut files: Vec<PinnedFile> =
            files.map(|file| PinnedFile { path: file.location, sha256: *file.pin.sha256.as_bytes() }).collect();
        // One file may have several names.
        files.dedup();
        files
    }

    fn files(&self) -> Vec<PinnedPath> {
        lock(&self.files).clone()
    }

    /// Pins the current version of a file.
    fn adopt(&self, pinned: &PinnedPath, folders: &[PathBuf]) -> Result<(), String> {
        const UNPROTECTED: &str = "commands can change its folder, so the hook did not run; start a new session, or move the files of the hook to a \
                                   folder of their own";
        let unreadable = |error: io::Error| format!("{error}, so the hook did not run");
        let location = resolve_parent(&pinned.name).map_err(unreadable)?;
        let (pin, _) = pin(&location).map_err(unreadable)?;
        let is_protected = |file: &Path| folders.iter().any(|folder| file.starts_with(folder));
        if !is_protected(&location) || pin.leads_to.as_deref().is_some_and(|file| !is_protected(file)) {
            return Err(UNPROTECTED.to_owned());
        }
        lock(&self.notices).push(format!("`{}` has changed; its new version is used from now on", location.display()));
        for file in lock(&self.files).iter_mut().filter(|file| file.name == pinned.name) {
            (file.location, file.pin) = (location.clone(), pin.clone());
        }
        Ok(())
    }

    fn difference(&self, pinned: &PinnedPath) -> Option<Difference> {
        let PinnedPath { name, location: file, pin: trusted } = pinned;
        // A link among the folders may point elsewhere now.
        match resolve_parent(name) {
            Ok(location) if location == *file => {}
            Ok(_) => return Some(Difference::Link),
            Err(_) => return Some(Difference::Gone),
        }
        let Ok(status) = FileStatus::from_path(file) else { return Some(Difference::Gone) };
        let is_known = lock(&self.verified).get(file) == Some(&status);
        if is_known && leads_to(file).is_ok_and(|leads_to| leads_to == trusted.leads_to) {
            return None;
        }
        let Ok((now, status)) = pin(file) else { return Some(Difference::Unreadable) };
        let difference = trusted.difference(&now);
        if difference.is_none() && status.is_settled() {
            lock(&self.verified).insert(file.clone(), status);
        }
        difference
    }
}

fn untrusted_change(change: &FileChange) -> String {
    format!(
        "{change} since the bundle was trusted, so the hook did not run; review the change and trust the bundle again: \
         amplifier hooks trust"
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
