//! The edits that tools have made, so that one edit is not refused for another one that people agreed to as well.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many versions of a file are remembered.
const MAX_VERSIONS: usize = 100;

/// The versions of files that edits made, each from the one before it.
///
/// A model often asks for several edits of one file at once. People are asked about all of them before the first is made, so each was shown on the same
/// version of the file. An edit changes only the text that it names, so it may follow another one; a file that anything else has changed may not.
#[derive(Debug, Default)]
pub(super) struct EditHistory(HashMap<PathBuf, Vec<String>>);

impl EditHistory {
    /// `true` if the versions are the same, or edits alone made the one of the other.
    pub(super) fn connects(&self, path: &Path, from: &str, to: &str) -> bool {
        let versions = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        from == to || versions.last().is_some_and(|last| last == to) && versions.iter().any(|version| version == from)
    }

    /// Adds an edit.
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

    /// Forgets the edits of a file that was replaced as a whole.
    pub(super) fn forget(&mut self, path: &Path) {
        self.0.remove(path);
    }
}
