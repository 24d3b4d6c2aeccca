//! Reads whole bodies, wherever their parts are kept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::Hash;
use crate::body::{Body, stored_body};
use crate::error::{AuditError, StorageContext};
use crate::record::Record;
use crate::request::{BaseRecord, CONTINUES, ContinuationBody, Messages, join_messages};
use crate::storage::RecordSource;
use crate::tail::segment_file;

/// How much text of conversations is remembered, in bytes, and of how many conversations.
const MOST_TEXT: usize = 64 << 20;
const MOST_KNOWN: usize = 1024;

/// Reads the whole bodies of the records of a log. Requests to a model are kept as what they add to an earlier record; whoever reads many
/// records in order finds that one remembered here.
#[derive(Debug, Default)]
pub struct Bodies {
    known: HashMap<Hash, RequestMessages>,
    text: usize,
    clock: u64,
}

/// All messages of the request in one record.
#[derive(Debug)]
struct RequestMessages {
    messages: Vec<Arc<str>>,
    text: usize,
    used: u64,
}

impl Bodies {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// All of the body of a record.
    ///
    /// # Errors
    /// If a part of it cannot be read, or is not what was recorded.
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

    /// The line of a record as JSON. A body that does not stand in it as a whole follows as `content`; if it was erased, that is `null`, and `erased`
    /// is true.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn line(&mut self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<String, AuditError> {
        let line = record.line();
        let open = line.strip_suffix('}').unwrap_or(line);
        Ok(match self.read(record, storage)? {
            Body::Whole(content) if content != record.body.get() => format!("{open},\"content\":{content}}}"),
            Body::Erased { .. } => format!("{open},\"content\":null,\"erased\":true}}"),
            // What was withheld says so itself.
            Body::Whole(_) | Body::Withheld { .. } => line.to_owned(),
        })
    }

    /// The messages of a record that another one begins with; none if they were erased, or removed with their segment.
    fn messages(
        &mut self,
        base: &BaseRecord,
        segment: u64,
        seq: u64,
        storage: &dyn RecordSource,
    ) -> Result<Option<Vec<Arc<str>>>, AuditError> {
        let file = segment_file(segment);
        // From the last one back to the first.
        let mut parts: Vec<Vec<Arc<str>>> = Vec::new();
        let (mut at, mut later, mut wanted) = (base.clone(), seq, base.messages);
        loop {
            if let Some(known) = self.known.get_mut(&at.h) {
                self.clock += 1;
                known.used = self.clock;
                parts.push(known.messages.get(..wanted).ok_or_else(|| unfit(later, at.seq))?.to_vec());
                break;
            }
            // Never itself, and never in a circle.
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

    /// Remembers a request in the place of the one that it continues.
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
    AuditError::Damaged { what: format!("record {seq} continues record {base}, which is not where it was written") }
}
