//! Appends to a log: after a look at what others appended, in one piece, and never twice at one place.

mod recovery;
mod rotation;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::error::{AuditError, Doing};
use crate::keys::SigningKey;
use crate::note::{Checkpoint, Note, retention_text};
use crate::record::{Draft, Fields, Kind, blob_file, time_text, write_json};
use crate::retention::{self, Change};
use crate::storage::Storage;
use crate::tail::{CheckpointBody, Genesis, Rest, Segment, Tail, is_odd_segment, segment_file, segment_number};
use crate::words::too_few;
use crate::{Durability, Hash};

const CHECKPOINTS: &str = "checkpoints";

/// How many records there were of each kind.
pub(crate) type Counts = BTreeMap<Kind, u64>;

/// Something to append.
pub(crate) enum Entry {
    Record(Draft),
    /// The end of a session; what happened in it is counted when its turn comes.
    Seal {
        session: String,
        reason: String,
    },
}

impl Entry {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Record(draft) => draft.kind,
            Self::Seal { .. } => Kind::Seal,
        }
    }
}

pub(crate) struct Settings {
    pub(crate) durability: Durability,
    pub(crate) segment_bytes: u64,
    pub(crate) every: u64,
    pub(crate) checkpoint_after: Duration,
    /// Where the key is kept, so that a rotation by another process can be followed.
    pub(crate) key_file: Option<PathBuf>,
    /// The log that the key belongs to, if it belongs to one.
    pub(crate) log: Option<String>,
}

/// A signed checkpoint that is safe.
pub(crate) struct Signed {
    pub(crate) size: u64,
    pub(crate) note: String,
}

pub(crate) struct Appender {
    storage: Arc<dyn Storage>,
    settings: Settings,
    key: SigningKey,
    writer: String,
    tail: Tail,
    /// Lines that are made and not written. `tail` is ahead of the file by these.
    lines: Vec<u8>,
    /// The tail at the last sync, and what this writer wrote since.
    safe: Tail,
    since_safe: Counts,
    /// What was lost and is not yet told by a gap.
    lost: Counts,
    /// What this writer wrote for each session since it last sealed it.
    sessions: HashMap<String, Counts>,
    /// The newest checkpoint that was signed.
    newest: Option<Signed>,
    /// When a checkpoint was last kept beside the log.
    kept_beside: Option<Instant>,
    /// The newest checkpoint that is kept beside the log.
    outbox: Option<Signed>,
    is_synced: bool,
    /// How long the last sync took.
    last_sync: Duration,
    /// The tail where the lines of this writer begin that are not safe.
    begins: Tail,
    /// Whether another writer appended since the last sync.
    others_since_safe: bool,
    /// What does not fit that this writer came upon.
    breach: Option<String>,
    /// Whether a sync failed: then nothing since the last good one is safe.
    sync_failed: bool,
    /// Whether something failed since the log was last opened or reopened.
    has_failed: bool,
    /// Where the file has to be cut because a batch failed, and could not be cut at once.
    uncut: Option<Tail>,
    /// The counts of sessions that are being sealed.
    sealing: Vec<(String, Counts)>,
    is_new_key: bool,
}

impl Appender {
    /// Opens a log, or makes one where there is none.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        settings: Settings,
        key: SigningKey,
        writer: String,
    ) -> Result<Self, AuditError> {
        let _lock = storage.lock().doing("locked")?;
        let files = storage.list("").doing("read")?;
        for left in files.iter().filter(|file| file.ends_with(".tmp")) {
            storage.remove(left).doing("read")?;
        }
        if let Some(file) = files.iter().find(|file| is_odd_segment(file)) {
            return Err(damaged(&format!("the file `{file}` is no segment")));
        }
        let last = files.iter().filter_map(|file| segment_number(file)).max();
        let (tail, rest) = match last {
            Some(last) => load(&*storage, last)?,
            // Whoever removed the records must not get a new log that looks as if nothing had ever been there.
            None if files.iter().any(|file| file == CHECKPOINTS) => {
                return Err(damaged("its checkpoints are there, but no segment is"));
            }
            None => match &settings.log {
                Some(log) => return Err(AuditError::Gone { log: log.clone() }),
                None => (create(&*storage, &settings, &key, &writer)?, Rest::Clean),
            },
        };
        if let Some(log) = settings.log.as_ref().filter(|log| **log != tail.log) {
            return Err(AuditError::Gone { log: log.clone() });
        }
        let mut appender = Self {
            safe: tail.clone(),
            begins: tail.clone(),
            tail,
            storage,
            settings,
            key,
            writer,
            lines: Vec::new(),
            since_safe: Counts::new(),
            lost: Counts::new(),
            sessions: HashMap::new(),
            newest: None,
            kept_beside: None,
            outbox: None,
            is_synced: true,
            last_sync: Duration::ZERO,
            others_since_safe: false,
            breach: None,
            sync_failed: false,
            has_failed: false,
            uncut: None,
            sealing: Vec::new(),
            is_new_key: false,
        };
        appender.check_key()?;
        // Nothing says that this log belongs to the key but the log itself, and anyone can hand over a log to a key.
        let is_claimed = appender.settings.key_file.is_some() && appender.settings.log.is_none() && last.is_some();
        // (One that was only begun may lack its first checkpoint because its writer was killed.)
        if is_claimed && appender.tail.size > 1 && !appender.tail.is_signed {
            return Err(damaged("nothing in it is signed with the key"));
        }
        if let Err(error) = appender.begin(rest) {
            // Lines that did not become safe must not be taken for safe by whoever opens the log next.
            appender.take_back();
            for _ in 0..10 {
                if appender.cut_failed().is_ok() {
                    break;
                }
            }
            return Err(error);
        }
        Ok(appender)
    }

    /// Puts in order what is there, and signs for it.
    fn begin(&mut self, rest: Rest) -> Result<(), AuditError> {
        // Whoever wrote the end may have been killed before it was synced.
        self.storage.sync(&segment_file(self.tail.segment)).doing("synced")?;
        self.storage.sync_folder("").doing("synced")?;
        self.settle_key();
        self.settle(rest)?;
        if self.tail.uncovered >= self.tail.every {
            self.put_checkpoint();
            self.sync()?;
            self.hand_out();
        }
        if let Some(size) = self.last_checkpoint()?
            && size > self.tail.size
        {
            self.breach(&too_few("beside the log", size, self.tail.size))?;
        }
        Ok(())
    }

    /// What does not fit that this writer came upon last.
    pub(crate) fn found_breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    /// How long the last sync took.
    pub(crate) fn last_sync(&self) -> Duration {
        self.last_sync
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The key, if it is another one since this was last asked.
    pub(crate) fn take_new_key(&mut self) -> Option<&SigningKey> {
        std::mem::take(&mut self.is_new_key).then_some(&self.key)
    }

    /// The newest checkpoint that is safe and was not taken before.
    pub(crate) fn take_checkpoint(&mut self) -> Option<Signed> {
        self.outbox.take()
    }

    /// Whether something failed, so that the log has to be reopened before anything is appended.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether there are records that no checkpoint covers, or that are not synced.
    pub(crate) fn is_dirty(&self) -> bool {
        self.tail.uncovered > 1 || !self.is_synced || self.newest.is_some()
    }

    /// Appends all of them and then whatever `more` adds, as safely as the log promises, or none of them counts.
    pub(crate) fn append(
        &mut self,
        entries: &mut Vec<Entry>,
        mut more: impl FnMut(&mut Vec<Entry>),
    ) -> Result<(), AuditError> {
        let mut kept = 0;
        let result = self.storage.lock().doing("locked").and_then(|_lock| {
            // The file is locked for those who are expected, but looked at when they are there: not a moment before it is written to.
            if entries.is_empty() {
                more(entries);
            }
            if entries.is_empty() {
                return Ok(());
            }
            self.alone(|log| {
                for index in 0.. {
                    if index == entries.len() {
                        more(entries);
                    }
                    let Some(entry) = entries.get(index) else { break };
                    if log.tail.offset >= log.settings.segment_bytes {
                        log.sync()?;
                        log.begin_segment()?;
                        kept = index;
                    }
                    log.put(entry)?;
                    if log.settings.durability == Durability::Record {
                        log.sync()?;
                        kept = index + 1;
                    }
                }
                match log.settings.durability {
                    Durability::Async => log.write(),
                    Durability::Group => log.sync(),
                    Durability::Record => Ok(()),
                }
            })
        });
        let counts = entries[kept..].iter().map(|entry| (entry.kind(), 1));
        match &result {
            Err(_) => add(&mut self.lost, counts),
            Ok(()) if self.settings.durability == Durability::Async => add(&mut self.since_safe, counts),
            Ok(()) => {}
        }
        result
    }

    /// Signs a checkpoint and makes everything safe.
    pub(crate) fn checkpoint(&mut self) -> Result<(), AuditError> {
        self.locked(|log| {
            if !log.is_dirty() {
                return Ok(());
            }
            if log.tail.uncovered > 1 {
                log.put_checkpoint();
            }
            log.kept_beside = None;
            log.sync()
        })
    }

    /// Records a change of the rules that the log itself makes, and carries it out while nobody else appends.
    pub(crate) fn change(
        &mut self,
        plan: impl FnOnce(&dyn Storage, &Tail) -> Result<Option<Change>, AuditError>,
    ) -> Result<(), AuditError> {
        let mut result = Ok(());
        self.locked(|log| {
            match plan(&*log.storage, &log.tail) {
                Ok(Some(mut change)) => {
                    if log.tail.uncovered >= log.tail.every {
                        log.put_checkpoint();
                    }
                    if let Change::Retention { before, note, .. } = &mut change {
                        let text = retention_text(&log.tail.log, log.tail.size, &log.tail.head, *before);
                        *note = Note::sign(text, &Checkpoint::origin(&log.tail.log), &log.key).to_string();
                    }
                    log.put_own(Kind::PolicyChange, None, &change);
                    log.put_checkpoint();
                    log.sync()?;
                    result = retention::carry_out(&*log.storage, &change);
                }
                Ok(None) => {}
                Err(error) => result = Err(error),
            }
            Ok(())
        })?;
        // What failed here has not harmed what was appended.
        result
    }

    /// Goes on after a failure: a new segment, with a record of what was lost.
    pub(crate) fn reopen(&mut self, why: &str) -> Result<(), AuditError> {
        let _lock = self.storage.lock().doing("locked")?;
        self.cut_failed()?;
        self.catch_up()?;
        self.begins = self.tail.clone();
        let result = (|| {
            // What the new segment follows must be there for good.
            self.storage.sync(&segment_file(self.tail.segment)).doing("synced")?;
            self.begin_segment()?;
            self.put_gap(why)
        })();
        match result {
            Ok(()) => {
                self.has_failed = false;
                self.hand_out();
            }
            Err(_) => self.take_back(),
        }
        result
    }

    /// Takes into account what was refused before it got here.
    pub(crate) fn add_lost(&mut self, refused: impl IntoIterator<Item = (Kind, u64)>) {
        add(&mut self.lost, refused);
    }

    /// Records what was lost, if anything was, while the log works.
    pub(crate) fn tell_lost(&mut self, why: &str) -> Result<(), AuditError> {
        if self.lost.is_empty() { Ok(()) } else { self.locked(|log| log.put_gap(why)) }
    }

    fn put_gap(&mut self, why: &str) -> Result<(), AuditError> {
        #[derive(Serialize)]
        struct Gap<'a> {
            lost: u64,
            kinds: &'a Counts,
            why: &'a str,
        }
        let kinds = self.lost.clone();
        self.put_own(Kind::Gap, None, &Gap { lost: kinds.values().sum(), kinds: &kinds, why });
        self.sync()?;
        self.lost.clear();
        Ok(())
    }

    /// Does something that appends, while no other process does, at the end as it is now. If it fails, nothing of it stays.
    fn locked(&mut self, append: impl FnOnce(&mut Self) -> Result<(), AuditError>) -> Result<(), AuditError> {
        let _lock = self.storage.lock().doing("locked")?;
        self.alone(append)
    }

    /// The same, while the lock is held.
    fn alone(&mut self, append: impl FnOnce(&mut Self) -> Result<(), AuditError>) -> Result<(), AuditError> {
        self.catch_up()?;
        self.begins = self.tail.clone();
        let result = append(self);
        match result {
            Ok(()) => {
                self.sealing.clear();
                self.hand_out();
            }
            Err(_) => self.take_back(),
        }
        result
    }

    fn put(&mut self, entry: &Entry) -> Result<(), AuditError> {
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
    fn put_own(&mut self, kind: Kind, session: Option<&str>, body: &impl Serialize) {
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

    fn keep_blob(&self, hash: &Hash, body: &[u8]) -> io::Result<()> {
        let storage = &*self.storage;
        let file = blob_file(hash);
        if storage.size(&file)? == Some(body.len() as u64) {
            return Ok(());
        }
        let folder = &file[..file.len() - 65];
        let temporary = format!("{file}.tmp");
        storage.make_folder(folder)?;
        storage.remove(&temporary)?;
        let written = write_all(storage, &temporary, body)
            .and_then(|()| storage.sync(&temporary))
            .and_then(|()| storage.remove(&file))
            .and_then(|()| storage.rename(&temporary, &file));
        if let Err(error) = written {
            // A blob may be something to be erased one day, so nothing of it is left lying around.
            storage.remove(&temporary)?;
            return Err(error);
        }
        // Without this, a loss of power can take the blob away, but not alter it.
        if self.settings.durability != Durability::Async {
            storage.sync_folder(folder)?;
            storage.sync_folder("blobs")?;
            storage.sync_folder("")?;
        }
        Ok(())
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

    fn put_checkpoint(&mut self) {
        let note = self.sign();
        let draft = own_draft(&self.writer, Kind::Checkpoint, None, &CheckpointBody { note });
        self.line(&draft);
    }

    /// Begins another segment. It is put in place whole, so a segment without a first record is never there.
    fn begin_segment(&mut self) -> Result<(), AuditError> {
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

    fn write(&mut self) -> Result<(), AuditError> {
        if !self.lines.is_empty() {
            self.is_synced = false;
            write_all(&*self.storage, &segment_file(self.tail.segment), &self.lines).doing("written")?;
            self.lines.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), AuditError> {
        self.write()?;
        let begun = Instant::now();
        let synced = self.storage.sync(&segment_file(self.tail.segment));
        self.last_sync = begun.elapsed();
        self.sync_failed |= synced.is_err();
        synced.doing("synced")?;
        self.mark_safe();
        Ok(())
    }

    fn mark_safe(&mut self) {
        self.is_synced = true;
        self.safe = self.tail.clone();
        self.begins = self.tail.clone();
        self.since_safe.clear();
        self.others_since_safe = false;
    }

    /// Keeps the newest checkpoint beside the log, but not all the time. Only one that is safe: one that covers lost records would look
    /// like an attack.
    fn hand_out(&mut self) {
        let is_due = self.kept_beside.is_none_or(|at| at.elapsed() >= self.settings.checkpoint_after);
        let Some(signed) = self.newest.take_if(|_| self.is_synced && is_due) else { return };
        self.kept_beside = Some(Instant::now());
        let storage = &*self.storage;
        let kept = (|| {
            // Another writer may have been killed inside a note.
            self.last_checkpoint().map_err(io::Error::other)?;
            let there = storage.size(CHECKPOINTS)?;
            let size = there.unwrap_or(0);
            let kept = write_all(storage, CHECKPOINTS, format!("{}\n", signed.note).as_bytes())
                .and_then(|()| storage.sync(CHECKPOINTS))
                .and_then(|()| if there.is_none() { storage.sync_folder("") } else { Ok(()) });
            if kept.is_err() {
                storage.truncate(CHECKPOINTS, size)?;
            }
            kept
        })();
        if let Err(error) = kept {
            // The record has it, too; only the copy beside the log is missing.
            tracing::warn!(%error, "a checkpoint could not be kept beside the audit log");
        }
        self.outbox = Some(signed);
    }
}

fn add(counts: &mut Counts, more: impl IntoIterator<Item = (Kind, u64)>) {
    more.into_iter().for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
}

fn damaged(what: &str) -> AuditError {
    AuditError::Damaged { what: what.to_owned() }
}

/// Reads a segment from its beginning.
fn load(storage: &dyn Storage, segment: u64) -> Result<(Tail, Rest), AuditError> {
    let file = segment_file(segment);
    let text = storage.read(&file, 0).doing("read")?;
    let mut tail = Tail::begin(segment, &text).map_err(|what| damaged(&format!("`{file}`: {what}")))?;
    let rest = tail.read(&text[tail.offset as usize..], |_| ());
    Ok((tail, rest))
}

/// Makes a new log.
fn create(storage: &dyn Storage, settings: &Settings, key: &SigningKey, writer: &str) -> Result<Tail, AuditError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(io::Error::other).doing("made")?;
    let log: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = Genesis { format: FORMAT.to_owned(), public_key: key.public(), every: settings.every };
    let draft = own_draft(writer, Kind::Genesis, None, &body);
    let mut line = Vec::new();
    draft.write(&mut line, &log, 1, 0, &Hash::ZERO);
    place(storage, &segment_file(1), &line)?;
    Tail::begin(1, &line).map_err(|what| damaged(&what))
}

/// What a genesis record says about the format.
pub(crate) const FORMAT: &str = "amplifier-audit/1";

fn own_draft(writer: &str, kind: Kind, session: Option<&str>, body: &impl Serialize) -> Draft {
    let mut text = Vec::new();
    write_json(&mut text, body);
    let at = SystemTime::now();
    Draft::new(Fields { at, writer, session, turn: None, event: None, kind, digest: None }, text, usize::MAX)
}

/// Puts a file in its place, whole and safe.
fn place(storage: &dyn Storage, file: &str, text: &[u8]) -> Result<(), AuditError> {
    let temporary = format!("{file}.tmp");
    (|| {
        storage.remove(&temporary)?;
        write_all(storage, &temporary, text)?;
        storage.sync(&temporary)?;
        storage.rename(&temporary, file)?;
        storage.sync_folder("")
    })()
    .doing("written")
}

fn write_all(storage: &dyn Storage, file: &str, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match storage.append(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
