//! Commands that write to files outside of the workspace, or run such files.

use super::locations::{Location, locate, paths, plain};
use crate::condition::Scope;
use crate::shell::{Effects, FileReference};

/// Maximum number of files that are checked.
const FILES: usize = 1_000;

/// Describes the first file that the command writes to or runs and that is, or may be, outside of the workspace. Temporary
/// files count as inside.
pub(super) fn find_outside(effects: &Effects, scope: &Scope) -> Option<String> {
    let concern = |file: &FileReference, does: &str, verb: &str| match locate(file, scope) {
        Location::Inside | Location::Temporary => None,
        Location::Outside(path) => Some(format!("the command {does} `{}`, outside of the workspace", path.display())),
        Location::Unknown => {
            Some(format!("the command {verb} `{}`, which may be outside of the workspace", file.written))
        }
    };
    if effects.writes.len() > FILES {
        return Some(format!("the command writes to more than {FILES} files; not all of them are checked"));
    }
    let mut writes = effects.writes.iter().filter_map(|file| concern(file, "writes to", "writes to"));
    let mut scripts = effects.scripts.iter().filter_map(|file| concern(file, "runs", "runs"));
    writes.next().or_else(|| scripts.next())
}

/// Returns the first tool that would be downloaded because the workspace does not have it.
pub(super) fn missing_tool<'a>(effects: &'a Effects, scope: &Scope) -> Option<&'a str> {
    let is_there = |file: &FileReference| paths(file).iter().any(|path| is_installed(path, scope));
    effects.tools.iter().find(|file| !is_there(file)).map(|file| file.written.as_str())
}

/// Returns `true` if a tool is installed in a folder, or in a parent folder within the workspace.
fn is_installed(path: &str, scope: &Scope) -> bool {
    let Some(Ok(place)) = plain(path).map(|path| scope.resolve(path)) else {
        return scope.workspace().join(path).exists();
    };
    let Some(name) = place.file_name() else { return false };
    // Links in `.bin` point to the packages.
    let tool = std::path::Path::new("node_modules/.bin").join(name);
    let named = std::path::Path::new("node_modules/.bin").join(std::path::Path::new(path).file_name().unwrap_or(name));
    place
        .ancestors()
        .take_while(|folder| folder.starts_with(scope.workspace()))
        .any(|folder| folder.join(&tool).exists() || folder.join(&named).exists())
}
