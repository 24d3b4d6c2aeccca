//! Receipts: checkpoints that a collector has signed too, after it stored the records that they cover.

use std::time::SystemTime;

use amplifier_audit::{Checkpoint, Hash, Note, PublicKey, SigningKey};
use async_nats::HeaderMap;
use bytes::Bytes;

use crate::records::LogPosition;
use crate::records::chunk::header;
use crate::records::mirror::SignedCheckpoint;
use crate::{Connection, FleetError, FleetName, StoredMessage, subjects};

const NEXT: &str = "Amp-Next";
const HEAD: &str = "Amp-Head";
const GAP: &str = "Amp-Gap";
const BLOBS: &str = "Amp-Blobs";
const PROBLEM: &str = "Amp-Problem";

/// The most missing blobs that one message names.
const MAX_BLOBS: usize = 32;

/// A collector, and the key that signs its receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorKey {
    /// The name.
    pub name: FleetName,
    /// The public key.
    pub key: PublicKey,
}

impl CollectorKey {
    /// Returns the time at which the collector signed this note; `None` unless it has.
    pub(crate) fn signed_at(&self, note: &Note) -> Option<SystemTime> {
        note.cosigned_at(&signature_name(&self.name), &self.key)
    }
}

fn signature_name(collector: &FleetName) -> String {
    format!("amplifier-collector/{collector}")
}

/// Adds the signature of a collector to a checkpoint.
pub(crate) fn sign(note: Note, collector: &FleetName, key: &SigningKey) -> Note {
    note.cosign(&signature_name(collector), key, SystemTime::now())
}

/// The receipt of one collector for one log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Receipt {
    /// The collector.
    pub collector: FleetName,
    /// The covered records.
    pub checkpoint: Checkpoint,
    /// The time of the receipt, by the collector's clock.
    pub at: SystemTime,
    /// The signed note.
    pub note: Note,
}

impl Receipt {
    /// Reads a receipt from a note.
    ///
    /// # Errors
    /// If it is not a checkpoint of this log, or not signed by the collector.
    pub fn read(note: Note, log: &FleetName, collector: &CollectorKey) -> Result<Self, FleetError> {
        let invalid =
            |cause: String| FleetError::Invalid { subject: format!("receipt of `{}`", collector.name), cause };
        let checkpoint = Checkpoint::read(&note).map_err(|error| invalid(error.to_string()))?;
        if checkpoint.log != **log {
            return Err(invalid(format!("it is for another log, `{}`", checkpoint.log)));
        }
        let at = collector
            .signed_at(&note)
            .ok_or_else(|| invalid("it is not signed with the collector's key".to_owned()))?;
        Ok(Self { collector: collector.name.clone(), checkpoint, at, note })
    }

    /// Returns the covered position.
    pub fn position(&self) -> LogPosition {
        LogPosition { size: self.checkpoint.size, head: self.checkpoint.head }
    }

    /// Returns the number of received records: the covered ones, and the record with the checkpoint itself.
    pub fn received(&self) -> u64 {
        self.checkpoint.size.saturating_add(1)
    }
}

/// The message of a collector about one log.
#[derive(Clone, Debug)]
pub(crate) struct MirrorState {
    /// The last receipt.
    pub(crate) note: Option<Note>,
    /// The end of the mirror.
    pub(crate) end: LogPosition,
    /// `true` if records after the end of the mirror are missing, and later ones have arrived.
    pub(crate) has_gap: bool,
    /// Missing blobs.
    pub(crate) blobs: Vec<Hash>,
    /// The reason for which records are rejected.
    pub(crate) problem: Option<String>,
}

impl MirrorState {
    /// Returns the state of a mirror that has this receipt, and perhaps more.
    pub(crate) fn of_receipt(receipt: SignedCheckpoint) -> Self {
        let SignedCheckpoint { checkpoint, note } = receipt;
        let end = LogPosition { size: checkpoint.size, head: checkpoint.head };
        Self { note: Some(note), end, has_gap: false, blobs: Vec::new(), problem: None }
    }

    pub(crate) fn message(&self) -> (HeaderMap, Bytes) {
        let mut headers = HeaderMap::new();
        headers.insert(NEXT, self.end.size.to_string().as_str());
        headers.insert(HEAD, self.end.head.to_string().as_str());
        if self.has_gap {
            headers.insert(GAP, "true");
        }
        if !self.blobs.is_empty() {
            let hashes: Vec<String> = self.blobs.iter().take(MAX_BLOBS).map(Hash::to_string).collect();
            headers.insert(BLOBS, hashes.join(" ").as_str());
        }
        if let Some(problem) = &self.problem {
            // A header has one line.
            headers.insert(PROBLEM, problem.replace(['\r', '\n'], " ").as_str());
        }
        (headers, self.note.as_ref().map(Note::to_string).unwrap_or_default().into())
    }

    pub(crate) fn read(message: &StoredMessage) -> Result<Self, FleetError> {
        let headers = &message.headers;
        let invalid = |cause: String| FleetError::Invalid { subject: message.subject.clone(), cause };
        let size = header(headers, NEXT).and_then(|text| text.parse().ok());
        let head = header(headers, HEAD).and_then(|text| Hash::from_hex(text.as_bytes()));
        let (Some(size), Some(head)) = (size, head) else {
            return Err(invalid("the headers are not those of a receipt".to_owned()));
        };
        let note = match message.payload.is_empty() {
            true => None,
            false => Some(Note::parse(&message.payload).map_err(|error| invalid(error.to_string()))?),
        };
        let hashes = header(headers, BLOBS).unwrap_or_default().split(' ');
        Ok(Self {
            note,
            end: LogPosition { size, head },
            has_gap: header(headers, GAP).is_some(),
            blobs: hashes.filter_map(|text| Hash::from_hex(text.as_bytes())).collect(),
            problem: header(headers, PROBLEM).map(str::to_owned),
        })
    }

    /// Returns the receipt, if there is one.
    ///
    /// # Errors
    /// As [`Receipt::read`].
    pub(crate) fn receipt(&self, log: &FleetName, collector: &CollectorKey) -> Result<Option<Receipt>, FleetError> {
        self.note.clone().map(|note| Receipt::read(note, log, collector)).transpose()
    }
}

/// Reads the last message of a collector about a log, with the message's sequence number.
pub(crate) async fn read_state(
    connection: &Connection,
    machine: &FleetName,
    log: &FleetName,
    collector: &FleetName,
) -> Result<Option<(u64, MirrorState)>, FleetError> {
    let subject = subjects::receipt(machine, log, collector);
    let message = connection.last_message(subjects::RECEIPT, &subject).await?;
    message.map(|message| Ok((message.sequence, MirrorState::read(&message)?))).transpose()
}

/// Reads the last receipt of a collector for a log from the centre.
///
/// # Errors
/// If the centre does not reply, or the receipt is not signed by the collector.
pub async fn read_receipt(
    connection: &Connection,
    machine: &FleetName,
    log: &FleetName,
    collector: &CollectorKey,
) -> Result<Option<Receipt>, FleetError> {
    match read_state(connection, machine, log, &collector.name).await? {
        Some((_, state)) => state.receipt(log, collector),
        None => Ok(None),
    }
}
