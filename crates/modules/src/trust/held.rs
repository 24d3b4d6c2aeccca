//! The files of a hook, looked at again before its program starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::change::{Change, Difference};
use super::pin::{Pin, Stamp, leads_to, pin, place};

/// The files that a hook names, as they were when the person trusted them.
#[derive(Debug)]
pub(crate) struct Held {
    files: Vec<HeldFile>,
    /// What the hook names and was not there.
    absent: Vec<PathBuf>,
    /// The stamps with which files were last found unchanged. A std lock: nothing awaits while it is held.
    seen: Mutex<BTreeMap<PathBuf, Stamp>>,
}

/// A file that a hook names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldFile {
    /// By which name.
    pub(super) name: PathBuf,
    /// Where that was.
    pub(super) place: PathBuf,
    /// What it was.
    pub(super) pin: Pin,
}

impl Held {
    pub(super) fn new(files: Vec<HeldFile>, absent: Vec<PathBuf>) -> Self {
        Self { files, absent, seen: Mutex::default() }
    }

    /// Whether the same files are to be as they were.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.files == other.files && self.absent == other.absent
    }

    /// Looks at the files, and says what has changed. It blocks: a file that was touched is hashed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let change = |file: &PathBuf, difference| Change { file: file.clone(), difference };
        let differing = self.files.iter().find_map(|held| Some(change(&held.place, self.difference(held)?)));
        let new = || self.absent.iter().find(|file| file.is_file()).map(|file| change(file, Difference::New));
        match differing.or_else(new) {
            None => Ok(()),
            Some(change) => Err(format!(
                "{change} since the bundle was trusted, so the hook did not run; look at it and trust it anew: \
                 amplifier hooks trust"
            )),
        }
    }

    fn difference(&self, held: &HeldFile) -> Option<Difference> {
        let HeldFile { name, place: file, pin: trusted } = held;
        // A link among the folders of the name may have been turned elsewhere.
        match place(name) {
            Ok(place) if place == *file => {}
            Ok(_) => return Some(Difference::Link),
            Err(_) => return Some(Difference::Gone),
        }
        let Ok(metadata) = std::fs::metadata(file) else { return Some(Difference::Gone) };
        let stamp = Stamp::of(&metadata);
        let is_known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(file) == Some(&stamp);
        if is_known && leads_to(file).is_ok_and(|leads_to| leads_to == trusted.leads_to) {
            return None;
        }
        let Ok((now, stamp)) = pin(file) else { return Some(Difference::Unreadable) };
        let difference = trusted.difference(&now);
        if difference.is_none() && stamp.is_settled() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(file.clone(), stamp);
        }
        difference
    }
}
