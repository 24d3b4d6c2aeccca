//! What tools may not change: the files that govern the agent itself.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use amplifier_process::files::{FileId, FileStatus};

/// Places that tools may not change, and files and folders that they may not even read.
///
/// Paths were resolved when they were named. What is there is looked up at every use: a key may be made, or replaced, while a session runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Protected {
    pub(super) places: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
}

impl Protected {
    /// The protected place that a resolved path is, is in, or holds.
    pub(super) fn place(&self, path: &Path) -> Option<&Path> {
        let by_path = |place: &&PathBuf| path.starts_with(place) || place.starts_with(path);
        if let Some(place) = self.places().find(by_path) {
            return Some(place);
        }
        // The same folder may have other paths: other cases of letters, other mounts, `/proc/self/root`.
        let above: Vec<FileId> =
            path.ancestors().filter_map(|path| FileStatus::at(path).ok()).map(|status| status.id).collect();
        let is_above = |place: &&PathBuf| FileStatus::at(place).is_ok_and(|place| above.contains(&place.id));
        if let Some(place) = self.places().find(is_above) {
            return Some(place);
        }
        let target = FileStatus::at(path).ok().filter(|target| !target.is_folder && target.links > 1)?;
        // A file with several names: one of them may be within a protected place.
        self.places().find(|place| holds(place, target.id)).map(PathBuf::as_path)
    }

    /// Fails if a file is one that tools may not read.
    pub(super) fn check_readable(&self, file: &File) -> io::Result<()> {
        let file = FileStatus::of(file)?.id;
        let is_file = |hidden: &PathBuf| FileStatus::at(hidden).is_ok_and(|hidden| hidden.id == file);
        if self.hidden.iter().any(|hidden| is_file(hidden) || holds(hidden, file)) {
            return Err(io::Error::other("it is a key that tools cannot read"));
        }
        Ok(())
    }

    /// Fails if a file may not be changed.
    pub(super) fn check_writable(&self, path: &Path) -> io::Result<()> {
        match self.place(path) {
            None => Ok(()),
            Some(place) => Err(io::Error::other(format!(
                "tools cannot change `{}`, which decides what they may do or records what they did; \
                 if it has to change, ask the person to do it",
                place.display()
            ))),
        }
    }

    fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.iter().chain(&self.hidden)
    }
}

/// Whether a place is a file, or a folder that holds it.
fn holds(place: &Path, file: FileId) -> bool {
    let Ok(found) = FileStatus::at_link(place) else { return false };
    if !found.is_folder {
        return found.id == file;
    }
    fs::read_dir(place).is_ok_and(|entries| entries.flatten().any(|entry| holds(&entry.path(), file)))
}
