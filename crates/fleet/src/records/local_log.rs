//! The log of this machine, read for shipping.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::path::PathBuf;

use amplifier_audit::{
    AuditError, Folder, Hash, LogLines, LogPart, LogReader, Record, RecordSource, Storage, blob_file, segment_file,
};
use bytes::Bytes;

use crate::records::chunk::{self, Chunk};
use crate::records::{LogPosition, RecordsError};

/// The number of remembered checkpoints, with which receipts are compared: those of sixteen million records.
const REMEMBERED: usize = 1 << 16;

/// The number of bytes in which the last line usually is.
const END: u64 = 32 << 10;

/// A log that is read in chunks, from any position on.
pub(crate) struct LocalLog {
    folder: Folder,
    path: PathBuf,
    reader: LogReader,
    /// The chunks that are read and not yet taken.
    chunks: VecDeque<Chunk>,
    /// The position of the next chunk.
    at: Option<LogPosition>,
    /// The first existing segment, and the number of its first record.
    first: Option<(u64, u64)>,
    /// The positions of the last checkpoints before `at`, in order.
    covered: VecDeque<LogPosition>,
}

/// The comparison of a position with the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The log has the same records before the position.
    Same,
    /// The log has another record before the position, with this hash.
    Different,
    /// The log ends before the position.
    Shorter,
    /// Retention has removed the records before the position. The log begins with this one.
    Removed(u64),
}

impl LocalLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            folder: Folder::new(&path),
            path,
            reader: LogReader::new(),
            chunks: VecDeque::new(),
            at: None,
            first: None,
            covered: VecDeque::new(),
        }
    }

    /// Returns the log's id, if the log exists.
    pub(crate) fn id(&self) -> Result<Option<String>, RecordsError> {
        let Some(segment) = LogReader::new().segments(&self.folder)?.first().copied() else { return Ok(None) };
        Ok(self.first_record(segment, |record| record.log.to_string())?)
    }

    /// Returns the number of records.
    pub(crate) fn size(&self) -> Result<u64, RecordsError> {
        let Some(segment) = LogReader::new().segments(&self.folder)?.last().copied() else { return Ok(0) };
        let file = segment_file(segment);
        let failed = || RecordsError::file(self.path.join(&file));
        let end = self.folder.size(&file).map_err(failed())?.unwrap_or(0);
        let mut window = END;
        loop {
            let from = end.saturating_sub(window);
            let text = self.folder.read_part(&file, from, end - from).map_err(failed())?;
            let mut lines = text.rsplit(|byte| *byte == b'\n').skip(1);
            // The first line of the window is whole only at the beginning of the file.
            match (lines.next(), lines.next()) {
                (Some(line), before) if before.is_some() || from == 0 => {
                    return Ok(Record::parse(line).map_or(0, |record| record.seq + 1));
                }
                _ if from == 0 => return Ok(0),
                _ => window = window.saturating_mul(4),
            }
        }
    }

    /// Returns the position of the next chunk; `None` before the first [`seek`](Self::seek).
    pub(crate) fn at(&self) -> Option<LogPosition> {
        self.at
    }

    /// Compares a position with the log.
    pub(crate) fn compare(&mut self, position: LogPosition) -> Result<Comparison, RecordsError> {
        if position == LogPosition::START || self.at == Some(position) {
            return Ok(Comparison::Same);
        }
        let head = match self.covered.binary_search_by_key(&position.size, |covered| covered.size) {
            Ok(at) => self.covered.get(at).map(|covered| covered.head),
            Err(_) => LogReader::new().seek(&self.folder, position.size)?,
        };
        match head {
            Some(head) if head == position.head => Ok(Comparison::Same),
            Some(_) => Ok(Comparison::Different),
            None => match self.first_number()? {
                Some(first) if first > position.size => Ok(Comparison::Removed(first)),
                _ => Ok(Comparison::Shorter),
            },
        }
    }

    /// Goes to the record with this number, or to the first one after it that still exists.
    pub(crate) fn seek(&mut self, number: u64) -> Result<(), RecordsError> {
        (self.at, self.first) = (None, None);
        self.chunks.clear();
        self.covered.retain(|covered| covered.size < number);
        let number = self.first_number()?.map_or(number, |first| first.max(number));
        let head = self.reader.seek(&self.folder, number)?.ok_or(AuditError::Restarted)?;
        self.at = Some(LogPosition { size: number, head });
        Ok(())
    }

    /// Reads the next chunk, without taking it; `None` at the end of the log.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<&Chunk>, RecordsError> {
        if self.chunks.is_empty() {
            match self.reader.next_part(&self.folder)? {
                LogPart::Lines(lines) => self.read(&lines)?,
                LogPart::End { .. } => {}
                LogPart::Restarted => {
                    self.at = None;
                    return Err(AuditError::Restarted.into());
                }
            }
        }
        Ok(self.chunks.front())
    }

    /// Takes the chunk that was read last.
    pub(crate) fn take_chunk(&mut self) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        self.at = Some(chunk.header.to);
        self.covered.extend(chunk.covered);
        let most = self.covered.len().saturating_sub(REMEMBERED);
        self.covered.drain(..most);
    }

    /// Reads the content of a large body; `None` if it was erased, or altered.
    pub(crate) fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, RecordsError> {
        let file = blob_file(hash);
        let failed = || RecordsError::file(self.path.join(&file));
        if self.folder.size(&file).map_err(failed())?.is_none() {
            return Ok(None);
        }
        let content = self.folder.read(&file, 0).map_err(failed())?;
        Ok((Hash::sha256(&content) == *hash).then(|| content.into()))
    }

    fn read(&mut self, lines: &LogLines) -> Result<(), RecordsError> {
        self.wait_until_durable(lines)?;
        let first = self.first_number()?.unwrap_or(0);
        self.chunks.extend(chunk::split(lines, first)?);
        Ok(())
    }

    /// Waits until the lines survive a loss of power: the centre must never have records that this machine forgets.
    fn wait_until_durable(&self, lines: &LogLines) -> Result<(), RecordsError> {
        let file = segment_file(lines.segment);
        let path = self.path.join(&file);
        let failed = || RecordsError::file(path.clone());
        let end = lines.iter().last().map_or(0, |line| line.end);
        // A writer takes lines back while it holds the lock, if a write or sync of them fails.
        let lock = self.folder.lock().map_err(failed())?;
        let size = self.folder.size(&file).map_err(failed())?.unwrap_or(0);
        drop(lock);
        if size < end {
            return Err(AuditError::Restarted.into());
        }
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed())?;
        file.sync_data().map_err(failed())
    }

    /// Returns the number of the first existing record.
    fn first_number(&mut self) -> Result<Option<u64>, RecordsError> {
        let Some(segment) = LogReader::new().segments(&self.folder)?.first().copied() else { return Ok(None) };
        if self.first.is_none_or(|(known, _)| known != segment) {
            self.first = self.first_record(segment, |record| record.seq)?.map(|number| (segment, number));
        }
        Ok(self.first.map(|(_, number)| number))
    }

    fn first_record<T>(&self, segment: u64, read: impl FnOnce(&Record<'_>) -> T) -> Result<Option<T>, AuditError> {
        match LogReader::segment(segment).next_part(&self.folder)? {
            LogPart::Lines(lines) => {
                Ok(lines.iter().next().and_then(|line| line.record.ok()).map(|record| read(&record)))
            }
            _ => Ok(None),
        }
    }
}
