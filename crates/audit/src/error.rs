//! Errors of logs.

use std::io;

use crate::keys::KeyError;
use crate::record::RecordError;

/// An error of a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The storage failed.
    #[error("the audit log cannot be {doing}: {error}")]
    Storage {
        /// The attempted operation, as a participle.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The location has no log and no traces of one.
    #[error("audit log not found: no file `seg-….jsonl`")]
    Missing,
    /// The log is damaged in a way that only an attack or a broken disk can cause.
    #[error("the audit log is damaged: {what}; keep the folder unchanged, investigate, and begin a new log elsewhere")]
    Damaged {
        /// The damage.
        what: String,
    },
    /// A line is not a record.
    #[error("line {line} of `{file}` is damaged: {error}; verify the log")]
    Line {
        /// The file of the segment.
        file: String,
        /// The number of the line, from 1 on.
        line: u64,
        /// The problem.
        error: RecordError,
    },
    /// A line has no end: a crash left it, or it is being written.
    #[error("`{file}` ends in half a record; verify the log")]
    HalfRecord {
        /// The file of the segment.
        file: String,
    },
    /// The log was cut, replaced or rewritten while it was read.
    #[error("the audit log was cut or replaced while it was read; read it again")]
    Restarted,
    /// The key belongs to another log than the one in this location.
    #[error(
        "the key belongs to the audit log `{log}`, which is missing; restore that log, or use a new key for a new log"
    )]
    Gone {
        /// The log that the key belongs to.
        log: String,
    },
    /// The log was signed with another key.
    #[error(
        "the audit log is signed with another key (its public key is `{expected}`, the one given has `{given}`): use the key of this log; \
         if the key was rotated, the log was restored from an older copy"
    )]
    WrongKey {
        /// The active public key.
        expected: String,
        /// The public key of the key that was given.
        given: String,
    },
    /// The key could not be read or made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Keys were rotated, but the old one is still in the key file.
    #[error(
        "the new key of the audit log is active, but the old one could not be removed; opening the log removes it: {0}"
    )]
    OldKeyStays(KeyError),
    /// Records were lost, and operations that need a record must not begin.
    #[error("the audit log could not keep its records: {why}")]
    Lost {
        /// The reason.
        why: String,
    },
    /// The record is unknown, or not covered by a checkpoint yet.
    #[error("record {seq} not found, or not covered by a checkpoint yet")]
    NoRecord {
        /// The number of the record.
        seq: u64,
    },
    /// The value cannot be recorded as JSON.
    #[error("the value cannot be written as JSON: {0}")]
    NoJson(serde_json::Error),
    /// The queue of the log is full.
    #[error("the audit log does not keep up: {waiting} bytes are waiting to be written")]
    Overloaded {
        /// The number of waiting bytes.
        waiting: usize,
    },
    /// The log was opened before this process was forked.
    #[error("the audit log was opened by another process; after a fork, open the log again")]
    Forked,
    /// The log was closed.
    #[error("the audit log is closed")]
    Closed,
}

impl AuditError {
    pub(crate) fn no_segments(has_checkpoints: bool) -> Self {
        if has_checkpoints {
            // An attacker who removes all records must not be able to fake an empty location.
            return Self::Damaged { what: "all segments are missing, but checkpoints exist".to_owned() };
        }
        Self::Missing
    }
}

/// Adds the attempted operation to storage errors.
pub(crate) trait StorageContext<T> {
    fn doing(self, doing: &'static str) -> Result<T, AuditError>;
}

impl<T> StorageContext<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, AuditError> {
        self.map_err(|error| AuditError::Storage { doing, error })
    }
}
