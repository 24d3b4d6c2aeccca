//! What can go wrong with a log.

use std::io;

use crate::keys::KeyError;
use crate::record::RecordError;

/// Why a log cannot be opened, or not be written to.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The place where it is kept failed.
    #[error("the audit log cannot be {doing}: {error}")]
    Storage {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// There is no log in the place, and nothing says that there was one.
    #[error("there is no audit log here: no file `seg-….jsonl`")]
    Missing,
    /// The log is damaged where only an attack or a broken disk can damage it.
    #[error(
        "the audit log is damaged: {what}; keep the folder as it is, find out what happened, and begin a new log elsewhere"
    )]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// A line is not a record.
    #[error("line {line} of `{file}` is not as it was recorded: {error}; verify the log")]
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
    /// The log was cut, replaced or written again from an earlier place while it was read.
    #[error("the audit log was cut or replaced while it was read; read it again")]
    Restarted,
    /// The key belongs to a log that is not the one in this place.
    #[error(
        "the key belongs to the audit log `{log}`, which is not here: find out what became of it, or use a new key for a new log"
    )]
    Gone {
        /// The log that the key belongs to.
        log: String,
    },
    /// The log was signed with another key.
    #[error(
        "the audit log is signed with another key (its public key is `{expected}`, the one given has `{given}`): use the key of this log; \
         if that was rotated, the log was put back to what it was before"
    )]
    WrongKey {
        /// The public key in force.
        expected: String,
        /// The public key of the key that was given.
        given: String,
    },
    /// The key could not be read or made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Keys were rotated, but the old one is still in its file.
    #[error(
        "the new key of the audit log is in force, but the old one could not be removed and goes when the log is next opened: {0}"
    )]
    OldKeyStays(KeyError),
    /// Records could not be kept, and operations that need a record must not begin.
    #[error("the audit log could not keep its records: {why}")]
    Lost {
        /// The reason.
        why: String,
    },
    /// There is no such record, or no checkpoint covers it yet.
    #[error("record {seq} is not there, or no checkpoint covers it yet")]
    NoRecord {
        /// Its number.
        seq: u64,
    },
    /// What was to be recorded is no JSON.
    #[error("it cannot be written as JSON: {0}")]
    NoJson(serde_json::Error),
    /// More is waiting than the log can hold.
    #[error("the audit log does not keep up: {waiting} bytes are waiting to be written")]
    Overloaded {
        /// How much is waiting.
        waiting: usize,
    },
    /// Another process opened the log, and this one was forked from it.
    #[error("the audit log was opened by another process: after a fork, open it anew")]
    Forked,
    /// The log was closed.
    #[error("the audit log is closed")]
    Closed,
}

impl AuditError {
    /// A log without segments, of which checkpoints may be known.
    pub(crate) fn no_segments(has_checkpoints: bool) -> Self {
        if has_checkpoints {
            // Whoever removed the records must not leave a place that looks as if nothing had ever been there.
            return Self::Damaged { what: "its checkpoints are there, but no segment is".to_owned() };
        }
        Self::Missing
    }
}

/// Says what was tried when the storage failed.
pub(crate) trait StorageContext<T> {
    fn doing(self, doing: &'static str) -> Result<T, AuditError>;
}

impl<T> StorageContext<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, AuditError> {
        self.map_err(|error| AuditError::Storage { doing, error })
    }
}
