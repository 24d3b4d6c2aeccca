//! Reads the records of a log in order, also while the log grows.

mod seek;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::Hash;
use crate::error::{AuditError, StorageContext};
use crate::merkle::{Frontier, Tree};
use crate::record::{Kind, Record, RecordError};
use crate::storage::{FileState, RecordSource};
use crate::tail::{Segment, segment_file, segment_number};

/// The longest time between the parts of a line that is being written.
const WRITING: Duration = Duration::from_millis(20);

/// The number of bytes that are read at once. A longer line is read as a whole.
const AT_ONCE: u64 = 512 << 10;

/// Reads the records of a log in order, each once, from a position on. Hashes are checked, the chain is not: see
/// [`Verifier`](crate::Verifier).
///
/// The log may grow meanwhile. An incomplete last line is left for the next pass. A segment that retention removes is skipped. If the log was cut,
/// replaced or rewritten, the reader reports that and begins again.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    only: Option<u64>,
    segment: u64,
    /// The end of the last whole line of the segment, and the number of lines before it.
    offset: u64,
    line: u64,
    /// The identity of the segment's file, to detect its replacement.
    identity: Option<u64>,
    head: Option<Hash>,
    pass: Option<Vec<u64>>,
    /// `true` if the next lines are the first ones after an earlier pass.
    resumes: bool,
    torn: Option<String>,
}

/// The next part of a log.
#[derive(Debug)]
pub enum LogPart {
    /// Whole lines.
    Lines(LogLines),
    /// The end of the log, for now.
    End {
        /// The file that ends in half a line, if one does.
        torn: Option<String>,
        /// The first existing segment.
        first_segment: Option<u64>,
    },
    /// The log was cut, replaced or rewritten. The next part is its beginning.
    Restarted,
}

/// Consecutive whole lines of a segment.
#[derive(Debug)]
pub struct LogLines {
    /// The segment.
    pub segment: u64,
    /// The number of bytes of the segment after these lines.
    pub bytes_left: u64,
    offset: u64,
    line: u64,
    text: Vec<u8>,
}

/// One line of a log.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogLine<'a> {
    /// The number in the segment, from 1 on.
    pub number: u64,
    /// The offset in the segment.
    pub offset: u64,
    /// The offset of the next line.
    pub end: u64,
    /// The record, or the error in the line.
    pub record: Result<Record<'a>, RecordError>,
}

impl LogLines {
    /// Returns the lines in order.
    pub fn iter(&self) -> impl Iterator<Item = LogLine<'_>> {
        let lines = self.text.split_inclusive(|byte| *byte == b'\n');
        lines.zip(self.line + 1..).scan(self.offset, |offset, (line, number)| {
            let begin = std::mem::replace(offset, *offset + line.len() as u64);
            let record = Record::parse(line.strip_suffix(b"\n").unwrap_or(line));
            Some(LogLine { number, offset: begin, end: *offset, record })
        })
    }

    /// Returns the size of the lines in bytes.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }
}

impl LogReader {
    /// Creates a reader that begins with the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader of one segment.
    pub fn segment(number: u64) -> Self {
        Self { only: Some(number), ..Self::default() }
    }

    /// Returns the next part of the log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn next_part(&mut self, source: &dyn RecordSource) -> Result<LogPart, AuditError> {
        if self.pass.is_none() {
            // Listed before reading: if there is a later segment by now, the earlier ones are complete.
            let segments = self.segments(source)?;
            // Retention never removes the current segment without a later one.
            if self.segment > 0 && segments.last().is_none_or(|last| *last < self.segment) {
                return Ok(self.restart());
            }
            self.resumes = self.head.is_some();
            self.pass = Some(segments);
        }
        while let Some(segment) = self.pass.iter().flatten().copied().find(|segment| *segment >= self.segment) {
            if segment > self.segment {
                (self.segment, self.offset, self.line, self.identity) = (segment, 0, 0, None);
            }
            if let Some(part) = self.read_segment(source)? {
                return Ok(part);
            }
            // At the end of the segment. Only the last one can still grow.
            match self.pass.iter().flatten().any(|later| *later > segment) {
                true => (self.segment, self.offset, self.line, self.identity) = (segment + 1, 0, 0, None),
                false => break,
            }
        }
        let first_segment = self.pass.take().and_then(|segments| segments.first().copied());
        Ok(LogPart::End { torn: self.torn.take(), first_segment })
    }

    fn read_segment(&mut self, source: &dyn RecordSource) -> Result<Option<LogPart>, AuditError> {
        let file = segment_file(self.segment);
        let Some(FileState { size, identity, .. }) = source.state(&file).doing("read")? else { return Ok(None) };
        if size < self.offset || (self.offset > 0 && identity != self.identity) {
            return Ok(Some(self.restart()));
        }
        self.identity = identity;
        let mut most = AT_ONCE;
        while size > self.offset {
            let mut text = match source.read_part(&file, self.offset, most.min(size - self.offset)) {
                Ok(text) => text,
                // Retention has removed the file meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error).doing("read"),
            };
            if let Some(end) = memchr::memrchr(b'\n', &text) {
                text.truncate(end + 1);
                let bytes_left = size - self.offset - text.len() as u64;
                let (segment, offset, line) = (self.segment, self.offset, self.line);
                return Ok(Some(self.take(LogLines { segment, bytes_left, offset, line, text })));
            }
            if most >= size - self.offset {
                self.torn.get_or_insert(file);
                break;
            }
            most = most.saturating_mul(2);
        }
        Ok(None)
    }

    /// Advances past these lines, if they follow the earlier ones.
    fn take(&mut self, lines: LogLines) -> LogPart {
        let parsed = |line: &[u8]| Record::parse(line.strip_suffix(b"\n").unwrap_or(line)).map(|one| (one.prev, one.h));
        let mut each = lines.text.split_inclusive(|byte| *byte == b'\n');
        // A writer whose disk failed goes back to the safe lines, and may have rewritten later ones.
        if std::mem::take(&mut self.resumes)
            && each.clone().next().map(parsed).and_then(Result::ok).map(|(prev, _)| prev) != self.head
        {
            return self.restart();
        }
        let last = each.clone().rev().find_map(|line| parsed(line).ok());
        self.head = last.map(|(_, h)| h).or(self.head);
        self.offset += lines.bytes();
        self.line += each.by_ref().count() as u64;
        LogPart::Lines(lines)
    }

    fn restart(&mut self) -> LogPart {
        *self = Self { only: self.only, ..Self::default() };
        LogPart::Restarted
    }

    /// Passes every new record since the last call to `visit`, or all records of a restarted log. Returns the file that ends in half a line, if
    /// one does.
    ///
    /// # Errors
    /// If a line is not a record, the log cannot be read, or `visit` fails.
    pub fn advance<E: From<AuditError>>(
        &mut self,
        source: &dyn RecordSource,
        mut visit: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<Option<String>, E> {
        self.visit(source, &mut visit, |_| Ok(()))
    }

    fn visit<E: From<AuditError>>(
        &mut self,
        source: &dyn RecordSource,
        visit: &mut dyn FnMut(&Record<'_>) -> Result<(), E>,
        restarted: impl Fn(AuditError) -> Result<(), AuditError>,
    ) -> Result<Option<String>, E> {
        loop {
            match self.next_part(source)? {
                LogPart::Lines(lines) => {
                    for LogLine { number, record, .. } in lines.iter() {
                        visit(&record.map_err(|error| AuditError::Line {
                            file: segment_file(lines.segment),
                            line: number,
                            error,
                        })?)?;
                    }
                }
                LogPart::End { torn, .. } => return Ok(torn),
                LogPart::Restarted => restarted(AuditError::Restarted)?,
            }
        }
    }

    /// Passes every record to `visit`. Half a record at the end is an error.
    ///
    /// # Errors
    /// If a line is not a record, the log ends in half a line, is cut or replaced meanwhile or cannot be read, or `visit` fails.
    pub fn read<E: From<AuditError>>(
        mut self,
        source: &dyn RecordSource,
        mut visit: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.visit(source, &mut visit, Err)?.is_some() {
            std::thread::sleep(WRITING);
            if let Some(file) = self.visit(source, &mut visit, Err)? {
                return Err(AuditError::HalfRecord { file }.into());
            }
        }
        Ok(())
    }

    /// Goes to the end, and returns the last `count` values of `take`, in order. Reads no more segments than needed.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn last<T, E: From<AuditError>>(
        &mut self,
        source: &dyn RecordSource,
        count: usize,
        mut take: impl FnMut(&Record<'_>) -> Result<Option<T>, E>,
    ) -> Result<Vec<T>, E> {
        let mut kept = Vec::new();
        for (index, segment) in self.segments(source)?.into_iter().rev().enumerate() {
            let mut reader = Self::segment(segment);
            let mut taken = Vec::new();
            reader.advance(source, |record| {
                taken.extend(take(record)?);
                Ok::<_, E>(())
            })?;
            if index == 0 {
                *self = Self { only: self.only, ..reader };
            }
            taken.append(&mut kept);
            kept = taken.split_off(taken.len().saturating_sub(count));
            if kept.len() == count {
                break;
            }
        }
        Ok(kept)
    }

    /// Returns the number of bytes of all segments.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn bytes(&self, source: &dyn RecordSource) -> Result<u64, AuditError> {
        let sizes = self.segments(source)?.into_iter().map(|segment| source.size(&segment_file(segment)));
        sizes.map(|size| Ok(size.doing("read")?.unwrap_or(0))).sum()
    }

    /// Returns the numbers of the existing segments, in order.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn segments(&self, source: &dyn RecordSource) -> Result<Vec<u64>, AuditError> {
        let files = source.list("").doing("read")?;
        let mut segments: Vec<u64> = files.iter().filter_map(|file| segment_number(file)).collect();
        segments.retain(|segment| self.only.is_none_or(|only| only == *segment));
        segments.sort_unstable();
        Ok(segments)
    }
}

pub(crate) fn segments(source: &dyn RecordSource) -> Result<Vec<u64>, AuditError> {
    LogReader::new().segments(source)
}

/// Passes every record to `visit`, in order, until `visit` breaks. Hashes are checked, the chain is not: see
/// [`Verifier`](crate::Verifier).
///
/// # Errors
/// If a line is not a record, or the log cannot be read.
pub fn read_records(
    source: &dyn RecordSource,
    mut visit: impl FnMut(&Record<'_>) -> ControlFlow<()>,
) -> Result<(), AuditError> {
    let read = LogReader::new().read(source, |record| match visit(record) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ReadStop::Asked),
    });
    match read {
        Ok(()) | Err(ReadStop::Asked) => Ok(()),
        Err(ReadStop::Failed(error)) => Err(error),
    }
}

enum ReadStop {
    Asked,
    Failed(AuditError),
}

impl From<AuditError> for ReadStop {
    fn from(error: AuditError) -> Self {
        Self::Failed(error)
    }
}

/// Reads the Merkle tree of a log, for proofs.
///
/// # Errors
/// If a line is not a record, or the log cannot be read.
pub fn read_tree(source: &dyn RecordSource) -> Result<Tree, AuditError> {
    let mut base = None;
    let mut leaves: Vec<Hash> = Vec::new();
    read_records(source, |record| {
        let base = base.get_or_insert_with(|| match (record.kind, record.body::<Segment>()) {
            (Kind::Segment, Ok(body)) => Frontier::from_nodes(record.seq, body.frontier),
            _ => Some(Frontier::new()),
        });
        leaves.push(record.h);
        if base.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match base {
        Some(None) => Err(AuditError::Damaged { what: "the frontier of the first segment does not fit".to_owned() }),
        base => Ok(Tree::new(base.flatten().unwrap_or_default(), leaves)),
    }
}
