//! Whether a command writes to a file outside of the workspace.

use crate::condition::Scope;
use crate::shell::Analysis;

/// What the shell makes something else of, and what can be read in two ways. `…` stands for what is known only when the command runs.
const EXPANDED: [char; 12] = ['$', '`', '*', '?', '[', '{', '(', '\\', '\n', '\'', '"', '…'];

/// The first file outside of the workspace that the command is known to write to, or of which nobody can tell, in words.
pub(super) fn why(analysis: &Analysis, scope: &Scope) -> Option<String> {
    analysis.writes.iter().find_map(|written| {
        let Some(path) = plain(written).filter(|path| !analysis.moves || path.starts_with('/')) else {
            return Some(format!("it cannot be told whether `{written}`, which it writes to, is in the workspace"));
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
