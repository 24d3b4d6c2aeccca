//! How a log is kept.

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
use crate::storage::{Folder, Storage, absolute_path};
use crate::tail::{EVERY, segment_number};

words! {
    /// When a record counts as kept.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Durability("durability") {
        /// As soon as it was taken. A killed process loses what was taken in the last milliseconds; a loss of power, what was taken
        /// in the last second.
        Async = "async",
        /// When it survives a loss of power. All who wait at the same time share one sync.
        #[default]
        Group = "group",
        /// The same, with a sync for each record: when others read along and must not see a record before it is safe.
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
}

enum Key {
    File(PathBuf),
    Given(SigningKey),
}

impl Log {
    /// A log in a folder, signed with the key in a file. Both are made if they are not there. Relative paths are those of the folder that is
    /// current now: it is the same log when the process changes its folder.
    ///
    /// Keep the key where whoever can write to the log cannot read it, or hand checkpoints to an
    /// [`anchor`](LogOptions::anchor): who has the key can rewrite what is not anchored.
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

    /// A log that is kept elsewhere than in a folder.
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
        }
    }

    /// When a record counts as kept.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Begins a new segment when one has reached this size; 64 MiB if not set.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Signs a checkpoint after so many records at the latest, from 2 to 4096; 256 if not set. Fixed when the log is made.
    pub fn checkpoint_every(mut self, records: u64) -> Self {
        self.every = records.clamp(*EVERY.start(), *EVERY.end());
        self
    }

    /// Signs a checkpoint so long after a record that none covers; a second if not set.
    pub fn checkpoint_after(mut self, time: Duration) -> Self {
        self.checkpoint_after = time;
        self
    }

    /// Keeps bodies larger than this as blobs, which can be erased; 16 KiB if not set.
    pub fn blob_above(mut self, bytes: usize) -> Self {
        self.blob_above = bytes;
        self
    }

    /// Replaces what these rules find; [`Redaction::standard`] if not set.
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Hands checkpoints to a second place. Can be called several times.
    pub fn anchor(mut self, anchor: impl Anchor) -> Self {
        self.anchors.push(Box::new(anchor));
        self
    }

    /// Opens the log. After a crash it is put in order first.
    ///
    /// # Errors
    /// If it cannot be read or written, if it is damaged beyond what a crash can do, or if the key is not its key.
    pub fn open(self) -> Result<Log, AuditError> {
        let (key, key_file) = match self.key {
            // A new key would not fit a log that is there.
            Key::File(file) if is_there(&*self.storage)? => (SigningKey::load(&file)?, Some(file)),
            Key::File(file) => (SigningKey::load_or_create(&file)?, Some(file)),
            Key::Given(key) => (key, None),
        };
        let Self { storage, durability, segment_bytes, every, checkpoint_after, .. } = self;
        // A key belongs to one log: else whoever removes a log gets a new one that looks as if nothing had ever been there.
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
        })?;
        if let Some(file) = belongs.filter(|_| !is_bound) {
            let log = format!("{}\n", log.status().log);
            write_atomic(&file, log.as_bytes(), files::Durability::Synced).doing("opened")?;
        }
        Ok(log)
    }
}

/// The file beside a key that says which log the key belongs to. Whoever can change it can keep that log from being opened.
pub fn binding_file(key_file: &Path) -> PathBuf {
    key_file.with_added_extension("log")
}

/// The log that a key belongs to, by the file beside the key.
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
