//! Settings of logs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::words;
use amplifier_process::files::{self, write_atomic};

use crate::anchor::Anchor;
use crate::appender::AppenderSettings;
use crate::error::{AuditError, StorageContext};
use crate::keys::SigningKey;
use crate::log::{Log, LogParts};
use crate::redact::Redaction;
use crate::retention::RetentionLimit;
use crate::storage::{Folder, Storage, absolute_path};
use crate::tail::{EVERY, segment_number};

words! {
    /// The moment from which a record counts as stored.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Durability("durability") {
        /// As soon as it is taken. A killed process loses the records of the last milliseconds; a loss of power, those of the last
        /// second.
        Async = "async",
        /// As soon as it survives a loss of power. All concurrent waiters share one sync.
        #[default]
        Group = "group",
        /// The same, with a sync for each record, so that concurrent readers see only safe records.
        Record = "record",
    }
}

/// Settings of a log: see [`Log::at`].
#[must_use = "call `open` to open the log"]
pub struct LogOptions {
    storage: Arc<dyn Storage>,
    key: Key,
    durability: Durability,
    segment_bytes: u64,
    every: u64,
    checkpoint_after: Duration,
    blob_above: usize,
    redaction: Redaction,
    anchors: Vec<Box<dyn Anchor>>,
    retention_limit: Option<RetentionLimit>,
}

enum Key {
    File(PathBuf),
    Given(SigningKey),
}

impl Log {
    /// Sets up a log in a folder, signed with the key in a file. Missing ones are created. Relative paths are resolved now, so that a later change
    /// of the current folder has no effect.
    ///
    /// Store the key where other writers of the log cannot read it, or hand checkpoints to an [`anchor`](LogOptions::anchor): the
    /// key is enough to rewrite all records that are not anchored.
    ///
    /// ```
    /// use amplifier_audit::{Log, Verifier};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (path, key) = (folder.path().join("audit"), folder.path().join("audit.key"));
    /// let log = Log::at(&path, &key).open()?;
    /// log.seal_blocking("session-1", "complete")?;
    /// log.close()?;
    ///
    /// assert!(Verifier::new().folder(&path)?.is_sound());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(folder: impl Into<PathBuf>, key_file: impl Into<PathBuf>) -> LogOptions {
        LogOptions::new(Arc::new(Folder::new(folder)), Key::File(absolute_path(key_file.into())))
    }

    /// Sets up a log in another storage than a folder.
    pub fn on(storage: Arc<dyn Storage>, key: SigningKey) -> LogOptions {
        LogOptions::new(storage, Key::Given(key))
    }
}

impl LogOptions {
    fn new(storage: Arc<dyn Storage>, key: Key) -> Self {
        Self {
            storage,
            key,
            durability: Durability::default(),
            segment_bytes: 64 << 20,
            every: 256,
            checkpoint_after: Duration::from_secs(1),
            blob_above: 16 << 10,
            redaction: Redaction::standard(),
            anchors: Vec::new(),
            retention_limit: None,
        }
    }

    /// Sets the durability.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the size after which a new segment begins; 64 MiB by default.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Sets the most records between checkpoints, from 2 to 4096; 256 by default. Fixed when the log is created.
    pub fn checkpoint_every(mut self, records: u64) -> Self {
        self.every = records.clamp(*EVERY.start(), *EVERY.end());
        self
    }

    /// Sets the longest time until a checkpoint covers a record; one second by default.
    pub fn checkpoint_after(mut self, time: Duration) -> Self {
        self.checkpoint_after = time;
        self
    }

    /// Sets the size above which bodies are stored as blobs, which can be erased; 16 KiB by default.
    pub fn blob_above(mut self, bytes: usize) -> Self {
        self.blob_above = bytes;
        self
    }

    /// Sets the redaction rules; [`Redaction::standard`] by default.
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Adds an anchor for checkpoints.
    pub fn anchor(mut self, anchor: impl Anchor) -> Self {
        self.anchors.push(Box::new(anchor));
        self
    }

    /// Limits [retention](Log::retain) to a number of records, from the first one on, for example to those that another machine has received.
    pub fn retention_limit(mut self, removable: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.retention_limit = Some(Arc::new(removable));
        self
    }

    /// Opens the log, after a recovery from a crash if needed.
    ///
    /// # Errors
    /// If the log cannot be read or written, is damaged beyond the effects of a crash, or has another key.
    pub fn open(self) -> Result<Log, AuditError> {
        let (key, key_file) = match self.key {
            // A new key would not fit an existing log.
            Key::File(file) if is_there(&*self.storage)? => (SigningKey::load(&file)?, Some(file)),
            Key::File(file) => (SigningKey::load_or_create(&file)?, Some(file)),
            Key::Given(key) => (key, None),
        };
        let Self { storage, durability, segment_bytes, every, checkpoint_after, .. } = self;
        // A key is bound to one log: otherwise an attacker who removes the log could replace it unnoticed by a new one.
        let belongs = key_file.as_deref().map(binding_file);
        let log = match &belongs {
            Some(file) => belongs_to(file).doing("opened")?,
            None => None,
        };
        let is_bound = log.is_some();
        let log = Log::start(LogParts {
            storage,
            settings: AppenderSettings { durability, segment_bytes, every, checkpoint_after, key_file, log },
            key,
            blob_above: self.blob_above,
            redaction: self.redaction,
            anchors: self.anchors,
            retention_limit: self.retention_limit,
        })?;
        if let Some(file) = belongs.filter(|_| !is_bound) {
            let log = format!("{}\n", log.status().log);
            write_atomic(&file, log.as_bytes(), files::Durability::Synced).doing("opened")?;
        }
        Ok(log)
    }
}

/// Returns the file beside a key with the id of the key's log. Write access to this file is enough to block the log from being opened.
pub fn binding_file(key_file: &Path) -> PathBuf {
    key_file.with_added_extension("log")
}

/// Reads the id of the key's log from the file beside the key.
fn belongs_to(file: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(log) => Ok(Some(log.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_there(storage: &dyn Storage) -> Result<bool, AuditError> {
    Ok(storage.list("").doing("read")?.iter().any(|file| segment_number(file).is_some()))
}
