//! The edits of tools, so that one approved edit does not invalidate another.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

const MAX_VERSIONS: usize = 100;

/// The versions of files that edits produced, in order.
///
/// A model often requests several edits of a file at once. The user approves all of them before the first one runs, so all previews show the same
/// version. An edit changes only the text that it names, so it may follow another one, but not a change from elsewhere.
#[derive(Debug, Default)]
pub(super) struct EditHistory(HashMap<PathBuf, Vec<String>>);

impl EditHistory {
    /// Returns `true` if the versions are equal, or only edits lead from one to the other.
    pub(super) fn connects(&self, path: &Path, from: &str, to: &str) -> bool {
        let versions = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        from == to || versions.last().is_some_and(|last| last == to) && versions.iter().any(|version| version == from)
    }

    pub(super) fn add(&mut self, path: &Path, before: String, after: String) {
        let versions = self.0.entry(path.to_owned()).or_default();
        if versions.last() != Some(&before) {
            *versions = vec![before];
        }
        if versions.len() == MAX_VERSIONS {
            versions.remove(0);
        }
        versions.push(after);
    }

    pub(super) fn forget(&mut self, path: &Path) {
        self.0.remove(path);
    }
}
