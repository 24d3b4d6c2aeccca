//! What tools may not change: the files that govern the agent itself.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Places that tools may not change, and files and folders that they may not even read.
///
/// Paths were resolved when they were named. What is there is looked up at every use: a key may be made, or replaced, while a session runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Protected {
    pub(super) places: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
}

/// A file, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    file: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), file: metadata.ino() }
    }
}

impl Protected {
    /// The protected place that a resolved path is, is in, or holds.
    pub(super) fn place(&self, path: &Path) -> Option<&Path> {
        let by_path = |place: &&PathBuf| path.starts_with(place) || place.starts_with(path);
        if let Some(place) = self.places().find(by_path) {
            return Some(place);
        }
        // The same folder may have other paths: other cases of letters, other mounts, `/proc/self/root`.
        let above: Vec<Identity> = path.ancestors().filter_map(|path| fs::metadata(path).ok()).map(identity).collect();
        let is_above = |place: &&PathBuf| fs::metadata(place).is_ok_and(|place| above.contains(&identity(place)));
        if let Some(place) = self.places().find(is_above) {
            return Some(place);
        }
        let target = fs::metadata(path).ok().filter(|target| target.is_file() && target.nlink() > 1)?;
        // A file with several names: one of them may be within a protected place.
        self.places().find(|place| holds(place, Identity::of(&target))).map(PathBuf::as_path)
    }

    /// Fails if a file is one that tools may not read.
    pub(super) fn check_readable(&self, file: &Metadata) -> io::Result<()> {
        let is_file =
            |hidden: &PathBuf| fs::metadata(hidden).is_ok_and(|hidden| identity(hidden) == Identity::of(file));
        if self.hidden.iter().any(|hidden| is_file(hidden) || holds(hidden, Identity::of(file))) {
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

fn identity(metadata: Metadata) -> Identity {
    Identity::of(&metadata)
}

/// Whether a place is a file, or a folder that holds it.
fn holds(place: &Path, file: Identity) -> bool {
    let Ok(found) = place.symlink_metadata() else { return false };
    if !found.is_dir() {
        return Identity::of(&found) == file;
    }
    fs::read_dir(place).is_ok_and(|entries| entries.flatten().any(|entry| holds(&entry.path(), file)))
}
