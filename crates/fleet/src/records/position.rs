//! Positions in logs.

use amplifier_audit::Hash;

/// A position in a log: the number of records before it, and the hash of the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of records.
    pub size: u64,
    /// The hash of the last record.
    pub head: Hash,
}

impl LogPosition {
    /// The beginning of every log.
    pub(crate) const START: Self = Self { size: 0, head: Hash::ZERO };
}
