//! Lines of records and checkpoints, made in memory.

use std::time::SystemTime;

use serde::Serialize;

use super::disk::place;
use super::{AppendEntry, Appender, Counts, SignedCheckpoint};
use crate::error::{AuditError, StorageContext};
use crate::model_request::{ModelRequest, Position};
use crate::note::Checkpoint;
use crate::record::{Kind, PendingRecord, RecordHeader, time_text, write_json};
use crate::tail::{CheckpointBody, Segment, Tail, segment_file};

impl Appender {
    pub(super) fn put(&mut self, entry: &AppendEntry) -> Result<(), AuditError> {
        match entry {
            AppendEntry::Record(draft) => {
                if let Some(session) = &draft.session {
                    self.count(session, draft.kind);
                }
                match (&draft.session, &draft.request) {
                    (Some(session), Some(request)) => self.put_request(draft, session, request)?,
                    _ => self.put_whole(draft)?,
                }
            }
            AppendEntry::Seal { session, reason } => {
                #[derive(Serialize)]
                struct SealBody<'a> {
                    reason: &'a str,
                    records: u64,
                    kinds: Counts,
                }
                self.conversations.forget(session);
                let kinds = self.sessions.remove(session).unwrap_or_default();
                self.sealing.push((session.clone(), kinds.clone()));
                self.put_own(Kind::Seal, Some(session), &SealBody { reason, records: kinds.values().sum(), kinds });
                self.put_checkpoint();
                self.kept_beside = None;
            }
        }
        Ok(())
    }

    fn put_whole(&mut self, draft: &PendingRecord) -> Result<(), AuditError> {
        if let Some((hash, body)) = &draft.blob {
            self.keep_blob(hash, body).doing("written")?;
        }
        self.put_pending(draft);
        Ok(())
    }

    /// Appends a model request, as the difference to an earlier one in this segment if there is one.
    fn put_request(&mut self, draft: &PendingRecord, session: &str, request: &ModelRequest) -> Result<(), AuditError> {
        let (body, records) = self.conversations.shorten(session, self.tail.segment, request);
        self.put_whole(&draft.with_body(body))?;
        let Tail { segment, size, head, offset, .. } = &self.tail;
        let bytes = self.last_line - 1;
        let last = Position { segment: *segment, seq: size - 1, h: *head, offset: offset - self.last_line, bytes };
        self.conversations.add(session, request, last, records);
        Ok(())
    }

    pub(super) fn put_own(&mut self, kind: Kind, session: Option<&str>, body: &impl Serialize) {
        let draft = own_record(&self.writer, kind, session, body);
        self.put_pending(&draft);
    }

    fn put_pending(&mut self, draft: &PendingRecord) {
        if self.tail.uncovered >= self.tail.every {
            self.put_checkpoint();
        }
        self.line(draft);
    }

    fn count(&mut self, session: &str, kind: Kind) {
        // A lookup first, because the entry nearly always exists.
        let counts = match self.sessions.get_mut(session) {
            Some(counts) => counts,
            None => self.sessions.entry(session.to_owned()).or_default(),
        };
        *counts.entry(kind).or_default() += 1;
    }

    fn line(&mut self, draft: &PendingRecord) {
        let begin = self.lines.len();
        let Tail { log, segment, size, head, .. } = &self.tail;
        let h = draft.append_hashed_line(&mut self.lines, log, *segment, *size, head);
        self.last_line = (self.lines.len() - begin) as u64;
        self.tail.advance(draft.kind, h, self.last_line);
    }

    fn sign(&mut self) -> String {
        let Tail { log, size, head, frontier, .. } = &self.tail;
        let checkpoint = Checkpoint {
            log: log.clone(),
            size: *size,
            root: frontier.root(),
            head: *head,
            time: time_text(SystemTime::now()),
        };
        let note = checkpoint.sign(&self.key).to_string();
        self.newest = Some(SignedCheckpoint { size: *size, note: note.clone() });
        note
    }

    pub(super) fn put_checkpoint(&mut self) {
        let note = self.sign();
        let draft = own_record(&self.writer, Kind::Checkpoint, None, &CheckpointBody { note });
        self.line(&draft);
    }

    /// Begins another segment. Its file is created with the first record, so an empty segment never exists.
    pub(super) fn begin_segment(&mut self) -> Result<(), AuditError> {
        let note = self.sign();
        let Tail { frontier, key, every, rotations, .. } = &self.tail;
        let body = Segment {
            note,
            frontier: frontier.nodes().to_vec(),
            public_key: *key,
            every: *every,
            rotations: rotations.clone(),
        };
        let draft = own_record(&self.writer, Kind::Segment, None, &body);
        self.tail.segment += 1;
        self.tail.offset = 0;
        self.tail.follows = (self.tail.size, self.tail.head);
        self.line(&draft);
        let text = std::mem::take(&mut self.lines);
        place(&*self.storage, &segment_file(self.tail.segment), &text)?;
        self.mark_safe();
        Ok(())
    }
}

pub(super) fn own_record(writer: &str, kind: Kind, session: Option<&str>, body: &impl Serialize) -> PendingRecord {
    let mut text = Vec::new();
    write_json(&mut text, body);
    let at = SystemTime::now();
    PendingRecord::new(
        RecordHeader { at, writer, session, turn: None, event: None, kind, digest: None },
        text,
        usize::MAX,
    )
}
