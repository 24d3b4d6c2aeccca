//! The mirror of one log: the same bytes, in the folder of a collector.

mod open;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use amplifier_audit::{
    BlobReference, Checkpoint, Folder, Hash, LogTail, Note, NoteError, PublicKey, Record, RecordSource, RejectedLines,
    SigningKey, Storage, blob_file, segment_file,
};
use amplifier_process::files::{Durability, write_atomic};

pub(crate) use self::open::read_receipt_file;

use crate::FleetName;
use crate::records::chunk::{ChunkHeader, is_checkpoint};
use crate::records::receipt::{self, MirrorState};
use crate::records::{LogPosition, RecordsError};

/// The mirror of one log.
///
/// Only records that follow are appended. A receipt covers only records that are synced, and whose large bodies are stored.
pub(crate) struct Mirror {
    path: PathBuf,
    folder: Folder,
    log: FleetName,
    /// The key that a new log must begin with, if it is known.
    key: Option<PublicKey>,
    tail: Option<LogTail>,
    /// The newest checkpoint in the records.
    newest: Option<SignedCheckpoint>,
    /// The newest checkpoint that the collector has signed.
    receipt: Option<SignedCheckpoint>,
    /// The large bodies that are not stored yet.
    missing: BTreeMap<String, BlobReference>,
    /// The segments with bytes that are not synced, from this one on.
    dirty: Option<u64>,
    has_gap: bool,
    problem: Option<String>,
}

/// A checkpoint with its signatures.
#[derive(Clone, Debug)]
pub(crate) struct SignedCheckpoint {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) note: Note,
}

impl SignedCheckpoint {
    pub(crate) fn read(note: Note) -> Result<Self, NoteError> {
        Ok(Self { checkpoint: Checkpoint::read(&note)?, note })
    }
}

/// The effect of a chunk on a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Append {
    Appended,
    /// All its records are in the mirror.
    Known,
    /// Records before it are missing.
    Gap,
    /// It contradicts the mirror.
    Rejected,
    /// The mirror cannot be used.
    Damaged,
}

impl Mirror {
    /// Appends the records of a chunk that follow, and returns the effect.
    pub(crate) fn append(&mut self, chunk: &ChunkHeader, lines: &[u8]) -> Result<Append, RecordsError> {
        let end = self.end();
        if chunk.to.size <= end.size {
            let is_same = chunk.to.size < end.size || chunk.to.head == end.head;
            return Ok(if is_same {
                Append::Known
            } else {
                self.reject("the records differ from those of the mirror".to_owned())
            });
        }
        let begins = self.tail.is_none() && chunk.from == chunk.first;
        // Lines that are sent as a blob may be missing.
        if (chunk.from > end.size && !begins) || lines.is_empty() {
            return Ok(self.gap(chunk));
        }
        let known = usize::try_from(end.size.saturating_sub(chunk.from)).unwrap_or(usize::MAX);
        let skip: usize = match begins {
            true => 0,
            false => lines.split_inclusive(|byte| *byte == b'\n').take(known).map(<[u8]>::len).sum(),
        };
        let lines = &lines[skip..];
        let before = self.tail.clone();
        let seen = match self.take(chunk.segment, lines) {
            Ok(seen) => seen,
            Err(rejected) => return Ok(self.reject(rejected.to_string())),
        };
        let is_whole = self.end() == chunk.to && self.tail.as_ref().is_some_and(|tail| tail.log() == &*self.log);
        let is_expected =
            before.is_some() || self.key.is_none_or(|key| self.tail.as_ref().is_some_and(|tail| tail.key() == key));
        if !is_whole || !is_expected {
            self.tail = before;
            let text = if is_whole {
                "the log is signed with another key than the machine's"
            } else {
                "the records are not those that the message names"
            };
            return Ok(self.reject(text.to_owned()));
        }
        if let Err(error) = self.write(chunk.segment, before.as_ref(), lines) {
            self.tail = before;
            return Err(error);
        }
        self.remember(seen)?;
        (self.has_gap, self.problem) = (false, None);
        Ok(Append::Appended)
    }

    /// Checks lines, and moves the tail behind them.
    fn take(&mut self, segment: u64, lines: &[u8]) -> Result<SeenRecords, RejectedLines> {
        let mut seen = SeenRecords::default();
        let visit = |record: &Record<'_>| seen.add(record);
        match &mut self.tail {
            Some(tail) => tail.append(segment, lines, visit)?,
            None => self.tail = Some(LogTail::begin(segment, lines, visit)?),
        }
        Ok(seen)
    }

    fn remember(&mut self, seen: SeenRecords) -> Result<(), RecordsError> {
        for (number, blob) in seen.blobs {
            let file = blob_file(&blob.hash);
            let stored = self.folder.size(&file).map_err(RecordsError::file(self.path.join(&file)))?;
            if number >= self.covered() && stored.is_none() {
                self.missing.insert(file, blob);
            }
        }
        self.newest = seen.newest.or(self.newest.take());
        Ok(())
    }

    fn write(&mut self, segment: u64, before: Option<&LogTail>, mut lines: &[u8]) -> Result<(), RecordsError> {
        let file = segment_file(segment);
        let failed = || RecordsError::file(self.path.join(&file));
        let offset = before.filter(|tail| tail.segment() == segment).map_or(0, LogTail::offset);
        self.folder.make_folder("").map_err(failed())?;
        let written = loop {
            if lines.is_empty() {
                break Ok(());
            }
            match self.folder.append(&file, lines) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => lines = &lines[bytes..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if written.is_err() {
            self.folder.truncate(&file, offset).map_err(failed())?;
        }
        self.dirty.get_or_insert(segment);
        written.map_err(failed())
    }

    fn gap(&mut self, chunk: &ChunkHeader) -> Append {
        let end = self.end().size;
        // Otherwise the machine would send the rest again and again.
        self.has_gap = end >= chunk.first || self.tail.is_none();
        if !self.has_gap {
            let first = chunk.first;
            self.problem = Some(format!(
                "the machine has removed the records {end} to {first}, which never arrived; copy the mirror of another collector"
            ));
        }
        Append::Gap
    }

    fn reject(&mut self, text: String) -> Append {
        if self.problem.as_ref() != Some(&text) {
            tracing::error!(mirror = %self.path.display(), text, "records are rejected");
        }
        self.problem = Some(text);
        Append::Rejected
    }

    /// Stores a missing large body; `None` if the machine has erased it.
    pub(crate) fn put_blob(&mut self, blob: &BlobReference, content: Option<&[u8]>) -> Result<(), RecordsError> {
        let file = blob_file(&blob.hash);
        if let Some(content) = content {
            let path = self.path.join(&file);
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let stored =
                self.folder.make_folder(folder).and_then(|()| write_atomic(&path, content, Durability::Synced));
            stored.and_then(|()| self.folder.sync_folder("blobs")).map_err(RecordsError::file(path))?;
        }
        self.missing.remove(&file);
        Ok(())
    }

    /// Syncs all records, and signs the newest checkpoint if it covers more than the last receipt. Returns `true` if there is a new receipt.
    pub(crate) fn sign(&mut self, collector: &FleetName, key: &SigningKey) -> Result<bool, RecordsError> {
        self.sync()?;
        if !self.is_unsigned() || !self.missing.is_empty() {
            return Ok(false);
        }
        let Some(SignedCheckpoint { checkpoint, note }) = self.newest.clone() else { return Ok(false) };
        let note = receipt::sign(note, collector, key);
        let file = self.path.join(open::RECEIPT);
        write_atomic(&file, note.to_string().as_bytes(), Durability::Synced).map_err(RecordsError::file(file))?;
        self.receipt = Some(SignedCheckpoint { checkpoint, note });
        Ok(true)
    }

    fn sync(&mut self) -> Result<(), RecordsError> {
        let (Some(first), Some(tail)) = (self.dirty, &self.tail) else { return Ok(()) };
        for segment in first..=tail.segment() {
            let file = segment_file(segment);
            self.folder.sync(&file).map_err(RecordsError::file(self.path.join(file)))?;
        }
        self.folder.sync_folder("").map_err(RecordsError::file(&self.path))?;
        self.dirty = None;
        Ok(())
    }

    pub(crate) fn end(&self) -> LogPosition {
        self.tail.as_ref().map_or(LogPosition::START, |tail| LogPosition { size: tail.size(), head: tail.head() })
    }

    /// Returns `true` if a checkpoint covers more records than the receipt.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.checkpoint.size > self.covered())
    }

    /// Returns the number of records that the receipt covers.
    fn covered(&self) -> u64 {
        self.receipt.as_ref().map_or(0, |receipt| receipt.checkpoint.size)
    }

    /// Returns the number of received records: the covered ones, and the record with the checkpoint itself.
    pub(crate) fn received(&self) -> u64 {
        self.receipt.as_ref().map_or(0, |receipt| receipt.checkpoint.size + 1)
    }

    pub(crate) fn missing(&self) -> Vec<BlobReference> {
        self.missing.values().copied().collect()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    pub(crate) fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Returns the message about this mirror for the machine.
    pub(crate) fn state(&self) -> MirrorState {
        let blobs: Vec<Hash> = self.missing.values().map(|blob| blob.hash).collect();
        MirrorState {
            note: self.receipt.as_ref().map(|receipt| receipt.note.clone()),
            end: self.end(),
            has_gap: self.has_gap,
            blobs,
            problem: self.problem.clone(),
        }
    }
}

/// The parts of records that a mirror remembers.
#[derive(Default)]
struct SeenRecords {
    newest: Option<SignedCheckpoint>,
    blobs: Vec<(u64, BlobReference)>,
}

impl SeenRecords {
    fn add(&mut self, record: &Record<'_>) {
        #[derive(serde::Deserialize)]
        struct NoteBody {
            note: String,
        }
        self.blobs.extend(record.blob().map(|blob| (record.seq, blob)));
        if is_checkpoint(record)
            && let Ok(NoteBody { note }) = serde_json::from_str(record.body.get())
            && let Ok(newest) = Note::parse(note).and_then(SignedCheckpoint::read)
        {
            self.newest = Some(newest);
        }
    }
}
