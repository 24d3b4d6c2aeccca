//! The end of a copy of a log, which only the next records may extend.

use crate::Hash;
use crate::keys::PublicKey;
use crate::record::Record;
use crate::tail::{Tail, TailRemainder, segment_file, segment_number};

/// The end of a copy of a log. It accepts only whole lines that follow: hashes, chain, numbers, checkpoints, key rotations and removals are
/// checked as the log's own writer does.
///
/// Records after the last checkpoint are not signed yet.
#[derive(Clone, Debug)]
pub struct LogTail {
    tail: Tail,
}

/// Lines that do not extend a copy of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RejectedLines(String);

impl LogTail {
    /// Begins a copy with the first lines of a segment: of the whole log, or of a log whose earlier segments retention has removed.
    ///
    /// # Errors
    /// If the lines do not begin a segment, or one of them is wrong.
    pub fn begin(segment: u64, lines: &[u8], visit: impl FnMut(&Record<'_>)) -> Result<Self, RejectedLines> {
        let (tail, first) = begin_segment(segment, lines)?;
        let mut copy = Self { tail };
        copy.extend(first, lines, visit)?;
        Ok(copy)
    }

    /// Extends the copy with the next lines, of the same segment or of the following one, and passes each record to `visit`. After an error, the
    /// copy is unchanged.
    ///
    /// # Errors
    /// If the lines do not follow, or one of them is wrong.
    pub fn append(&mut self, segment: u64, lines: &[u8], visit: impl FnMut(&Record<'_>)) -> Result<(), RejectedLines> {
        let mut next = self.clone();
        let first = match segment {
            _ if segment == self.tail.segment => 0,
            _ if segment.checked_sub(1) == Some(self.tail.segment) => next.next_segment(segment, lines)?,
            _ => {
                let (found, last) = (segment_file(segment), segment_file(self.tail.segment));
                return Err(RejectedLines(format!("`{found}` does not follow `{last}`")));
            }
        };
        next.extend(first, lines, visit)?;
        *self = next;
        Ok(())
    }

    /// Returns the log's id.
    pub fn log(&self) -> &str {
        &self.tail.log
    }

    /// Returns the number of records, which is also the number of the next one.
    pub fn size(&self) -> u64 {
        self.tail.size
    }

    /// Returns the hash of the last record.
    pub fn head(&self) -> Hash {
        self.tail.head
    }

    /// Returns the Merkle root over all records.
    pub fn root(&self) -> Hash {
        self.tail.frontier.root()
    }

    /// Returns the last segment.
    pub fn segment(&self) -> u64 {
        self.tail.segment
    }

    /// Returns the number of bytes of the last segment.
    pub fn offset(&self) -> u64 {
        self.tail.offset
    }

    /// Returns the active key.
    pub fn key(&self) -> PublicKey {
        self.tail.key
    }

    fn next_segment(&mut self, segment: u64, lines: &[u8]) -> Result<usize, RejectedLines> {
        let (next, first) = begin_segment(segment, lines)?;
        let file = segment_file(segment);
        let mut frontier = self.tail.frontier.clone();
        frontier.push(next.head);
        if next.log != self.tail.log || next.follows != (self.tail.size, self.tail.head) || next.frontier != frontier {
            return Err(RejectedLines(format!("`{file}` does not follow the earlier records")));
        }
        if next.key != self.tail.key {
            return Err(RejectedLines(format!("`{file}` begins with another key than the active one")));
        }
        self.tail = next;
        Ok(first)
    }

    fn extend(&mut self, first: usize, lines: &[u8], mut visit: impl FnMut(&Record<'_>)) -> Result<(), RejectedLines> {
        if let Ok(record) = Record::parse(lines[..first].strip_suffix(b"\n").unwrap_or_default()) {
            visit(&record);
        }
        match self.tail.read(&lines[first..], visit) {
            TailRemainder::Clean => Ok(()),
            TailRemainder::Torn => Err(RejectedLines(format!("record {} is damaged", self.tail.size))),
            TailRemainder::Breach(what) => Err(RejectedLines(what)),
        }
    }
}

/// Reads the first record of a segment, and returns the length of its line.
fn begin_segment(segment: u64, lines: &[u8]) -> Result<(Tail, usize), RejectedLines> {
    // The number comes from another machine: its file must be found again.
    if segment_number(&segment_file(segment)) != Some(segment) {
        return Err(RejectedLines(format!("invalid number of a segment: {segment}")));
    }
    let tail =
        Tail::begin(segment, lines).map_err(|what| RejectedLines(format!("`{}`: {what}", segment_file(segment))))?;
    let first = usize::try_from(tail.offset).unwrap_or(lines.len()).min(lines.len());
    Ok((tail, first))
}
