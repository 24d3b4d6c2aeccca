//! Whether a command writes to a file outside of the workspace.

use std::io;

use crate::condition::Scope;
use crate::shell::Analysis;

/// What the shell makes something else of, and what can be read in two ways. `…` stands for what is known only when the command runs.
const EXPANDED: [char; 12] = ['$', '`', '*', '?', '[', '{', '(', '\\', '\n', '\'', '"', '…'];

/// So many files of a folder are looked at to know what a pattern may stand for.
const FILES: usize = 10_000;

/// The first file outside of the workspace that the command is known to write to, or of which nobody can tell, in words.
pub(super) fn why(analysis: &Analysis, scope: &Scope) -> Option<String> {
    analysis.writes.iter().find_map(|written| {
        let is_placed = !analysis.moves || written.starts_with('/');
        let Some(path) = plain(written).filter(|_| is_placed) else {
            let is_inside = is_placed && folder(written).is_some_and(|folder| holds_only_inside(folder, scope));
            let why = format!("it cannot be told whether `{written}`, which it writes to, is in the workspace");
            return (!is_inside).then_some(why);
        };
        match scope.resolve(path) {
            Ok(place) if place.starts_with(scope.workspace()) => None,
            Ok(place) => Some(format!("it writes to `{}`, outside of the workspace", place.display())),
            Err(_) => Some(format!("it cannot be told where `{written}`, which it writes to, leads")),
        }
    })
}

/// The path that a written file stands for, if it stands for itself.
fn plain(written: &str) -> Option<&str> {
    let is_plain = !written.is_empty() && !written.contains(EXPANDED) && !written.starts_with('~');
    is_plain.then_some(written)
}

/// The folder of the files that a pattern such as `src/*.rs` stands for.
fn folder(pattern: &str) -> Option<&str> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    let is_plain_name = plain(&name.replace(['*', '?'], "x")).is_some();
    plain(folder).filter(|_| is_plain_name)
}

/// Whether a folder is in the workspace, and no link in it leads out.
fn holds_only_inside(folder: &str, scope: &Scope) -> bool {
    let is_inside = |path: &str| scope.resolve(path).is_ok_and(|place| place.starts_with(scope.workspace()));
    let is_harmless = |file: std::fs::DirEntry| {
        file.file_type().is_ok_and(|kind| !kind.is_symlink()) || file.path().to_str().is_some_and(is_inside)
    };
    let files = scope.resolve(folder).and_then(std::fs::read_dir);
    let count_and_judge = |(count, file): (usize, io::Result<_>)| count < FILES && file.is_ok_and(is_harmless);
    is_inside(folder) && files.is_ok_and(|files| files.enumerate().all(count_and_judge))
}
