//! Chunks: consecutive lines of a log, as they are.

use amplifier_audit::{AuditError, BlobReference, Hash, Kind, LogLines, Record, segment_file};
use async_nats::HeaderMap;
use bytes::Bytes;

use crate::FleetError;
use crate::records::LogPosition;

/// The most records of a chunk.
const MAX_RECORDS: usize = 256;
/// The most bytes of a chunk. A longer line is a chunk of its own.
const MAX_BYTES: usize = 256 << 10;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const SEGMENT: &str = "Amp-Segment";
const FIRST: &str = "Amp-First";
const FROM: &str = "Amp-From";
const TO: &str = "Amp-To";
const HEAD: &str = "Amp-Head";
const LINES: &str = "Amp-Lines";

/// The place of a chunk in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) segment: u64,
    /// The number of the first record that the machine still has.
    pub(crate) first: u64,
    /// The number of the first record.
    pub(crate) from: u64,
    /// The position after the last record.
    pub(crate) to: LogPosition,
    /// The hash of the lines, if they are too long for a message and sent as a blob.
    pub(crate) lines: Option<Hash>,
}

impl ChunkHeader {
    /// Returns the headers of a message that is stored only after the message with this sequence number.
    pub(crate) fn headers(&self, after: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &str, value: String| headers.insert(name, value.as_str());
        insert(EXPECTED, after.to_string());
        insert(SEGMENT, self.segment.to_string());
        insert(FIRST, self.first.to_string());
        insert(FROM, self.from.to_string());
        insert(TO, self.to.size.to_string());
        insert(HEAD, self.to.head.to_string());
        if let Some(hash) = self.lines {
            insert(LINES, hash.to_string());
        }
        headers
    }

    pub(crate) fn read(subject: &str, headers: &HeaderMap) -> Result<Self, FleetError> {
        let number = |name: &str| header(headers, name).and_then(|text| text.parse().ok());
        let hash = |name: &str| header(headers, name).and_then(|text| Hash::from_hex(text.as_bytes()));
        let read = || {
            let to = LogPosition { size: number(TO)?, head: hash(HEAD)? };
            Some(Self { segment: number(SEGMENT)?, first: number(FIRST)?, from: number(FROM)?, to, lines: hash(LINES) })
        };
        let is_valid = |chunk: &Self| chunk.from < chunk.to.size;
        read().filter(is_valid).ok_or_else(|| FleetError::Invalid {
            subject: subject.to_owned(),
            cause: "the headers are not those of a chunk of records".to_owned(),
        })
    }
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.as_str())
}

/// Consecutive whole lines of one segment.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) header: ChunkHeader,
    pub(crate) lines: Bytes,
    /// The large bodies of the records.
    pub(crate) blobs: Vec<BlobReference>,
    /// The positions that checkpoints among the records cover.
    pub(crate) covered: Vec<LogPosition>,
}

/// Collects lines until a chunk is full.
struct ChunkBuilder {
    text: Vec<u8>,
    records: usize,
    from: u64,
    to: LogPosition,
    blobs: Vec<BlobReference>,
    covered: Vec<LogPosition>,
}

impl ChunkBuilder {
    fn new(from: u64) -> Self {
        let to = LogPosition { size: from, ..LogPosition::START };
        Self { text: Vec::new(), records: 0, from, to, blobs: Vec::new(), covered: Vec::new() }
    }

    fn push(&mut self, record: &Record<'_>) {
        self.text.extend_from_slice(record.line().as_bytes());
        self.text.push(b'\n');
        self.records += 1;
        self.to = LogPosition { size: record.seq + 1, head: record.h };
        self.blobs.extend(record.blob());
        if is_checkpoint(record) {
            self.covered.push(LogPosition { size: record.seq, head: record.prev });
        }
    }

    fn finish(self, segment: u64, first: u64) -> Chunk {
        let header = ChunkHeader { segment, first, from: self.from, to: self.to, lines: None };
        Chunk { header, lines: self.text.into(), blobs: self.blobs, covered: self.covered }
    }
}

/// Returns `true` if the record has a signed checkpoint over all records before it.
pub(crate) fn is_checkpoint(record: &Record<'_>) -> bool {
    matches!(record.kind, Kind::Checkpoint | Kind::Segment)
}

/// Splits lines into chunks, which end at the last checkpoint that fits. `first` is the number of the log's first existing record.
///
/// # Errors
/// If a line is not a record.
pub(crate) fn split(lines: &LogLines, first: u64) -> Result<Vec<Chunk>, AuditError> {
    let mut records = Vec::new();
    for line in lines.iter() {
        let file = segment_file(lines.segment);
        records.push(line.record.map_err(|error| AuditError::Line { file, line: line.number, error })?);
    }
    let mut chunks = Vec::new();
    let mut rest = &records[..];
    while let Some(begin) = rest.first() {
        let mut builder = ChunkBuilder::new(begin.seq);
        for record in &rest[..portion(rest)] {
            builder.push(record);
        }
        rest = &rest[builder.records..];
        chunks.push(builder.finish(lines.segment, first));
    }
    Ok(chunks)
}

/// Returns the number of records of the next chunk.
fn portion(records: &[Record<'_>]) -> usize {
    let mut bytes = 0;
    let fits = records.iter().take(MAX_RECORDS).take_while(|record| {
        bytes += record.line().len() + 1;
        bytes <= MAX_BYTES
    });
    let most = fits.count().max(1);
    records[..most].iter().rposition(is_checkpoint).map_or(most, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let to = LogPosition { size: 9, head: Hash::sha256(b"head") };
        for lines in [None, Some(Hash::sha256(b"lines"))] {
            let chunk = ChunkHeader { segment: 2, first: 3, from: 4, to, lines };
            let headers = chunk.headers(77);
            assert_eq!(header(&headers, EXPECTED), Some("77"));
            assert_eq!(ChunkHeader::read("audit.m.l", &headers).unwrap(), chunk);
        }
    }

    #[test]
    fn other_messages_are_not_chunks() {
        assert!(ChunkHeader::read("audit.m.l", &HeaderMap::new()).is_err());
        let to = LogPosition { size: 9, head: Hash::ZERO };
        let empty = ChunkHeader { segment: 1, first: 0, from: 9, to, lines: None };
        assert!(ChunkHeader::read("audit.m.l", &empty.headers(0)).is_err());
    }
}
