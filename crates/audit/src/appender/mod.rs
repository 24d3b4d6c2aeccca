//! Appends to a log: after reading the records of other writers, atomically, and never twice at one position.

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
use crate::model_request::Conversations;
use crate::note::{Checkpoint, Note, retention_text};
use crate::record::{Kind, PendingRecord};
use crate::retention::{self, LogChange};
use crate::storage::Storage;
use crate::tail::{Tail, segment_file};

const CHECKPOINTS: &str = "checkpoints";

pub(crate) type Counts = BTreeMap<Kind, u64>;

pub(crate) enum AppendEntry {
    Record(PendingRecord),
    /// The end of a session; its records are counted when the entry is written.
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
    /// The file of the key, for following a rotation by another process.
    pub(crate) key_file: Option<PathBuf>,
    /// The id of the log that the key is bound to, if it is.
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
    /// Unwritten lines. `tail` is ahead of the file by these.
    lines: Vec<u8>,
    last_line: u64,
    /// Model requests that the next ones may continue: those of this writer that were not taken back.
    conversations: Conversations,
    /// The tail at the last sync, and the number of records of this writer since.
    safe: Tail,
    since_safe: Counts,
    /// Lost records without a gap record so far.
    lost: Counts,
    /// Records of this writer for each session since its last seal.
    sessions: HashMap<String, Counts>,
    newest: Option<SignedCheckpoint>,
    /// The time of the last checkpoint beside the log.
    kept_beside: Option<Instant>,
    /// The newest checkpoint beside the log, for the anchors.
    outbox: Option<SignedCheckpoint>,
    is_synced: bool,
    last_sync: Duration,
    /// The tail before the first unsafe line of this writer.
    begins: Tail,
    others_since_safe: bool,
    breach: Option<String>,
    /// `true` after a failed sync: nothing since the last good one is safe.
    sync_failed: bool,
    has_failed: bool,
    /// The tail to which the file must still be cut after a failed batch.
    uncut: Option<Tail>,
    sealing: Vec<(String, Counts)>,
    is_new_key: bool,
}

impl Appender {
    pub(crate) fn found_breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    pub(crate) fn last_sync(&self) -> Duration {
        self.last_sync
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Returns the key, if it has changed since the last call.
    pub(crate) fn take_new_key(&mut self) -> Option<&SigningKey> {
        std::mem::take(&mut self.is_new_key).then_some(&self.key)
    }

    pub(crate) fn take_checkpoint(&mut self) -> Option<SignedCheckpoint> {
        self.outbox.take()
    }

    /// Returns `true` after a failure; the log must then be reopened before anything is appended.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns `true` if there are records that are not synced or not covered by a checkpoint.
    pub(crate) fn is_dirty(&self) -> bool {
        self.tail.uncovered > 1 || !self.is_synced || self.newest.is_some()
    }

    /// Appends all entries and those that `more` adds, with the log's durability; on failure none of them counts.
    pub(crate) fn append(
        &mut self,
        entries: &mut Vec<AppendEntry>,
        mut more: impl FnMut(&mut Vec<AppendEntry>),
    ) -> Result<(), AuditError> {
        let mut kept = 0;
        let result = self.storage.lock().doing("locked").and_then(|_lock| {
            // The lock is taken early for expected entries, but the file is read only just before it is written.
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

    /// Records a change of the log itself, and carries it out while no other process appends.
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
        // A failure here does not affect the appended records.
        result
    }

    /// Continues after a failure: in a new segment, with a record of the lost entries.
    pub(crate) fn reopen(&mut self, why: &str) -> Result<(), AuditError> {
        let _lock = self.storage.lock().doing("locked")?;
        self.cut_failed()?;
        self.catch_up()?;
        self.begins = self.tail.clone();
        let result = (|| {
            // The records before the new segment must be durable.
            self.storage.sync(&segment_file(self.tail.segment)).doing("synced")?;
            self.begin_segment()?;
            self.put_gap(why)
        })();
        match result {
            Ok(()) => {
                self.has_failed = false;
                self.publish_checkpoint();
            }
            Err(_) => self.take_back(),
        }
        result
    }

    /// Counts entries that were refused before they got here.
    pub(crate) fn add_lost(&mut self, refused: impl IntoIterator<Item = (Kind, u64)>) {
        add(&mut self.lost, refused);
    }

    /// Records the number of lost entries, if there are any.
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

    /// Locks the log, reads the records of other processes, and appends. After a failure, takes everything back.
    fn locked(&mut self, append: impl FnOnce(&mut Self) -> Result<(), AuditError>) -> Result<(), AuditError> {
        let _lock = self.storage.lock().doing("locked")?;
        self.alone(append)
    }

    fn alone(&mut self, append: impl FnOnce(&mut Self) -> Result<(), AuditError>) -> Result<(), AuditError> {
        self.catch_up()?;
        self.begins = self.tail.clone();
        let result = append(self);
        match result {
            Ok(()) => {
                self.sealing.clear();
                self.publish_checkpoint();
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
