//! What is different from what was trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::Pin;

/// What the store says about a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustStatus {
    /// It is, byte for byte, what the person has trusted.
    Trusted,
    /// The person has not decided about it.
    Unknown,
    /// The person has trusted something else under this name; this is what differs.
    Changed(Vec<FileChange>),
}

/// A file that is not as it was trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub file: PathBuf,
    /// What is different.
    pub difference: Difference,
}

/// What is different about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// What is in it.
    Content,
    /// Who may do what with it.
    Mode,
    /// Where the link leads.
    Link,
    /// It was not there, or nothing named it.
    New,
    /// It is not there, or nothing names it any more.
    Gone,
    /// It cannot be read any more.
    Unreadable,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.difference {
            Difference::Content => "has other content",
            Difference::Mode => "has another mode",
            Difference::Link => "leads elsewhere",
            Difference::New => "is new",
            Difference::Gone => "is no longer part of it",
            Difference::Unreadable => "cannot be read",
        };
        write!(f, "`{}` {what}", self.file.display())
    }
}

impl Pin {
    /// How another pin of the same file differs. Content comes first: whoever changed that may as well have changed the rest.
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

/// Compares what was trusted with what is there now.
pub(super) fn changes(before: &BTreeMap<PathBuf, Pin>, now: &BTreeMap<PathBuf, Pin>) -> Vec<FileChange> {
    let change = |file: &PathBuf, difference| FileChange { file: file.clone(), difference };
    let differing = now.iter().filter_map(|(file, pin)| match before.get(file) {
        Some(before) => before.difference(pin).map(|difference| change(file, difference)),
        None => Some(change(file, Difference::New)),
    });
    let gone = before.keys().filter(|file| !now.contains_key(*file)).map(|file| change(file, Difference::Gone));
    differing.chain(gone).collect()
}
