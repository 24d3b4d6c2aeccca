//! Records as lines: made in memory, behind the tail, and signed for.

use std::time::SystemTime;

use serde::Serialize;

use super::disk::place;
use super::{Appender, Counts, Entry, Signed};
use crate::error::{AuditError, Doing};
use crate::note::Checkpoint;
use crate::record::{Draft, Fields, Kind, time_text, write_json};
use crate::tail::{CheckpointBody, Segment, Tail, segment_file};

impl Appender {
    pub(super) fn put(&mut self, entry: &Entry) -> Result<(), AuditError> {
        match entry {
            Entry::Record(draft) => {
                if let Some((hash, body)) = &draft.blob {
                    self.keep_blob(hash, body).doing("written")?;
                }
                if let Some(session) = &draft.session {
                    self.count(session, draft.kind);
                }
                self.put_draft(draft);
            }
            Entry::Seal { session, reason } => {
                #[derive(Serialize)]
                struct Seal<'a> {
                    reason: &'a str,
                    records: u64,
                    kinds: Counts,
                }
                let kinds = self.sessions.remove(session).unwrap_or_default();
                self.sealing.push((session.clone(), kinds.clone()));
                self.put_own(Kind::Seal, Some(session), &Seal { reason, records: kinds.values().sum(), kinds });
                self.put_checkpoint();
                self.kept_beside = None;
            }
        }
        Ok(())
    }

    /// A record of the log about itself.
    pub(super) fn put_own(&mut self, kind: Kind, session: Option<&str>, body: &impl Serialize) {
        let draft = own_draft(&self.writer, kind, session, body);
        self.put_draft(&draft);
    }

    fn put_draft(&mut self, draft: &Draft) {
        if self.tail.uncovered >= self.tail.every {
            self.put_checkpoint();
        }
        self.line(draft);
    }

    fn count(&mut self, session: &str, kind: Kind) {
        // Looked up before it is made, because it is nearly always there.
        let counts = match self.sessions.get_mut(session) {
            Some(counts) => counts,
            None => self.sessions.entry(session.to_owned()).or_default(),
        };
        *counts.entry(kind).or_default() += 1;
    }

    fn line(&mut self, draft: &Draft) {
        let begin = self.lines.len();
        let Tail { log, segment, size, head, .. } = &self.tail;
        let h = draft.write(&mut self.lines, log, *segment, *size, head);
        self.tail.advance(draft.kind, h, (self.lines.len() - begin) as u64);
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
        self.newest = Some(Signed { size: *size, note: note.clone() });
        note
    }

    pub(super) fn put_checkpoint(&mut self) {
        let note = self.sign();
        let draft = own_draft(&self.writer, Kind::Checkpoint, None, &CheckpointBody { note });
        self.line(&draft);
    }

    /// Begins another segment. It is put in place whole, so a segment without a first record is never there.
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
        let draft = own_draft(&self.writer, Kind::Segment, None, &body);
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

pub(super) fn own_draft(writer: &str, kind: Kind, session: Option<&str>, body: &impl Serialize) -> Draft {
    let mut text = Vec::new();
    write_json(&mut text, body);
    let at = SystemTime::now();
    Draft::new(Fields { at, writer, session, turn: None, event: None, kind, digest: None }, text, usize::MAX)
}
