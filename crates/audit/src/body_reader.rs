//! Reads whole bodies from their parts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::Hash;
use crate::body::{Body, stored_body};
use crate::error::{AuditError, StorageContext};
use crate::model_request::{BaseRecord, CONTINUES, ContinuationBody, Messages, join_messages};
use crate::record::Record;
use crate::storage::RecordSource;
use crate::tail::segment_file;

/// The limits of the cache: bytes of text, and conversations.
const MOST_TEXT: usize = 64 << 20;
const MOST_KNOWN: usize = 1024;

/// Reads the whole bodies of the records of a log. Model requests are stored as the difference to an earlier record, which is cached here for
/// reading many records in order.
#[derive(Debug, Default)]
pub struct BodyReader {
    known: HashMap<Hash, RequestMessages>,
    text: usize,
    clock: u64,
}

#[derive(Debug)]
struct RequestMessages {
    messages: Vec<Arc<str>>,
    text: usize,
    used: u64,
}

impl BodyReader {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the whole body of a record.
    ///
    /// # Errors
    /// If a part of the body cannot be read or was altered.
    pub fn read<'a>(&mut self, record: &Record<'a>, storage: &dyn RecordSource) -> Result<Body<'a>, AuditError> {
        let body = stored_body(record, storage)?;
        let Body::Whole(text) = &body else { return Ok(body) };
        if !text.starts_with(CONTINUES) {
            return Ok(body);
        }
        let Ok(ContinuationBody { base }) = serde_json::from_str(text) else { return Ok(body) };
        let Some(shared) = self.messages(&base, record.seg, record.seq, storage)? else {
            return Ok(Body::Erased { bytes: base.whole });
        };
        let whole = join_messages(text, &shared).ok_or_else(|| unfit(record.seq, base.seq))?;
        self.remember(record.h, base.h, shared, text);
        Ok(Body::Whole(Cow::Owned(whole)))
    }

    /// Returns the line of a record as JSON. A body that is not complete in the line is added as `content`; for an erased one, `content` is `null` and
    /// `erased` is true.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn line(&mut self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<String, AuditError> {
        let line = record.line();
        let open = line.strip_suffix('}').unwrap_or(line);
        Ok(match self.read(record, storage)? {
            Body::Whole(content) if content != record.body.get() => format!("{open},\"content\":{content}}}"),
            Body::Erased { .. } => format!("{open},\"content\":null,\"erased\":true}}"),
            // A withheld body is marked in the line.
            Body::Whole(_) | Body::Withheld { .. } => line.to_owned(),
        })
    }

    /// Returns the messages that a record shares with its base; `None` if they were erased, or removed with their segment.
    fn messages(
        &mut self,
        base: &BaseRecord,
        segment: u64,
        seq: u64,
        storage: &dyn RecordSource,
    ) -> Result<Option<Vec<Arc<str>>>, AuditError> {
        let file = segment_file(segment);
        // In reverse order.
        let mut parts: Vec<Vec<Arc<str>>> = Vec::new();
        let (mut at, mut later, mut wanted) = (base.clone(), seq, base.messages);
        loop {
            if let Some(known) = self.known.get_mut(&at.h) {
                self.clock += 1;
                known.used = self.clock;
                parts.push(known.messages.get(..wanted).ok_or_else(|| unfit(later, at.seq))?.to_vec());
                break;
            }
            // No cycles.
            if at.seq >= later {
                return Err(unfit(later, at.seq));
            }
            let line = match storage.read_part(&file, at.offset, at.bytes) {
                Ok(line) => line,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error).doing("read"),
            };
            let record = Record::parse(&line).ok().filter(|record| record.h == at.h && record.seq == at.seq);
            let record = record.ok_or_else(|| unfit(later, at.seq))?;
            let body = match stored_body(&record, storage)? {
                Body::Whole(text) => text,
                Body::Erased { .. } | Body::Withheld { .. } => return Ok(None),
            };
            let mut own = own_messages(&body).ok_or_else(|| unfit(later, at.seq))?;
            let before = match body.starts_with(CONTINUES) {
                true => serde_json::from_str::<ContinuationBody>(&body).ok().map(|continued| continued.base),
                false => None,
            };
            let shared = before.as_ref().map_or(0, |before| before.messages);
            if own.len() + shared < wanted {
                return Err(unfit(later, at.seq));
            }
            own.truncate(wanted.saturating_sub(shared));
            parts.push(own);
            let Some(before) = before else { break };
            (later, wanted) = (at.seq, wanted.min(shared));
            at = before;
        }
        Ok(Some(parts.into_iter().rev().flatten().collect()))
    }

    /// Caches a request instead of the one that it continues.
    fn remember(&mut self, h: Hash, base: Hash, mut messages: Vec<Arc<str>>, body: &str) {
        let Some(own) = own_messages(body) else { return };
        messages.extend(own);
        let text = messages.iter().map(|message| message.len()).sum();
        self.clock += 1;
        let conversation = RequestMessages { messages, text, used: self.clock };
        let forgotten = [self.known.remove(&base), self.known.insert(h, conversation)];
        self.text += text;
        self.text -= forgotten.iter().flatten().map(|forgotten| forgotten.text).sum::<usize>();
        while self.known.len() > MOST_KNOWN || (self.text > MOST_TEXT && self.known.len() > 1) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(h, _)| *h);
            let Some(known) = oldest.and_then(|oldest| self.known.remove(&oldest)) else { break };
            self.text -= known.text;
        }
    }
}

fn own_messages(body: &str) -> Option<Vec<Arc<str>>> {
    Some(Messages::find(body)?.each.into_iter().map(|range| body[range].into()).collect())
}

fn unfit(seq: u64, base: u64) -> AuditError {
    AuditError::Damaged { what: format!("record {seq} continues record {base}, which is missing or altered") }
}
