//! The mirror of one log: the same bytes, in the folder of a collector.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use amplifier_audit::{
    BlobReference, Folder, Hash, LogReader, LogTail, Note, PublicKey, Record, RecordSource, RejectedLines, SigningKey,
    Storage, blob_file, segment_file,
};
use amplifier_process::files::{Durability, read_regular, write_atomic};

use crate::FleetName;
use crate::records::chunk::{ChunkHeader, is_checkpoint};
use crate::records::receipt::{self, MirrorState};
use crate::records::{Position, RecordsError};

/// The file with the last receipt.
pub(crate) const RECEIPT_FILE: &str = "receipt";

/// The largest receipt file.
const MAX_RECEIPT: u64 = 64 << 10;

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
    /// The newest checkpoint in the records, and the number of records that it covers.
    newest: Option<(u64, Note)>,
    receipt: Option<Note>,
    /// The number of records that the receipt covers.
    receipted: u64,
    /// The large bodies that are not stored yet.
    missing: BTreeMap<String, BlobReference>,
    /// The segments with bytes that are not synced, from this one on.
    dirty: Option<u64>,
    has_gap: bool,
    problem: Option<String>,
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
}

impl Mirror {
    /// Opens a mirror, which need not exist yet. A line that a killed collector left incomplete is removed.
    pub(crate) fn open(path: &Path, log: FleetName, key: Option<PublicKey>) -> Result<Self, RecordsError> {
        let mut mirror = Self {
            path: path.to_owned(),
            folder: Folder::new(path),
            log,
            key,
            tail: None,
            newest: None,
            receipt: None,
            receipted: 0,
            missing: BTreeMap::new(),
            dirty: None,
            has_gap: false,
            problem: None,
        };
        mirror.receipt = read_receipt_file(path)?;
        mirror.receipted = mirror.receipt.as_ref().and_then(covered).unwrap_or(0);
        let segments = LogReader::new().segments(&mirror.folder)?;
        // Large bodies of records before the receipt are stored.
        let begin = mirror.segment_with(&segments, mirror.receipted)?;
        for &segment in &segments[begin..] {
            mirror.load(segment, Some(&segment) == segments.last())?;
        }
        Ok(mirror)
    }

    fn segment_with(&self, segments: &[u64], number: u64) -> Result<usize, RecordsError> {
        for (index, segment) in segments.iter().enumerate().rev() {
            let mut reader = LogReader::segment(*segment);
            let first: Vec<u64> = match reader.next_part(&self.folder)? {
                amplifier_audit::LogPart::Lines(lines) => {
                    lines.iter().take(1).filter_map(|line| line.record.ok()).map(|record| record.seq).collect()
                }
                _ => Vec::new(),
            };
            if first.first().is_some_and(|first| *first <= number) {
                return Ok(index);
            }
        }
        Ok(0)
    }

    fn load(&mut self, segment: u64, is_last: bool) -> Result<(), RecordsError> {
        let file = segment_file(segment);
        let path = self.path.join(&file);
        let failed = || RecordsError::file(path.clone());
        let mut text = self.folder.read(&file, 0).map_err(failed())?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < text.len() && is_last {
            text.truncate(whole);
            self.folder.truncate(&file, whole as u64).map_err(failed())?;
            self.folder.sync(&file).map_err(failed())?;
        }
        if text.is_empty() && is_last {
            return self.folder.remove(&file).map_err(failed());
        }
        let seen =
            self.take(segment, &text).map_err(|rejected| RecordsError::Mirror { path: self.path.clone(), rejected })?;
        self.remember(seen)
    }

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
            if number >= self.receipted && stored.is_none() {
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
                Ok(0) => break Err(std::io::ErrorKind::WriteZero.into()),
                Ok(bytes) => lines = &lines[bytes..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
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
        let Some((size, note)) = self.newest.clone().filter(|(size, _)| *size > self.receipted) else {
            return Ok(false);
        };
        if !self.missing.is_empty() {
            return Ok(false);
        }
        let note = receipt::sign(note, collector, key);
        let file = self.path.join(RECEIPT_FILE);
        write_atomic(&file, note.to_string().as_bytes(), Durability::Synced).map_err(RecordsError::file(file))?;
        (self.receipted, self.receipt) = (size, Some(note));
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

    pub(crate) fn end(&self) -> Position {
        self.tail.as_ref().map_or(Position::START, |tail| Position { size: tail.size(), head: tail.head() })
    }

    pub(crate) fn received(&self) -> u64 {
        if self.receipt.is_some() { self.receipted + 1 } else { 0 }
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
            note: self.receipt.clone(),
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
    newest: Option<(u64, Note)>,
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
            && let Ok(note) = Note::parse(note)
        {
            self.newest = Some((record.seq, note));
        }
    }
}

/// Returns the number of records that a note covers.
fn covered(note: &Note) -> Option<u64> {
    amplifier_audit::Checkpoint::read(note).ok().map(|checkpoint| checkpoint.size)
}

/// Reads the last receipt of a mirror.
pub(crate) fn read_receipt_file(mirror: &Path) -> Result<Option<Note>, RecordsError> {
    let file = mirror.join(RECEIPT_FILE);
    match read_regular(&file, MAX_RECEIPT) {
        Ok(text) => Note::parse(text).map(Some).map_err(|error| RecordsError::ReceiptFile { path: file, error }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordsError::File { path: file, source }),
    }
}
