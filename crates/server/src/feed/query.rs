//! Queries of records.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::Arc;

use amplifier_audit::{AuditError, Body, BodyReader, LineFilter, Record, RecordFilter, RecordSource, segment_file};
use serde::Serialize;
use serde_json::value::RawValue;

use super::index::{Block, Index, kind_bit};
use super::views::Page;
use super::{FeedError, FeedState};

/// Limit in bytes up to which a separate body is included.
const WHOLE: u64 = 64 << 10;

/// Limit in bytes read per request; the cursor continues.
const READ_LIMIT: u64 = 64 << 20;

/// Limit in bytes of records per response, which has at least one record.
const SEND_LIMIT: usize = 1 << 20;

/// A filter compiled for many records.
pub(super) struct CompiledFilter<'a> {
    filter: &'a RecordFilter,
    lines: LineFilter,
    kinds: u32,
    session: Option<u64>,
}

impl<'a> CompiledFilter<'a> {
    pub(super) fn new(filter: &'a RecordFilter, index: &Index) -> Self {
        Self {
            filter,
            lines: filter.lines(),
            kinds: if filter.kinds.is_empty() {
                u32::MAX
            } else {
                filter.kinds.iter().fold(0, |bits, kind| bits | kind_bit(*kind))
            },
            session: filter.session.as_deref().map(|session| index.hash(session)),
        }
    }

    /// A body that cannot be read matches no hook; the verification reports it.
    fn fits(&self, record: &Record<'_>, source: &dyn RecordSource) -> bool {
        self.filter.matches(record, source).unwrap_or(false)
    }

    /// Returns the number of bytes of a separate body that a match reads.
    fn body_bytes(&self, record: &Record<'_>) -> u64 {
        let (body, line) = (record.body_bytes(), record.line().len() as u64);
        if self.filter.hook.is_some() { body.saturating_sub(line) } else { 0 }
    }
}

/// Records as JSON, and the next cursor.
pub(super) struct RecordLines {
    pub(super) lines: Vec<Arc<str>>,
    pub(super) cursor: u64,
    pub(super) first: u64,
}

impl RecordLines {
    pub(super) fn page(&self) -> Result<Page, FeedError> {
        let records = self.lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>();
        Ok(Page { records: records.map_err(FeedError::Json)?, cursor: self.cursor, first: self.first })
    }
}

impl FeedState {
    pub(super) fn lines_after(
        &self,
        filter: &RecordFilter,
        after: u64,
        limit: usize,
    ) -> Result<RecordLines, FeedError> {
        if let Some(lines) = self.recent_lines(filter, after, u64::MAX, limit) {
            return Ok(lines);
        }
        let (ready, first, end) = {
            let index = self.index();
            (CompiledFilter::new(filter, &index), index.first(), index.cursor)
        };
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut bodies = BodyReader::new();
        let mut cursor = after.min(end);
        let read_to = self.scan(&ready, cursor, |record| {
            if found.len() >= limit || bytes > SEND_LIMIT {
                return ControlFlow::Break(());
            }
            let line: Arc<str> = record_json(record, &*self.source, &mut bodies).into();
            bytes += line.len();
            found.push(line);
            cursor = record.seq + 1;
            ControlFlow::Continue(())
        })?;
        Ok(RecordLines { lines: found, cursor: read_to.unwrap_or(cursor).max(cursor), first })
    }

    /// The last so many records that fit before that number. The cursor is what to ask for next.
    pub(super) fn lines_before(
        &self,
        filter: &RecordFilter,
        before: u64,
        limit: usize,
    ) -> Result<RecordLines, FeedError> {
        let (ready, first, blocks) = {
            let index = self.index();
            let end = index.blocks.partition_point(|block| block.seq < before);
            let ready = CompiledFilter::new(filter, &index);
            // Positions are small; the newest come first.
            let blocks: Vec<Block> = index.blocks.range(..end).rev().copied().collect();
            (ready, index.first(), blocks)
        };
        let mut found: Vec<Arc<str>> = Vec::new();
        let (mut bytes, mut read) = (0, 0);
        let mut cursor = before;
        let mut files = Files::new(&*self.source);
        'blocks: for block in blocks {
            if found.len() >= limit || bytes > SEND_LIMIT || read > READ_LIMIT {
                break;
            }
            if block.may_have(ready.session, ready.kinds) {
                read += block.end - block.offset;
                let Some(text) = files.block(&block)? else { continue };
                for line in lines(&text).rev().filter(|line| ready.lines.may_match(line)) {
                    let Some(record) = block.record(line) else { continue };
                    read += ready.body_bytes(&record);
                    if record.seq >= cursor || !ready.fits(&record, &*self.source) {
                        continue;
                    }
                    let sent = record_json(&record, &*self.source, &mut BodyReader::new());
                    bytes += sent.len();
                    found.push(sent.into());
                    cursor = record.seq;
                    if found.len() >= limit || bytes > SEND_LIMIT {
                        break 'blocks;
                    }
                }
            }
            cursor = cursor.min(block.seq);
        }
        found.reverse();
        Ok(RecordLines { lines: found, cursor, first })
    }

    /// Returns records from memory, if all of them are there.
    pub(super) fn recent_lines(
        &self,
        filter: &RecordFilter,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Option<RecordLines> {
        let index = self.index();
        if after >= index.cursor {
            return Some(RecordLines { lines: Vec::new(), cursor: index.cursor, first: index.first() });
        }
        let ready = CompiledFilter::new(filter, &index);
        let all = *filter == RecordFilter::default();
        let mut lines = Vec::new();
        let (mut bytes, mut cursor) = (0, after);
        for recent in index.recent_from(after)? {
            if lines.len() >= limit || bytes > SEND_LIMIT || recent.seq >= until {
                break;
            }
            cursor = recent.seq + 1;
            let line = recent.line.as_bytes();
            if all
                || (ready.lines.may_match(line)
                    && Record::parse(line).is_ok_and(|record| ready.fits(&record, &*self.source)))
            {
                bytes += recent.json.len();
                lines.push(recent.json.clone());
            }
        }
        // In memory, but not to the end: an invalid line interrupts.
        (cursor > after).then(|| RecordLines { lines, cursor, first: index.first() })
    }

    /// Calls `visit` for matching records from this number on, until it breaks or the read limit is reached. Returns
    /// the next cursor, or `None` after a break.
    pub(super) fn scan(
        &self,
        ready: &CompiledFilter<'_>,
        from: u64,
        mut visit: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<Option<u64>, FeedError> {
        let mut files = Files::new(&*self.source);
        let (mut at, mut read) = (from, 0);
        loop {
            // In small batches, so that the lock is short, and little is copied.
            let (blocks, end): (Vec<Block>, u64) = {
                let index = self.index();
                let begin = index.blocks.partition_point(|block| block.seq <= at).saturating_sub(1);
                let blocks = index.blocks.range(begin.min(index.blocks.len())..).take(64).copied().collect();
                (blocks, index.cursor)
            };
            let Some(last) = blocks.last().filter(|_| at < end) else { return Ok(Some(at.max(end.min(from)))) };
            let after = {
                let index = self.index();
                let next = index.blocks.partition_point(|block| block.seq <= last.seq);
                index.blocks.get(next).map_or(end.max(last.seq + 1), |block| block.seq)
            };
            for block in &blocks {
                if !block.may_have(ready.session, ready.kinds) {
                    continue;
                }
                if read > READ_LIMIT {
                    return Ok(Some(block.seq.max(from)));
                }
                read += block.end - block.offset;
                // Removed by retention meanwhile.
                let Some(text) = files.block(block)? else { continue };
                for line in lines(&text).filter(|line| ready.lines.may_match(line)) {
                    let Some(record) = block.record(line) else { continue };
                    read += ready.body_bytes(&record);
                    if record.seq < at.max(from) || !ready.fits(&record, &*self.source) {
                        continue;
                    }
                    at = record.seq + 1;
                    if visit(&record).is_break() {
                        return Ok(None);
                    }
                }
            }
            at = after;
        }
    }
}

/// A segment, with start and end offsets.
type BlockRange = (u64, u64, u64);

/// Reads blocks, and caches the last one.
pub(super) struct Files<'a> {
    source: &'a dyn RecordSource,
    last: Option<(BlockRange, Arc<Vec<u8>>)>,
}

impl<'a> Files<'a> {
    pub(super) fn new(source: &'a dyn RecordSource) -> Self {
        Self { source, last: None }
    }

    /// Returns the bytes of a block; `None` if the segment is gone.
    pub(super) fn block(&mut self, block: &Block) -> Result<Option<Arc<Vec<u8>>>, FeedError> {
        let key = (block.segment, block.offset, block.end);
        if let Some((_, text)) = self.last.as_ref().filter(|(last, _)| *last == key) {
            return Ok(Some(text.clone()));
        }
        let bytes = block.end - block.offset;
        let text = match self.source.read_part(&segment_file(block.segment), block.offset, bytes) {
            // A truncated file is detected by the follower.
            Ok(text) if (text.len() as u64) < bytes => return Ok(None),
            Ok(text) => Arc::new(text),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(AuditError::Storage { doing: "read", error }.into()),
        };
        self.last = Some((key, text.clone()));
        Ok(Some(text))
    }

    pub(super) fn record<T>(
        &mut self,
        block: &Block,
        seq: u64,
        take: impl FnOnce(&Record<'_>) -> Option<T>,
    ) -> Result<Option<T>, FeedError> {
        let Some(text) = self.block(block)? else { return Ok(None) };
        // In a sound log, the number gives the line.
        let nth = usize::try_from(seq - block.seq).unwrap_or(usize::MAX);
        let at = lines(&text).nth(nth).and_then(|line| block.record(line)).filter(|record| record.seq == seq);
        let record = at.or_else(|| lines(&text).filter_map(|line| block.record(line)).find(|one| one.seq == seq));
        Ok(record.as_ref().and_then(take))
    }
}

pub(super) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n')
}

/// A record as [`api_types::LogRecord`](crate::api_types::LogRecord).
#[derive(Serialize)]
struct RecordJson<'a> {
    seq: u64,
    at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    kind: &'static str,
    body: &'a RawValue,
    writer: &'a str,
    hash: String,
}

/// Returns a record as JSON, with its whole body unless that is large.
pub(super) fn record_json(record: &Record<'_>, source: &dyn RecordSource, bodies: &mut BodyReader) -> String {
    let whole = whole_body(record, source, bodies);
    let sent = RecordJson {
        seq: record.seq,
        at: &record.time,
        session: record.session.as_deref(),
        turn: record.turn,
        event: record.event.as_deref(),
        kind: record.kind.as_str(),
        body: whole.as_deref().unwrap_or(record.body),
        writer: &record.writer,
        hash: record.h.to_string(),
    };
    // Text and numbers can always be written.
    serde_json::to_string(&sent).unwrap_or_default()
}

/// Returns a separate body, if present, unchanged and not too large.
fn whole_body(record: &Record<'_>, source: &dyn RecordSource, bodies: &mut BodyReader) -> Option<Box<RawValue>> {
    if record.body_bytes() > WHOLE {
        return None;
    }
    match bodies.read(record, source).ok()? {
        Body::Whole(Cow::Owned(whole)) if whole.len() as u64 <= WHOLE => RawValue::from_string(whole).ok(),
        Body::Whole(_) | Body::Erased { .. } | Body::Withheld { .. } => None,
    }
}
