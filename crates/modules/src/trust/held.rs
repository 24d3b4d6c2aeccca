//! The files of a hook, looked at again before its program starts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_process::files::FileStatus;
use amplifier_process::sandbox::PinnedFile;

use super::change::{Change, Difference};
use super::own::{LARGEST, is_changeable};
use super::pin::{Pin, leads_to, pin, place};

/// The files that a hook names, as they were when the person trusted them or when the session read them.
#[derive(Debug)]
pub(crate) struct Held {
    /// A std lock, as all here: nothing awaits while it is held.
    files: Mutex<Vec<HeldFile>>,
    /// What the hook names and was not there.
    absent: Vec<PathBuf>,
    on_change: OnChange,
    /// The status of each file when it was last found unchanged.
    seen: Mutex<BTreeMap<PathBuf, FileStatus>>,
    /// What the user has not been told yet.
    news: Mutex<Vec<String>>,
}

/// What becomes of a file that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnChange {
    /// The hook does not run until the user has trusted the new version: the file comes with a project.
    Distrust,
    /// The hook of the user runs with the new version, and the user is told, if the file is in one of these folders, which no program of the
    /// session can change. Elsewhere a command may have changed it, so the hook does not run.
    Adopt(Vec<PathBuf>),
}

/// A file that a hook names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldFile {
    /// By which name.
    pub(super) name: PathBuf,
    /// Where that was.
    pub(super) place: PathBuf,
    /// What it was.
    pub(super) pin: Pin,
}

impl Held {
    pub(super) fn new(files: Vec<HeldFile>, absent: Vec<PathBuf>, on_change: OnChange) -> Self {
        let (files, seen, news) = (Mutex::new(files), Mutex::default(), Mutex::default());
        Self { files, absent, on_change, seen, news }
    }

    /// `true` if the same files are to be as they were.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // One lock after the other: the two may be one.
        self.files() == other.files() && self.absent == other.absent && self.on_change == other.on_change
    }

    /// Looks at the files, and says what has changed if the hook must not run. It blocks: a file that was touched is hashed.
    pub(crate) fn check(&self) -> Result<(), String> {
        for held in self.files() {
            let Some(difference) = self.difference(&held) else { continue };
            let change = Change { file: held.place.clone(), difference };
            match &self.on_change {
                OnChange::Distrust => return Err(distrusted(&change)),
                OnChange::Adopt(folders) => self.adopt(&held, folders).map_err(|why| format!("{change}: {why}"))?,
            }
        }
        match self.absent.iter().find(|file| file.is_file()) {
            None => Ok(()),
            Some(file) => Err(distrusted(&Change { file: file.clone(), difference: Difference::New })),
        }
    }

    /// What the user is to be told, once.
    pub(crate) fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.news))
    }

    /// The files for a launcher, which starts the program with the very bytes that were looked at. Larger files, and those that no program of the user can
    /// change, are only looked at.
    pub(crate) fn pinned_files(&self) -> Vec<PinnedFile> {
        let is_copied = |file: &HeldFile| {
            let is_small = file.place.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST);
            is_small && is_changeable(&file.place)
        };
        let files = self.files().into_iter().filter(is_copied);
        let mut files: Vec<PinnedFile> =
            files.map(|file| PinnedFile { path: file.place, sha256: *file.pin.sha256.as_bytes() }).collect();
        // One file may have several names.
        files.dedup();
        files
    }

    fn files(&self) -> Vec<HeldFile> {
        lock(&self.files).clone()
    }

    /// Goes on with the version of a file that is there now.
    fn adopt(&self, held: &HeldFile, folders: &[PathBuf]) -> Result<(), String> {
        const UNPROTECTED: &str = "commands can change its folder, so the hook did not run; start a new session, or move the files of the hook to a \
                                   folder of their own";
        let unreadable = |error: io::Error| format!("{error}, so the hook did not run");
        let place = place(&held.name).map_err(unreadable)?;
        let (pin, _) = pin(&place).map_err(unreadable)?;
        let is_protected = |file: &Path| folders.iter().any(|folder| file.starts_with(folder));
        if !is_protected(&place) || pin.leads_to.as_deref().is_some_and(|file| !is_protected(file)) {
            return Err(UNPROTECTED.to_owned());
        }
        lock(&self.news).push(format!("`{}` has changed; its new version is used from now on", place.display()));
        for file in lock(&self.files).iter_mut().filter(|file| file.name == held.name) {
            (file.place, file.pin) = (place.clone(), pin.clone());
        }
        Ok(())
    }

    fn difference(&self, held: &HeldFile) -> Option<Difference> {
        let HeldFile { name, place: file, pin: trusted } = held;
        // A link among the folders of the name may have been turned elsewhere.
        match place(name) {
            Ok(place) if place == *file => {}
            Ok(_) => return Some(Difference::Link),
            Err(_) => return Some(Difference::Gone),
        }
        let Ok(status) = FileStatus::from_path(file) else { return Some(Difference::Gone) };
        let is_known = lock(&self.seen).get(file) == Some(&status);
        if is_known && leads_to(file).is_ok_and(|leads_to| leads_to == trusted.leads_to) {
            return None;
        }
        let Ok((now, status)) = pin(file) else { return Some(Difference::Unreadable) };
        let difference = trusted.difference(&now);
        if difference.is_none() && status.is_settled() {
            lock(&self.seen).insert(file.clone(), status);
        }
        difference
    }
}

fn distrusted(change: &Change) -> String {
    format!(
        "{change} since the bundle was trusted, so the hook did not run; look at it and trust it anew: \
         amplifier hooks trust"
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
