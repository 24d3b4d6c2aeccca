//! Locations of a command's files: the workspace, temporary folders, or elsewhere.

use std::io;
use std::path::{Path, PathBuf};

use crate::condition::Scope;
use crate::shell::{FileReference, is_litter_name};

/// Characters that the shell expands or that are ambiguous. `…` stands for text that is known only at run time.
const EXPANDED: [char; 12] = ['$', '`', '*', '?', '[', '{', '(', '\\', '\n', '\'', '"', '…'];

/// Devices that store nothing.
const NOWHERE: [&str; 5] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"];

/// Maximum number of files in a folder that are checked for a pattern.
const FILES: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the workspace, or a device that stores nothing.
    Inside,
    Temporary,
    Outside(PathBuf),
    Unknown,
}

/// Returns the paths that a file reference may stand for; empty if they are unknown.
pub(super) fn paths(file: &FileReference) -> &[String] {
    file.paths.as_deref().unwrap_or_default()
}

/// Returns the location of a file: the worst of all its possible paths.
pub(super) fn locate(file: &FileReference, scope: &Scope) -> Location {
    let mut found = if file.paths.is_some() { Location::Inside } else { Location::Unknown };
    for path in paths(file) {
        match locate_path(path, scope) {
            Location::Inside => {}
            Location::Temporary if found == Location::Inside => found = Location::Temporary,
            Location::Temporary => {}
            elsewhere => return elsewhere,
        }
    }
    found
}

/// Returns `true` if a path is a device that stores nothing.
pub(super) fn is_nowhere(path: &str) -> bool {
    NOWHERE.contains(&path)
}

fn locate_path(path: &str, scope: &Scope) -> Location {
    if is_nowhere(path) {
        return Location::Inside;
    }
    let Some(plain) = plain(path) else {
        return folder(path).map_or(Location::Unknown, |folder| locate_folder(folder, scope));
    };
    match scope.resolve(plain) {
        Ok(place) if place.starts_with(scope.workspace()) => Location::Inside,
        // A path that leaves the workspace is outside, even if the workspace itself is in a temporary folder.
        Ok(place) if plain.starts_with('/') && temporary_folders().iter().any(|folder| place.starts_with(folder)) => {
            Location::Temporary
        }
        Ok(place) => Location::Outside(place),
        Err(_) => Location::Unknown,
    }
}

/// Returns the location of the files that a pattern in this folder matches.
fn locate_folder(folder: &str, scope: &Scope) -> Location {
    match locate_path(folder, scope) {
        Location::Inside if !holds_only_inside(folder, scope) => Location::Unknown,
        found => found,
    }
}

/// Returns `true` if a path may be deleted with its content because it is temporary and neither contains the workspace nor
/// belongs to it.
pub(super) fn is_below_temporary(path: &str, scope: &Scope) -> bool {
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return false;
    }
    let is_below = |path: &str, least: usize| {
        scope.resolve(path).is_ok_and(|place| {
            let depth = |root: &PathBuf| place.strip_prefix(root).map(|rest| rest.components().count()).ok();
            let overlaps = place.starts_with(scope.workspace()) || scope.workspace().starts_with(&place);
            !overlaps && temporary_folders().iter().filter_map(depth).max().is_some_and(|depth| depth >= least)
        })
    };
    match plain(path) {
        Some(path) => is_below(path, 1),
        None => {
            let (folder_name, name) = path.rsplit_once('/').unwrap_or(("", path));
            let lead: String = name.chars().take_while(|c| !EXPANDED.contains(c)).collect();
            let may_be_workspace = scope.workspace().to_string_lossy().starts_with(&format!("{folder_name}/{lead}"));
            let is_root = lead.chars().count() > 1
                && !may_be_workspace
                && temporary_folders().contains(&PathBuf::from(folder_name));
            folder(path).is_some_and(|folder| is_root || is_below(folder, 1))
        }
    }
}

/// Returns `true` if a path is a single file, or a pattern for leftovers of programs.
pub(super) fn is_single_or_litter(path: &str) -> bool {
    plain(path).is_some() || path.rsplit('/').next().is_some_and(is_litter_name)
}

fn temporary_folders() -> Vec<PathBuf> {
    let own = std::env::temp_dir();
    let own = Some(own).filter(|folder| folder.components().count() > 1);
    let known = ["/tmp", "/var/tmp", "/private/tmp"].map(PathBuf::from);
    known.into_iter().chain(own).map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
}

/// Returns the path if the shell does not expand it.
pub(super) fn plain(written: &str) -> Option<&str> {
    let is_plain = !written.is_empty() && !written.contains(EXPANDED) && !written.starts_with('~');
    is_plain.then_some(written)
}

/// Returns the folder of a pattern such as `src/*.rs`.
pub(super) fn folder(pattern: &str) -> Option<&str> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    let is_plain_name = plain(&name.replace(['*', '?'], "x")).is_some();
    plain(folder).filter(|_| is_plain_name)
}

/// Returns `true` if a folder is in the workspace and none of its links leaves the workspace.
fn holds_only_inside(folder: &str, scope: &Scope) -> bool {
    let is_inside = |path: &Path| {
        path.to_str().is_some_and(|path| scope.resolve(path).is_ok_and(|place| place.starts_with(scope.workspace())))
    };
    let is_harmless =
        |file: std::fs::DirEntry| file.file_type().is_ok_and(|kind| !kind.is_symlink()) || is_inside(&file.path());
    let files = scope.resolve(folder).and_then(std::fs::read_dir);
    let count_and_judge = |(count, file): (usize, io::Result<_>)| count < FILES && file.is_ok_and(is_harmless);
    match files {
        Ok(files) => files.enumerate().all(count_and_judge),
        // A pattern in a missing folder matches nothing.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
