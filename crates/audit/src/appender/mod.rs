//! Appends to a log: after a look at what others appended, in one piece, and never twice at one place.

mod disk;
mod lines;
mod open;
mod recovery;
mod rotation;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

pub(crate) use self::open::FORMAT;
use crate::Durability;
use crate::error::{AuditError, StorageContext};
use crate::keys::SigningKey;
use crate::note::{Checkpoint, Note, retention_text};
use crate::record::{Kind, PendingRecord};
use crate::request::Conversations;
use crate::retention::{self, LogChange};
use crate::storage::Storage;
use crate::tail::{Tail, segment_file};

const CHECKPOINTS: &str = "checkpoints";

/// How many records there were of each kind.
pub(crate) type Counts = BTreeMap<Kind, u64>;

/// Something to append.
pub(crate) enum AppendEntry {
    Record(PendingRecord),
    /// The end of a session; what happened in it is counted when its turn comes.
    Seal {
        session: String,
        reason: String,
    },
}

impl AppendEntry {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Record(draft) => draft.kind,
            Self::Seal { .. } => Kind::Seal,
        }
    }
}

pub(crate) struct AppenderSettings {
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
pub(crate) struct SignedCheckpoint {
    pub(crate) size: u64,
    pub(crate) note: String,
}

pub(crate) struct Appender {
    storage: Arc<dyn Storage>,
    settings: AppenderSettings,
    key: SigningKey,
    writer: String,
    tail: Tail,
    /// Lines that are made and not written. `tail` is ahead of the file by these.
    lines: Vec<u8>,
    /// The length of the last line, with its line feed.
    last_line: u64,
    /// Requests to models that the next ones may continue. Only what this writer wrote, and nobody has taken back.
    conversations: Conversations,
    /// The tail at the last sync, and what this writer wrote since.
    safe: Tail,
    since_safe: Counts,
    /// What was lost and is not yet told by a gap.
    lost: Counts,
    /// What this writer wrote for each session since it last sealed it.
    sessions: HashMap<String, Counts>,
    /// The newest checkpoint that was signed.
    newest: Option<SignedCheckpoint>,
    /// When a checkpoint was last kept beside the log.
    kept_beside: Option<Instant>,
    /// The newest checkpoint that is kept beside the log.
    outbox: Option<SignedCheckpoint>,
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
    pub(crate) fn take_checkpoint(&mut self) -> Option<SignedCheckpoint> {
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
        entries: &mut Vec<AppendEntry>,
        mut more: impl FnMut(&mut Vec<AppendEntry>),
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
        plan: impl FnOnce(&dyn Storage, &Tail) -> Result<Option<LogChange>, AuditError>,
    ) -> Result<(), AuditError> {
        let mut result = Ok(());
        self.locked(|log| {
            match plan(&*log.storage, &log.tail) {
                Ok(Some(mut change)) => {
                    if log.tail.uncovered >= log.tail.every {
                        log.put_checkpoint();
                    }
                    if let LogChange::Retention { before, note, .. } = &mut change {
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
    pub(crate) fn record_lost(&mut self, why: &str) -> Result<(), AuditError> {
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
}

fn add(counts: &mut Counts, more: impl IntoIterator<Item = (Kind, u64)>) {
    more.into_iter().for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
}

fn damaged(what: &str) -> AuditError {
    AuditError::Damaged { what: what.to_owned() }
}
