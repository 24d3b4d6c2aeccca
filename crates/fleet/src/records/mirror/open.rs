//! Opening a mirror as its collector left it, perhaps without a clean end.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use amplifier_audit::{
    Folder, LogPart, LogReader, Note, PublicKey, RecordSource, RejectedLines, Storage, segment_file,
};
use amplifier_process::files::read_regular;

use super::{Mirror, SignedCheckpoint};
use crate::FleetName;
use crate::records::RecordsError;

/// The file with the last receipt.
pub(super) const RECEIPT: &str = "receipt";

/// The largest receipt file.
const MAX_RECEIPT: u64 = 64 << 10;

impl Mirror {
    /// Opens a mirror, which need not exist yet. Bytes that a killed collector or a loss of power left are removed, unless a receipt covers them.
    pub(crate) fn open(path: &Path, log: FleetName, key: Option<PublicKey>) -> Result<Self, RecordsError> {
        let mut mirror = Self {
            path: path.to_owned(),
            folder: Folder::new(path),
            log,
            key,
            tail: None,
            newest: None,
            receipt: read_receipt_file(path)?,
            missing: BTreeMap::new(),
            dirty: None,
            has_gap: false,
            problem: None,
        };
        let segments = LogReader::new().segments(&mirror.folder)?;
        // The large bodies of records before the receipt are stored.
        let begin = mirror.segment_with(&segments, mirror.covered())?;
        for (index, &segment) in segments.iter().enumerate().skip(begin) {
            if let Some(rejected) = mirror.load(segment)? {
                if mirror.end().size < mirror.received() {
                    return Err(RecordsError::Mirror { path: path.to_owned(), rejected });
                }
                mirror.remove(&segments[index + 1..])?;
                break;
            }
        }
        Ok(mirror)
    }

    /// Returns the index of the segment with a record, or of the first one.
    fn segment_with(&self, segments: &[u64], number: u64) -> Result<usize, RecordsError> {
        for (index, segment) in segments.iter().enumerate().rev() {
            if let LogPart::Lines(lines) = LogReader::segment(*segment).next_part(&self.folder)?
                && let Some(Ok(first)) = lines.iter().next().map(|line| line.record.map(|record| record.seq))
                && first <= number
            {
                return Ok(index);
            }
        }
        Ok(0)
    }

    /// Reads a segment. Removes its end if that is not part of the log, and returns the reason.
    fn load(&mut self, segment: u64) -> Result<Option<RejectedLines>, RecordsError> {
        let file = segment_file(segment);
        let path = self.path.join(&file);
        let failed = || RecordsError::file(path.clone());
        let text = self.folder.read(&file, 0).map_err(failed())?;
        let rejected = match self.take(segment, &text) {
            Ok(seen) => return self.remember(seen).map(|()| None),
            Err(rejected) => rejected,
        };
        // Line by line up to the first wrong one.
        let mut end = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Ok(seen) = self.take(segment, line) else { break };
            self.remember(seen)?;
            end += line.len();
        }
        if self.end().size >= self.received() {
            match end {
                0 => self.folder.remove(&file).map_err(failed())?,
                end => self.folder.truncate(&file, end as u64).map_err(failed())?,
            }
            self.dirty = self.tail.as_ref().map(|tail| tail.segment());
        }
        Ok(Some(rejected))
    }

    fn remove(&self, segments: &[u64]) -> Result<(), RecordsError> {
        for segment in segments {
            let file = segment_file(*segment);
            self.folder.remove(&file).map_err(RecordsError::file(self.path.join(&file)))?;
        }
        Ok(())
    }
}

/// Reads the last receipt of a mirror.
pub(crate) fn read_receipt_file(mirror: &Path) -> Result<Option<SignedCheckpoint>, RecordsError> {
    let file = mirror.join(RECEIPT);
    match read_regular(&file, MAX_RECEIPT) {
        Ok(text) => match Note::parse(text).and_then(SignedCheckpoint::read) {
            Ok(receipt) => Ok(Some(receipt)),
            Err(error) => Err(RecordsError::ReceiptFile { path: file, error }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordsError::File { path: file, source }),
    }
}
