//! Trust status of bundles, and changes since they were trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::Pin;

/// The trust status of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustStatus {
    /// Byte for byte the version that the user trusts.
    Trusted,
    /// The user has not decided yet.
    Unknown,
    /// The user has trusted another version; these files differ.
    Changed(Vec<FileChange>),
}

/// A file that has changed since it was trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub file: PathBuf,
    /// Kind of difference.
    pub difference: Difference,
}

/// A difference between two versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Content.
    Content,
    /// Permissions.
    Mode,
    /// Target of the link.
    Link,
    /// The file did not exist, or nothing referred to it.
    New,
    /// The file no longer exists, or nothing refers to it.
    Gone,
    /// The file is no longer readable.
    Unreadable,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.difference {
            Difference::Content => "has other content",
            Difference::Mode => "has another mode",
            Difference::Link => "points elsewhere",
            Difference::New => "is new",
            Difference::Gone => "is no longer part of the bundle",
            Difference::Unreadable => "cannot be read",
        };
        write!(f, "`{}` {what}", self.file.display())
    }
}

impl Pin {
    /// Returns the difference to another pin of the same file. Content is checked first, because it matters most.
    pub(super) fn difference(&self, now: &Self) -> Option<Difference> {
        let Self { sha256, mode, leads_to } = self;
        if *sha256 != now.sha256 {
            Some(Difference::Content)
        } else if *leads_to != now.leads_to {
            Some(Difference::Link)
        } else {
            (*mode != now.mode).then_some(Difference::Mode)
        }
    }
}

pub(super) fn changes(before: &BTreeMap<PathBuf, Pin>, now: &BTreeMap<PathBuf, Pin>) -> Vec<FileChange> {
    let change = |file: &PathBuf, difference| FileChange { file: file.clone(), difference };
    let differing = now.iter().filter_map(|(file, pin)| match before.get(file) {
        Some(before) => before.difference(pin).map(|difference| change(file, difference)),
        None => Some(change(file, Difference::New)),
    });
    let gone = before.keys().filter(|file| !now.contains_key(*file)).map(|file| change(file, Difference::Gone));
    differing.chain(gone).collect()
}
