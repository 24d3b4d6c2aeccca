//! Going to a record by its number.

use super::{LogPart, LogReader};
use crate::Hash;
use crate::error::AuditError;
use crate::storage::RecordSource;
use crate::tail::segment_file;

impl LogReader {
    /// Goes to the record with this number, which may be the next one of a growing log. Returns the hash of the record before it, or `None` if
    /// the log does not have as many records, or no longer has this one: then the reader is at the beginning.
    ///
    /// # Errors
    /// If a line is not a record, or the log cannot be read, or is cut or replaced meanwhile.
    pub fn seek(&mut self, source: &dyn RecordSource, number: u64) -> Result<Option<Hash>, AuditError> {
        *self = Self { only: self.only, ..Self::default() };
        // From the last segment on, because a position is usually near the end.
        for segment in self.segments(source)?.into_iter().rev() {
            let mut reader = Self::segment(segment);
            match reader.seek_in_segment(source, number)? {
                SegmentSearch::Found(head) => {
                    *self = Self { only: self.only, ..reader };
                    return Ok(Some(head));
                }
                SegmentSearch::After => return Ok(None),
                SegmentSearch::Before => {}
            }
        }
        Ok(None)
    }

    fn seek_in_segment(&mut self, source: &dyn RecordSource, number: u64) -> Result<SegmentSearch, AuditError> {
        let mut last = None;
        loop {
            let lines = match self.next_part(source)? {
                LogPart::Lines(lines) => lines,
                LogPart::End { .. } => break,
                LogPart::Restarted => return Err(AuditError::Restarted),
            };
            for line in lines.iter() {
                let file = segment_file(lines.segment);
                let record = line.record.map_err(|error| AuditError::Line { file, line: line.number, error })?;
                if record.seq == number {
                    (self.offset, self.line) = (line.offset, line.number - 1);
                    self.head = (self.line > 0).then_some(record.prev);
                    self.pass = None;
                    return Ok(SegmentSearch::Found(record.prev));
                }
                if record.seq > number {
                    return Ok(SegmentSearch::Before);
                }
                last = Some((record.seq, record.h));
            }
        }
        Ok(match last {
            Some((seq, head)) if seq.checked_add(1) == Some(number) => SegmentSearch::Found(head),
            Some(_) => SegmentSearch::After,
            None => SegmentSearch::Before,
        })
    }
}

/// The place of a record relative to a segment.
enum SegmentSearch {
    /// In the segment, or next after its last record. With the hash of the record before it.
    Found(Hash),
    Before,
    After,
}
