//! Paths that tools cannot change: files that govern the agent itself.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use amplifier_process::files::{FileId, FileStatus};

/// Paths that tools cannot change, and paths that they cannot even read.
///
/// Paths were resolved when added. The files are looked up at every use: a key may be created or replaced while a session runs.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtectedPaths {
    pub(super) paths: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
}

/// The identities of the protected files that exist, looked up at their first use.
#[derive(Debug, Default)]
pub(super) struct ProtectedFileIds<'a>(OnceCell<Vec<(&'a Path, FileId)>>);

impl ProtectedPaths {
    /// Returns the protected path that a resolved path equals, is in, or contains.
    pub(super) fn protecting_path(&self, path: &Path) -> Option<&Path> {
        self.protecting_path_among(path, &ProtectedFileIds::default())
    }

    /// Does the same for one of several paths, for which the protected files are looked up once.
    pub(super) fn protecting_path_among<'a>(&'a self, path: &Path, ids: &ProtectedFileIds<'a>) -> Option<&'a Path> {
        let by_path =
            |protecting_path: &&PathBuf| path.starts_with(protecting_path) || protecting_path.starts_with(path);
        if let Some(protecting_path) = self.paths().find(by_path) {
            return Some(protecting_path);
        }
        // A folder may have other paths: another case, another mount, `/proc/self/root`.
        let above: Vec<FileId> =
            path.ancestors().filter_map(|path| FileStatus::from_path(path).ok()).map(|status| status.id).collect();
        let existing = ids.0.get_or_init(|| {
            let id = |path: &'a PathBuf| Some((path.as_path(), FileStatus::from_path(path).ok()?.id));
            self.paths().filter_map(id).collect()
        });
        if let Some((protecting_path, _)) = existing.iter().find(|(_, id)| above.contains(id)) {
            return Some(protecting_path);
        }
        let target = FileStatus::from_path(path).ok().filter(|target| !target.is_folder && target.links > 1)?;
        // One name of a hard-linked file may be in a protected folder.
        self.paths().find(|protecting_path| contains(protecting_path, target.id)).map(PathBuf::as_path)
    }

    pub(super) fn check_readable(&self, file: &File) -> io::Result<()> {
        let file = FileStatus::from_file(file)?.id;
        let is_file = |hidden: &PathBuf| FileStatus::from_path(hidden).is_ok_and(|hidden| hidden.id == file);
        if self.hidden.iter().any(|hidden| is_file(hidden) || contains(hidden, file)) {
            return Err(io::Error::other("hidden from tools"));
        }
        Ok(())
    }

    pub(super) fn check_writable(&self, path: &Path) -> io::Result<()> {
        match self.protecting_path(path) {
            None => Ok(()),
            Some(protecting_path) => Err(io::Error::other(format!(
                "tools cannot change `{}`, which decides what they may do or records what they did; \
                 if it has to change, ask the person to do it",
                protecting_path.display()
            ))),
        }
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.hidden)
    }
}

/// Returns `true` if the path is the file, or a folder that contains it.
fn contains(protecting_path: &Path, file: FileId) -> bool {
    let Ok(found) = FileStatus::from_link(protecting_path) else { return false };
    if !found.is_folder {
        return found.id == file;
    }
    fs::read_dir(protecting_path).is_ok_and(|entries| entries.flatten().any(|entry| contains(&entry.path(), file)))
}
