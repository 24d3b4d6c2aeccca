//! Proofs that a record is in a log, verifiable with only the log's key.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::error::AuditError;
use crate::keys::PublicKey;
use crate::merkle::is_included;
use crate::note::{Checkpoint, Note};
use crate::reader::{read_records, read_tree};
use crate::record::{Kind, Record};
use crate::storage::RecordSource;
use crate::tail::{CheckpointBody, Segment};

/// A record, a signed checkpoint that covers it, and the path between them in the Merkle tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Proof {
    /// The number of the record.
    pub seq: u64,
    /// The line of the record in the log.
    pub record: String,
    /// The signed checkpoint.
    pub checkpoint: String,
    /// The hashes on the path from the record up to the root.
    pub path: Vec<Hash>,
}

/// An invalid proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The record is invalid, or another one than stated.
    #[error("the record was altered")]
    Record,
    /// The checkpoint is invalid, or of another log.
    #[error("the checkpoint is invalid, or of another log")]
    Checkpoint,
    /// The checkpoint is not signed with that key.
    #[error("the checkpoint is not signed with that key")]
    Key,
    /// The path does not lead from the record to the root.
    #[error("the record is not among those that the checkpoint covers")]
    Path,
}

impl Proof {
    /// Creates the proof for a record of a log, with the newest checkpoint.
    ///
    /// # Errors
    /// If the record is unknown or not covered by a checkpoint yet, or the log cannot be read.
    pub fn for_record(storage: &dyn RecordSource, seq: u64) -> Result<Self, AuditError> {
        let mut line = None;
        let mut newest = None;
        read_records(storage, |record| {
            if record.seq == seq {
                line = Some(record.line().to_owned());
            }
            let note = match record.kind {
                Kind::Checkpoint => record.body::<CheckpointBody>().map(|body| body.note).ok(),
                Kind::Segment => record.body::<Segment>().map(|body| body.note).ok(),
                _ => None,
            };
            newest = note.map(|note| (record.seq, note)).or(newest.take());
            ControlFlow::Continue(())
        })?;
        let damaged = |what: String| AuditError::Damaged { what };
        let record = line.ok_or(AuditError::NoRecord { seq })?;
        let (size, checkpoint) = newest.filter(|(size, _)| *size > seq).ok_or(AuditError::NoRecord { seq })?;
        let path = read_tree(storage)?
            .inclusion(seq, size)
            .ok_or_else(|| damaged(format!("the records do not form a tree with record {seq}")))?;
        Ok(Self { seq, record, checkpoint, path })
    }

    /// Checks the proof with the log's key; returns its checkpoint.
    ///
    /// # Errors
    /// If the proof is invalid.
    pub fn check(&self, key: &PublicKey) -> Result<Checkpoint, ProofError> {
        let record = Record::parse(self.record.as_bytes()).map_err(|_| ProofError::Record)?;
        let note = Note::parse(&self.checkpoint).map_err(|_| ProofError::Checkpoint)?;
        let checkpoint = Checkpoint::read(&note).map_err(|_| ProofError::Checkpoint)?;
        if record.seq != self.seq {
            return Err(ProofError::Record);
        }
        if record.log != checkpoint.log {
            return Err(ProofError::Checkpoint);
        }
        if !note.is_signed_by(&Checkpoint::origin(&checkpoint.log), key) {
            return Err(ProofError::Key);
        }
        if !is_included(&record.h, self.seq, checkpoint.size, &self.path, &checkpoint.root) {
            return Err(ProofError::Path);
        }
        Ok(checkpoint)
    }
}
