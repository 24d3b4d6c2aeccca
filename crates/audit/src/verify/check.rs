//! One pass over the records of a log, with its findings.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::KnownCheckpoint;
use crate::Hash;
use crate::error::{AuditError, StorageContext};
use crate::keys::PublicKey;
use crate::merkle::Frontier;
use crate::note::{Checkpoint, Note, split_notes};
use crate::phrases::{counted, not_covered, too_few};
use crate::record::{Blob, Kind, Record, RecordError, blob_file};
use crate::report::{Finding, Problem, Report, Trust};
use crate::retention::LogChange;
use crate::sessions::{SessionSummary, SessionTracker};
use crate::storage::RecordSource;
use crate::tail::{
    CheckpointBody, EVERY, Genesis, KeyRotation, Segment, SigningContext, segment_file, uncovered_after,
};

const MOST_FINDINGS: usize = 100;

/// The most remembered checkpoints, for notes that are written beside the log a little later.
const MOST_PLACES: usize = 1024;

/// The longest time between the parts of a line that is being written.
const WRITING: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(super) struct Check {
    key: Option<PublicKey>,
    pub(super) known: Vec<KnownCheckpoint>,
    pub(super) passed: usize,
    pub(super) chain: Option<Chain>,
    pub(super) report: Report,
    sessions: SessionTracker,
    /// `true` if the active key is the given one, or one that it vouches for.
    is_trusted: bool,
    /// `true` if such a key has signed a checkpoint.
    key_seen: bool,
    pub(super) first_segment: u64,
    /// The segments before this one were removed, according to a signed record.
    removed_before: u64,
    pub(super) blobs: HashSet<Hash>,
    /// The last checkpoints: size, head and root of each.
    pub(super) passed_places: VecDeque<(u64, Hash, Hash)>,
    pub(super) segment: u64,
    pub(super) line: u64,
}

#[derive(Clone)]
pub(super) struct Chain {
    pub(super) log: String,
    pub(super) size: u64,
    /// The hash of the previous record; `None` if that is damaged.
    head: Option<Hash>,
    frontier: Frontier,
    /// `false` after missing or additional records, when the frontier is not that of the log as written.
    is_whole: bool,
    uncovered: u64,
    every: u64,
    /// The active key; `None` if the log does not name one.
    key: Option<PublicKey>,
}

impl Chain {
    pub(super) fn has_signed(&self, note: &Note) -> bool {
        self.key.is_some_and(|key| note.is_signed_by(&Checkpoint::origin(&self.log), &key))
    }
}

impl Check {
    pub(super) fn new(key: Option<PublicKey>) -> Self {
        Self {
            key,
            known: Vec::new(),
            passed: 0,
            chain: None,
            report: Report::default(),
            sessions: SessionTracker::default(),
            is_trusted: false,
            key_seen: false,
            first_segment: 1,
            removed_before: 1,
            blobs: HashSet::new(),
            passed_places: VecDeque::new(),
            segment: 0,
            line: 0,
        }
    }

    pub(super) fn add_finding(&mut self, problem: Problem, segment: u64, line: u64, text: String) {
        let seq = self.chain.as_ref().map_or(0, |chain| chain.size);
        self.add_finding_at(problem, segment, line, seq, text);
    }

    pub(super) fn add_finding_at(&mut self, problem: Problem, segment: u64, line: u64, seq: u64, text: String) {
        self.report.is_unsound |= problem != Problem::Unreadable;
        if self.report.findings.len() >= MOST_FINDINGS {
            self.report.more_findings += 1;
            return;
        }
        let file = (segment > 0).then(|| segment_file(segment));
        self.report.findings.push(Finding { problem, file, line: (line > 0).then_some(line), seq, text });
    }

    pub(super) fn add_finding_here(&mut self, problem: Problem, text: impl Into<String>) {
        self.add_finding(problem, self.segment, self.line, text.into());
    }

    pub(super) fn read_beside(
        &mut self,
        storage: &dyn RecordSource,
        known: &mut Vec<KnownCheckpoint>,
    ) -> Result<(), AuditError> {
        if storage.size("checkpoints").doing("read")?.is_none() {
            return Ok(());
        }
        let mut bytes = storage.read("checkpoints", 0).doing("read")?;
        for _ in 0..5 {
            if split_notes(&bytes).1.is_empty() {
                break;
            }
            std::thread::sleep(WRITING);
            bytes = storage.read("checkpoints", 0).doing("read")?;
        }
        let (notes, rest) = split_notes(&bytes);
        if !rest.is_empty() {
            self.add_finding(
                Problem::Unreadable,
                0,
                0,
                "the file `checkpoints` ends in a note that is not whole".to_owned(),
            );
        }
        for text in notes {
            let note = Note::parse(text).and_then(|note| Ok((Checkpoint::read(&note)?, note)));
            match note {
                Ok((checkpoint, note)) => known.push(KnownCheckpoint { note, checkpoint, is_beside: true }),
                Err(error) => self.add_finding(Problem::Unreadable, 0, 0, format!("the file `checkpoints`: {error}")),
            }
        }
        Ok(())
    }

    pub(super) fn segment(
        &mut self,
        storage: &dyn RecordSource,
        segment: u64,
        is_last: bool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), AuditError> {
        self.segment = segment;
        self.line = 0;
        self.report.segments += 1;
        let file = segment_file(segment);
        let mut text = storage.read(&file, 0).doing("read")?;
        // A growing log may end in half a line for a moment.
        for _ in 0..5 {
            if !is_last || text.ends_with(b"\n") {
                break;
            }
            std::thread::sleep(WRITING);
            text = storage.read(&file, 0).doing("read")?;
        }
        if text.is_empty() {
            self.add_finding_here(Problem::Unreadable, "the segment is empty");
        }
        let mut bytes = 0;
        for line in lines(&text) {
            self.line += 1;
            bytes += line.len() as u64 + 1;
            if bytes > text.len() as u64 {
                let unfinished = "the log ends in a line without an end: a crash left it, or it is being written";
                self.add_finding_here(Problem::Unreadable, unfinished);
                break;
            }
            self.parse(storage, line)?;
            if self.line.is_multiple_of(4096) {
                progress(self.report.records, bytes);
            }
        }
        progress(self.report.records, text.len() as u64);
        Ok(())
    }

    pub(super) fn parse(&mut self, storage: &dyn RecordSource, line: &[u8]) -> Result<(), AuditError> {
        match Record::parse(line) {
            Ok(record) => self.record(storage, &record)?,
            Err(RecordError::Edited) => self.broken(Problem::Edited, RecordError::Edited.to_string()),
            Err(error) => self.broken(Problem::Unreadable, error.to_string()),
        }
        Ok(())
    }

    fn broken(&mut self, problem: Problem, text: String) {
        self.add_finding_here(problem, text);
        self.pass_known();
        // The damaged line counts as one record.
        if let Some(chain) = &mut self.chain {
            chain.is_whole = false;
            chain.size = chain.size.saturating_add(1);
            chain.head = None;
        }
    }

    fn record(&mut self, storage: &dyn RecordSource, record: &Record<'_>) -> Result<(), AuditError> {
        self.report.records += 1;
        *self.report.kinds.entry(record.kind).or_default() += 1;
        if record.seg != self.segment {
            self.add_finding_here(Problem::Misplaced, format!("the record names segment {}", record.seg));
        }
        if self.chain.is_none() {
            self.begin(record);
        } else {
            self.link(record);
        }
        self.pass_known();
        let is_first = self.line == 1;
        match record.kind {
            Kind::Genesis if record.seq > 0 || self.segment > 1 || !is_first => {
                self.add_finding_here(Problem::Misplaced, "a log begins only once");
            }
            Kind::Segment if !is_first => self.add_finding_here(Problem::Misplaced, "a segment begins only once"),
            Kind::Genesis => {}
            kind if is_first && kind != Kind::Segment => {
                self.add_finding_here(Problem::Deleted, "the segment's first record is missing");
            }
            Kind::Segment => self.segment_begins(record),
            Kind::Checkpoint => self.checkpoint(record),
            Kind::KeyRotation => self.rotation(record),
            Kind::Breach => self.report.breaches += 1,
            Kind::Gap => self.report.gaps += 1,
            Kind::Recovery => self.report.recoveries += 1,
            Kind::PolicyChange => {
                if let Ok(LogChange::Retention { before, note, .. }) = record.body() {
                    self.removal(record, before, &note);
                }
            }
            _ => {}
        }
        // A seal also counts records that a gap or retention has removed.
        let may_lack = self.report.gaps > 0 || self.report.first > 0;
        if let Err((problem, text)) = self.sessions.observe(record, may_lack) {
            self.add_finding_here(problem, text);
        }
        self.blob(storage, record)?;
        let Some(chain) = &mut self.chain else { return Ok(()) };
        chain.size = record.seq.saturating_add(1);
        chain.head = Some(record.h);
        chain.frontier.push(record.h);
        let before = chain.uncovered;
        chain.uncovered = uncovered_after(record.kind, before, chain.every);
        if chain.uncovered > chain.every && before <= chain.every {
            let text = format!("more than {} records without a checkpoint", chain.every);
            self.add_finding_here(Problem::MissingCheckpoint, text);
        }
        self.report.last_time.clear();
        self.report.last_time.push_str(&record.time);
        Ok(())
    }

    fn begin(&mut self, record: &Record<'_>) {
        let mut chain = Chain {
            log: record.log.to_string(),
            size: record.seq,
            head: Some(record.prev),
            frontier: Frontier::new(),
            is_whole: true,
            uncovered: 0,
            every: *EVERY.end(),
            key: None,
        };
        let mut problem = None;
        match record.kind {
            Kind::Genesis => match record.body::<Genesis>() {
                Ok(body) if record.seq == 0 && record.prev == Hash::ZERO => {
                    (chain.key, chain.every) = (Some(body.public_key), body.every);
                    if body.format != crate::appender::FORMAT {
                        problem = Some((Problem::Unreadable, format!("unknown format `{}`", body.format)));
                    }
                }
                Ok(_) => problem = Some((Problem::Misplaced, "the first record does not begin a log".to_owned())),
                Err(error) => problem = Some((Problem::Unreadable, error.to_string())),
            },
            // Retention has removed the earlier records: the signed frontier represents them.
            Kind::Segment => match record.body::<Segment>() {
                Ok(body) => {
                    (chain.key, chain.every) = (Some(body.public_key), body.every);
                    self.is_trusted = self.key.is_some_and(|key| leads_to(&record.log, key, &body));
                    match Frontier::from_nodes(record.seq, body.frontier) {
                        Some(frontier) => chain.frontier = frontier,
                        None => problem = Some((Problem::Checkpoint, "the frontier does not fit".to_owned())),
                    }
                }
                Err(error) => problem = Some((Problem::Unreadable, error.to_string())),
            },
            _ => problem = Some((Problem::Deleted, "the beginning of the log is missing".to_owned())),
        }
        if !EVERY.contains(&chain.every) {
            problem = Some((
                Problem::MissingCheckpoint,
                format!("invalid number of records between checkpoints: {}", counted(chain.every, "record")),
            ));
            chain.every = *EVERY.end();
        }
        chain.is_whole = problem.is_none();
        self.report.log = chain.log.clone();
        self.report.first = record.seq;
        self.is_trusted |= self.key.is_some() && self.key == chain.key;
        self.chain = Some(chain);
        if let Some((problem, text)) = problem {
            self.add_finding_here(problem, text);
        }
    }

    fn link(&mut self, record: &Record<'_>) {
        let Some(chain) = &mut self.chain else { return };
        let problem = if record.log != chain.log {
            Some((Problem::Replaced, format!("the record belongs to another log, `{}`", record.log)))
        } else if record.seq > chain.size {
            Some((
                Problem::Deleted,
                match record.seq - 1 {
                    last if last == chain.size => format!("record {last} is missing"),
                    last => format!("records {} to {last} are missing", chain.size),
                },
            ))
        } else if record.seq < chain.size {
            Some((Problem::Misplaced, format!("found record {} instead of record {}", record.seq, chain.size)))
        } else if chain.head.is_some_and(|head| head != record.prev) {
            Some((Problem::Rewritten, "the record does not follow the previous one".to_owned()))
        } else {
            None
        };
        if let Some((problem, text)) = problem {
            chain.is_whole = false;
            self.add_finding_here(problem, text);
        }
    }

    fn segment_begins(&mut self, record: &Record<'_>) {
        let body = match record.body::<Segment>() {
            Ok(body) => body,
            Err(error) => return self.add_finding_here(Problem::Unreadable, error.to_string()),
        };
        let Some(chain) = &self.chain else { return };
        if chain.is_whole && (chain.frontier.nodes() != body.frontier || chain.key != Some(body.public_key)) {
            self.add_finding_here(Problem::Checkpoint, "the segment does not continue the tree or the key before it");
        }
        self.check_note(record, &body.note);
    }

    fn checkpoint(&mut self, record: &Record<'_>) {
        match record.body::<CheckpointBody>() {
            Ok(body) => self.check_note(record, &body.note),
            Err(error) => self.add_finding_here(Problem::Unreadable, error.to_string()),
        }
    }

    /// Checks the checkpoint in a record, which covers the records before it.
    fn check_note(&mut self, record: &Record<'_>, note: &str) {
        let Some(chain) = &self.chain else { return };
        let Some(key) = &chain.key else { return };
        let context = SigningContext { log: &chain.log, key, seq: record.seq, prev: record.prev };
        match context.checkpoint(note, chain.is_whole.then(|| chain.frontier.root())) {
            Err(wrong) => self.add_finding_here(Problem::Checkpoint, wrong),
            Ok(checkpoint) => {
                self.key_seen |= self.is_trusted;
                self.report.checkpoints += 1;
                self.report.covered = checkpoint.size;
                self.report.covered_at = Some(checkpoint.time);
                self.passed_places.push_back((checkpoint.size, checkpoint.head, checkpoint.root));
                if self.passed_places.len() > MOST_PLACES {
                    self.passed_places.pop_front();
                }
            }
        }
    }

    fn rotation(&mut self, record: &Record<'_>) {
        let body = match record.body::<KeyRotation>() {
            Ok(body) => body,
            Err(error) => return self.add_finding_here(Problem::Unreadable, error.to_string()),
        };
        let Some(chain) = &mut self.chain else { return };
        let Some(key) = &chain.key else { return };
        let context = SigningContext { log: &chain.log, key, seq: record.seq, prev: record.prev };
        if context.has_rotated(&body) {
            // A key vouches for its successors. A signature for the given key proves nothing: the key itself must sign.
            self.is_trusted |= self.key == Some(body.public_key);
            chain.key = Some(body.public_key);
            self.report.rotations += 1;
        } else {
            self.add_finding_here(Problem::Key, "the new key is not signed with the old one");
        }
    }

    fn removal(&mut self, record: &Record<'_>, before: u64, note: &str) {
        let Some(Chain { log, key: Some(key), .. }) = &self.chain else { return };
        let context = SigningContext { log, key, seq: record.seq, prev: record.prev };
        if context.has_removed(before, note) {
            self.removed_before = self.removed_before.max(before);
        } else {
            self.add_finding_here(Problem::Key, "a removal of segments is not signed with the active key");
        }
    }

    /// Compares with the checkpoints that cover exactly the records so far.
    fn pass_known(&mut self) {
        while let Some(known) = self.known.get(self.passed) {
            let Some(chain) = &self.chain else { return };
            let size = known.checkpoint.size;
            if size > chain.size {
                return;
            }
            self.passed += 1;
            let place = if known.is_beside { "beside the log" } else { "from elsewhere" };
            if known.checkpoint.log != chain.log {
                let text = format!("a checkpoint {place} is of another log, `{}`", known.checkpoint.log);
                self.add_finding(Problem::Replaced, 0, 0, text);
            } else if size < chain.size {
                // Only before the first existing record, or after damage.
                if size >= self.report.first {
                    let text = format!("the checkpoint {place} over {} cannot be compared", counted(size, "record"));
                    self.add_finding(Problem::Replaced, 0, 0, text);
                }
            } else if chain.head.is_some_and(|head| head != known.checkpoint.head)
                || (chain.is_whole && known.checkpoint.root != chain.frontier.root())
            {
                let text = not_covered(size, place);
                self.add_finding(Problem::Replaced, 0, 0, text);
            } else if chain.has_signed(&known.note) {
                if !known.is_beside {
                    self.report.anchored = Some(size);
                    self.report.anchored_at = Some(known.checkpoint.time.clone());
                }
            } else if known.is_beside || known.note.is_claimed_by(&Checkpoint::origin(&chain.log)) {
                let size = counted(size, "record");
                let text = match known.is_beside {
                    true => format!("the checkpoint {place} over {size} is not signed with the active key"),
                    false => format!(
                        "the checkpoint {place} over {size} was altered, or is signed with another key than that of the log"
                    ),
                };
                self.add_finding(Problem::Checkpoint, 0, 0, text);
            } else {
                // An unsigned note can be written by anyone, with any time.
                self.report.unsigned_elsewhere = Some(size);
            }
        }
    }

    fn blob(&mut self, storage: &dyn RecordSource, record: &Record<'_>) -> Result<(), AuditError> {
        if !record.body.get().starts_with("{\"blob\":") {
            return Ok(());
        }
        let Some(hash) = record.body::<Blob<'_>>().ok().and_then(|blob| blob.hash()) else {
            self.add_finding_here(Problem::Unreadable, "the body is missing, and not a blob");
            return Ok(());
        };
        let file = blob_file(&hash);
        if self.blobs.contains(&hash) {
            self.report.blobs += 1;
        } else if storage.size(&file).doing("read")?.is_none() {
            self.report.blobs_erased += 1;
        } else if Hash::sha256(&storage.read(&file, 0).doing("read")?) == hash {
            self.blobs.insert(hash);
            self.report.blobs += 1;
        } else {
            self.add_finding_here(
                Problem::Edited,
                format!("the blob `{file}` does not have the content that was recorded"),
            );
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Report {
        self.pass_known();
        if let Some(chain) = &self.chain {
            self.report.size = chain.size;
            self.report.head = chain.head;
            self.report.root = chain.is_whole.then(|| chain.frontier.root());
            self.report.public_key = chain.key;
        }
        for known in std::mem::take(&mut self.known).drain(..).skip(self.passed) {
            let place = if known.is_beside { "beside the log" } else { "from elsewhere" };
            let (covers, there) = (known.checkpoint.size, self.report.size);
            self.add_finding(Problem::Truncated, 0, 0, too_few(place, covers, there));
        }
        if self.key.is_some() && !self.key_seen {
            let has = self.report.public_key.map(|key| key.to_string()).unwrap_or_default();
            let text = format!("nothing is signed with the key that was given; the log's key is `{has}`");
            self.add_finding(Problem::Key, 0, 0, text);
        }
        // An attacker without the key could remove the beginning, but not sign the removal.
        if self.first_segment > self.removed_before {
            let text = format!(
                "the segments before {} are missing, and no signed record says that they were removed",
                self.first_segment
            );
            self.add_finding(Problem::Deleted, 0, 0, text);
        }
        if self.report.breaches > 0 {
            let text = match self.report.breaches {
                1 => "the writer found a breach and recorded it".to_owned(),
                breaches => format!("the writer found {breaches} breaches and recorded them"),
            };
            self.add_finding(Problem::Breach, 0, 0, text);
        }
        self.report.trust = if self.key.is_some() { Trust::KeyKnown } else { Trust::KeyFromLog };
        let SessionSummary { sealed, unsealed, in_doubt } = self.sessions.finish();
        (self.report.sealed, self.report.unsealed, self.report.in_doubt) = (sealed, unsealed, in_doubt);
        self.report
    }
}

/// Returns `true` if the key is the segment's, or leads to it by rotations whose records are removed.
fn leads_to(log: &str, mut key: PublicKey, segment: &Segment) -> bool {
    for text in &segment.rotations {
        let Ok(note) = Note::parse(text) else { return false };
        let new = note.text().lines().nth(4).and_then(|line| line.parse().ok());
        if note.is_signed_by(&Checkpoint::origin(log), &key)
            && note.text().lines().nth(1) == Some("rotate")
            && let Some(new) = new
        {
            key = new;
        }
    }
    key == segment.public_key
}

/// Returns the lines of a text; the last one may lack its line feed.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}
