//! Whether a command writes to a file outside of the workspace, or runs one there.

use super::locations::{Location, locate, paths, plain};
use crate::condition::Scope;
use crate::shell::{Effects, FileReference};

/// So many files are looked at.
const FILES: usize = 1_000;

/// The first file outside of the workspace that the command is known to write to or to run, or of which nobody can tell, in words.
/// Temporary files count as inside.
pub(super) fn find_outside(effects: &Effects, scope: &Scope) -> Option<String> {
    let concern = |file: &FileReference, does: &str, verb: &str| match locate(file, scope) {
        Location::Inside | Location::Temporary => None,
        Location::Outside(path) => Some(format!("it {does} `{}`, outside of the workspace", path.display())),
        Location::Unknown => {
            Some(format!("it cannot be told whether `{}`, which it {verb}, is in the workspace", file.written))
        }
    };
    if effects.writes.len() > FILES {
        return Some(format!("it writes to more than {FILES} files, which are not all looked at"));
    }
    let mut writes = effects.writes.iter().filter_map(|file| concern(file, "writes to", "writes to"));
    let mut scripts = effects.scripts.iter().filter_map(|file| concern(file, "runs", "runs"));
    writes.next().or_else(|| scripts.next())
}

/// The first tool that would be downloaded, because it is not installed in the workspace.
pub(super) fn missing_tool<'a>(effects: &'a Effects, scope: &Scope) -> Option<&'a str> {
    let is_there = |file: &FileReference| paths(file).iter().any(|path| is_installed(path, scope));
    effects.tools.iter().find(|file| !is_there(file)).map(|file| file.written.as_str())
}

/// Whether a tool is installed in a folder, or in one above it in the workspace.
fn is_installed(path: &str, scope: &Scope) -> bool {
    let Some(Ok(place)) = plain(path).map(|path| scope.resolve(path)) else {
        return scope.workspace().join(path).exists();
    };
    let Some(name) = place.file_name() else { return false };
    // Links in `.bin` lead to the packages.
    let tool = std::path::Path::new("node_modules/.bin").join(name);
    let named = std::path::Path::new("node_modules/.bin").join(std::path::Path::new(path).file_name().unwrap_or(name));
    place
        .ancestors()
        .take_while(|folder| folder.starts_with(scope.workspace()))
        .any(|folder| folder.join(&tool).exists() || folder.join(&named).exists())
}
