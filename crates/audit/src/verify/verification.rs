//! Continuous verification of a growing log.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::check::Check;
use super::{KnownCheckpoint, Verifier, without_segments};
use crate::error::{AuditError, StorageContext};
use crate::note::{Checkpoint, Note, split_notes};
use crate::phrases::{counted, not_covered};
use crate::reader::segments;
use crate::report::{Finding, Problem, Report};
use crate::storage::RecordSource;
use crate::tail::{is_odd_segment, segment_file};

/// The time after which an incomplete line counts as torn.
const UNFINISHED: Duration = Duration::from_secs(1);

/// The number of bytes that one call of [`Verification::advance`] checks.
const AT_ONCE: usize = 4 << 20;

/// A continuous verification of a growing log: checked records are not read again.
///
/// Later changes of checked records remain unnoticed. Run a new verification from time to time to detect them.
pub struct Verification {
    check: Check,
    segment: u64,
    offset: u64,
    beside: u64,
    /// Bytes of the segment that are read and not yet checked.
    ahead: Vec<u8>,
    /// The length of an incomplete last line, and the time since when it is incomplete.
    torn: Option<(usize, Instant)>,
}

/// The result of one step of a continuous verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// There is more to check.
    More,
    /// All records are checked.
    Done,
    /// The log was replaced, or records before the end were removed: a new verification is needed.
    Again,
}

impl Verifier<'_> {
    /// Begins a continuous verification of a growing log. Nothing is read yet.
    pub fn ongoing(self) -> Verification {
        let mut check = Check::new(self.key);
        check.known = self.known;
        check.known.sort_by_key(|known| known.checkpoint.size);
        Verification { check, segment: 0, offset: 0, beside: 0, ahead: Vec::new(), torn: None }
    }
}

impl Verification {
    /// Checks the new records, or a limited part of them.
    ///
    /// # Errors
    /// If the log cannot be read. Problems *in* the log are in the report.
    pub fn advance(&mut self, storage: &dyn RecordSource) -> Result<Advance, AuditError> {
        if self.ahead.is_empty() {
            // First the checkpoints, then the records: a growing log may only have more records.
            if !self.read_beside(storage)? || !self.read_ahead(storage)? {
                return Ok(Advance::Again);
            }
        }
        let end = match self.ahead.get(..AT_ONCE) {
            Some(part) => memchr::memrchr(b'\n', part).or_else(|| memchr::memchr(b'\n', &self.ahead)),
            None => memchr::memrchr(b'\n', &self.ahead),
        };
        let Some(end) = end else {
            let torn = std::mem::take(&mut self.ahead).len();
            self.torn = match self.torn {
                _ if torn == 0 => None,
                Some((bytes, since)) if bytes == torn => Some((bytes, since)),
                _ => Some((torn, Instant::now())),
            };
            return self.next_segment(storage);
        };
        let rest = self.ahead.split_off(end + 1);
        let text = std::mem::replace(&mut self.ahead, rest);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.check.line += 1;
            self.check.parse(storage, line.strip_suffix(b"\n").unwrap_or(line))?;
        }
        self.offset += text.len() as u64;
        // Processed checkpoints are dropped, because new ones arrive every second.
        self.check.known.drain(..self.check.passed);
        self.check.passed = 0;
        Ok(Advance::More)
    }

    /// Returns the number of the next record to check.
    pub fn verified_to(&self) -> u64 {
        self.check.chain.as_ref().map_or(0, |chain| chain.size)
    }

    /// Returns the findings so far. Findings that depend on the end of the log are only in the report.
    pub fn findings(&self) -> &[Finding] {
        &self.check.report.findings
    }

    /// Returns `true` if the log currently ends in half a line.
    pub fn is_torn(&self) -> bool {
        self.torn.is_some()
    }

    /// Returns the report so far.
    pub fn report(&mut self) -> Report {
        // The largest part of the state, and not needed for the report.
        let blobs = std::mem::take(&mut self.check.blobs);
        let check = self.check.clone();
        self.check.blobs = blobs;
        let mut report = check.finish();
        if self.torn.is_some_and(|(_, since)| since.elapsed() >= UNFINISHED) {
            let text = "the log ends in a line without an end: a crash left it, or it is being written".to_owned();
            let file = Some(segment_file(self.segment));
            let line = Some(self.check.line + 1);
            report.findings.push(Finding { problem: Problem::Unreadable, file, line, seq: report.size, text });
        }
        report
    }

    /// Reads the new checkpoints beside the log; returns `false` if earlier ones were removed.
    fn read_beside(&mut self, storage: &dyn RecordSource) -> Result<bool, AuditError> {
        let size = storage.size("checkpoints").doing("read")?.unwrap_or(0);
        if size <= self.beside {
            return Ok(size == self.beside);
        }
        let bytes = storage.read("checkpoints", self.beside).doing("read")?;
        let (notes, rest) = split_notes(&bytes);
        self.beside += (bytes.len() - rest.len()) as u64;
        for text in notes {
            match Note::parse(text).and_then(|note| Ok((Checkpoint::read(&note)?, note))) {
                Ok((checkpoint, note)) => self.take_beside(checkpoint, note),
                Err(error) => {
                    self.check.add_finding(Problem::Unreadable, 0, 0, format!("the file `checkpoints`: {error}"));
                }
            }
        }
        Ok(true)
    }

    fn take_beside(&mut self, checkpoint: Checkpoint, note: Note) {
        let check = &mut self.check;
        let Some(chain) = check.chain.as_ref().filter(|chain| checkpoint.size < chain.size) else {
            let at = check.known.partition_point(|known| known.checkpoint.size <= checkpoint.size);
            return check.known.insert(at.max(check.passed), KnownCheckpoint { note, checkpoint, is_beside: true });
        };
        // A checkpoint is written beside the log a little after its record, which may have been checked already.
        let size = checkpoint.size;
        let place = check.passed_places.iter().find(|(covered, ..)| *covered == size);
        let is_signed = chain.has_signed(&note);
        let problem = match place {
            _ if checkpoint.log != chain.log => {
                let text = format!("a checkpoint beside the log is of another log, `{}`", checkpoint.log);
                Some((Problem::Replaced, text))
            }
            // Before the first existing record.
            None if size < check.report.first => None,
            None => Some((
                Problem::Replaced,
                format!("the checkpoint beside the log over {} cannot be compared", counted(size, "record")),
            )),
            Some((_, head, root)) if *head != checkpoint.head || *root != checkpoint.root => {
                Some((Problem::Replaced, not_covered(size, "beside the log")))
            }
            Some(_) if !is_signed && check.report.rotations == 0 => Some((
                Problem::Checkpoint,
                format!(
                    "the checkpoint beside the log over {} is not signed with the active key",
                    counted(size, "record")
                ),
            )),
            Some(_) => None,
        };
        if let Some((problem, text)) = problem {
            check.add_finding_at(problem, 0, 0, size, text);
        }
    }

    /// Reads the new bytes of the segment; returns `false` if checked bytes were removed.
    fn read_ahead(&mut self, storage: &dyn RecordSource) -> Result<bool, AuditError> {
        if self.segment == 0 {
            let Some(&first) = segments(storage)?.first() else {
                return Err(without_segments(storage, &self.check.known));
            };
            for file in storage.list("").doing("read")?.iter().filter(|file| is_odd_segment(file)) {
                self.check.add_finding(Problem::Unreadable, 0, 0, format!("the file `{file}` is not a segment"));
            }
            self.check.first_segment = first;
            self.begin(first);
        }
        let file = segment_file(self.segment);
        let Some(size) = storage.size(&file).doing("read")? else { return Ok(false) };
        if size <= self.offset {
            return Ok(size == self.offset);
        }
        self.ahead = match storage.read(&file, self.offset) {
            Ok(ahead) => ahead,
            // Retention has removed the file meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).doing("read"),
        };
        Ok(true)
    }

    fn begin(&mut self, segment: u64) {
        (self.segment, self.offset) = (segment, 0);
        (self.check.segment, self.check.line) = (segment, 0);
        self.check.report.segments += 1;
    }

    /// Continues with the next segment, if there is one; the current one is then complete.
    fn next_segment(&mut self, storage: &dyn RecordSource) -> Result<Advance, AuditError> {
        let all = segments(storage)?;
        if all.first() != Some(&self.check.first_segment) {
            return Ok(Advance::Again);
        }
        let Some(&next) = all.iter().find(|segment| **segment > self.segment) else { return Ok(Advance::Done) };
        // This segment may have grown between the two reads.
        if storage
            .size(&segment_file(self.segment))
            .doing("read")?
            .is_none_or(|size| size != self.offset + self.torn.map_or(0, |(bytes, _)| bytes as u64))
        {
            return Ok(Advance::More);
        }
        if self.check.line == 0 {
            self.check.add_finding_here(Problem::Unreadable, "the segment is empty");
        }
        if self.torn.take().is_some() {
            self.check.line += 1;
            let unfinished = "the log ends in a line without an end: a crash left it, or it is being written";
            self.check.add_finding_here(Problem::Unreadable, unfinished);
        }
        if next != self.segment + 1 {
            self.check.add_finding(Problem::Deleted, next, 0, format!("segment {} is missing", self.segment + 1));
        }
        self.begin(next);
        Ok(Advance::More)
    }
}
