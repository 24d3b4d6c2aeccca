//! The handle of a log: the kernel's audit port.

mod queue;
mod sync_spin;
mod worker;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use amplifier_core::{AuditLog, AuditRecord, PortError, Receipt};
use futures::channel::oneshot;
use serde::Serialize;

use self::queue::{Done, Job, LogState};
use self::sync_spin::SyncSpin;
use self::worker::Worker;
use crate::anchor::{Anchor, AnchorState};
use crate::appender::{AppendEntry, Appender, AppenderSettings};
use crate::error::AuditError;
use crate::keys::{PublicKey, SigningKey};
use crate::record::{Kind, RecordHeader, write_json};
use crate::redact::Redaction;
use crate::retention::RetentionLimit;
use crate::storage::Storage;
use crate::{Durability, Hash};

/// An audit log that is open for writing. A handle: clones share the same log.
///
/// Dropping the last handle closes the log: it writes all taken records and signs a checkpoint. This blocks for up to five seconds
/// if anchors do not respond; call [`close`](Log::close) on another thread to avoid that.
#[derive(Clone)]
pub struct Log {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<LogState>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The status of a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStatus {
    /// The log's id.
    pub log: String,
    /// The number of records.
    pub size: u64,
    /// The failure that blocks writing, if there is one.
    pub failure: Option<String>,
    /// The last breach that this writer found: the log was tampered with, or its disk is broken.
    pub breach: Option<String>,
    /// The states of the anchors.
    pub anchors: Vec<AnchorState>,
    /// The active public key.
    pub public_key: Option<PublicKey>,
    /// The number of segments that the last retention would have removed without the
    /// [limit](crate::LogOptions::retention_limit).
    pub limited_segments: usize,
}

pub(crate) struct LogParts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) settings: AppenderSettings,
    pub(crate) key: SigningKey,
    pub(crate) blob_above: usize,
    pub(crate) redaction: Redaction,
    pub(crate) anchors: Vec<Box<dyn Anchor>>,
    pub(crate) retention_limit: Option<RetentionLimit>,
}

impl Log {
    pub(crate) fn start(parts: LogParts) -> Result<Self, AuditError> {
        let LogParts { storage, settings, key, blob_above, redaction, anchors, retention_limit } = parts;
        let writer = writer_name()?;
        let redaction_key = Mutex::new(key.redaction_key());
        let AppenderSettings { durability, checkpoint_after, .. } = settings;
        let appender = Appender::open(storage, settings, key, writer.clone())?;
        let queue = Mutex::default();
        let arrived = Condvar::new();
        let waiting = AtomicUsize::new(0);
        let sync_spin = SyncSpin::default();
        let shared = Arc::new(LogState {
            process: std::process::id(),
            durability,
            writer,
            redaction,
            redaction_key,
            blob_above,
            queue,
            arrived,
            waiting,
            sync_spin,
        });
        let worker = Worker::new(shared.clone(), appender, anchors, checkpoint_after, retention_limit);
        let thread = std::thread::Builder::new().name("audit-log".to_owned());
        let thread =
            thread.spawn(move || worker.run()).map_err(|error| AuditError::Storage { doing: "opened", error })?;
        Ok(Self { handle: Arc::new(Handle { shared, writer: Mutex::new(Some(thread)) }) })
    }

    /// Takes a record, as [`AuditLog::record`] does.
    ///
    /// # Errors
    /// If the log cannot be written to, is closed, or does not keep up.
    pub fn take(&self, record: &AuditRecord) -> Result<Receipt, AuditError> {
        let shared = &*self.handle.shared;
        shared.push_record(shared.draft(record))
    }

    /// Records a change of the policy, as `change` in the body.
    ///
    /// # Errors
    /// As [`take`](Log::take), or if the change cannot be written as JSON.
    pub fn policy_change(&self, change: &impl Serialize) -> Result<Receipt, AuditError> {
        let shared = &*self.handle.shared;
        let change = serde_json::to_value(change).map_err(AuditError::NoJson)?;
        let mut text = Vec::new();
        write_json(&mut text, &serde_json::json!({ "change": change }));
        let fields = RecordHeader {
            at: std::time::SystemTime::now(),
            writer: &shared.writer,
            session: None,
            turn: None,
            event: None,
            kind: Kind::PolicyChange,
            digest: None,
        };
        shared.push_record(shared.redacted(fields, text))
    }

    /// Seals a session: records its end, the reason and the number of its records. Returns when the seal is signed and safe, at every durability.
    ///
    /// # Errors
    /// If the seal could not be stored.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: the session is sealed.
    pub async fn seal(&self, session: &str, reason: &str) -> Result<(), AuditError> {
        self.answered(|done| self.push_seal(session, reason, done)).await
    }

    /// Does the same, and blocks.
    ///
    /// # Errors
    /// If the seal could not be stored.
    pub fn seal_blocking(&self, session: &str, reason: &str) -> Result<(), AuditError> {
        self.wait(|done| self.push_seal(session, reason, done))
    }

    fn push_seal(&self, session: &str, reason: &str, done: Done) -> Result<(), AuditError> {
        let shared = &*self.handle.shared;
        let reason = shared.redacted_text(reason);
        let receipt = shared.push(Job::Append(AppendEntry::Seal { session: session.to_owned(), reason }), 0)?;
        self.push(Job::Checkpoint(receipt, done))
    }

    fn push(&self, job: Job) -> Result<(), AuditError> {
        self.handle.shared.push(job, 0).map(|_| ())
    }

    /// Blocks until every record taken so far is as safe as the log promises.
    ///
    /// # Errors
    /// If the receipt's record or a later one was lost.
    pub fn flush_blocking(&self, since: Receipt) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Flush(since, done)))
    }

    /// Signs a checkpoint of all records taken so far, and makes it safe.
    ///
    /// # Errors
    /// If the checkpoint cannot be signed or stored.
    pub fn checkpoint(&self) -> Result<(), AuditError> {
        if self.handle.shared.is_forked() {
            return Err(AuditError::Forked);
        }
        let receipt = Receipt(self.handle.shared.lock().next);
        self.wait(|done| self.push(Job::Checkpoint(receipt, done)))
    }

    /// Activates another key: the old key signs it, and it signs all existing records. The old key is removed from the key file. Other processes with
    /// the log open follow.
    ///
    /// # Errors
    /// If the key cannot be rotated.
    pub fn rotate_key(&self, new: SigningKey) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::RotateKey(new, done)))
    }

    /// Removes the oldest segments, so that `segments` are left; their checkpoints stay. A segment with an unsealed session stays, with all later
    /// ones. The status has the number of segments that stay because of the [limit](crate::LogOptions::retention_limit).
    ///
    /// # Errors
    /// If the segments cannot be removed.
    pub fn retain(&self, segments: usize) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Retain(segments, done)))
    }

    /// Erases the content of a large body permanently. Its hash stays in the record, so the log stays sound.
    ///
    /// # Errors
    /// If the body cannot be erased.
    pub fn erase(&self, blob: Hash) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Erase(blob, done)))
    }

    /// Returns the status of the log.
    pub fn status(&self) -> LogStatus {
        let queue = self.handle.shared.lock();
        LogStatus { failure: queue.failure.clone(), ..queue.status.clone() }
    }

    /// Returns the name of the writer in the records of this handle and its clones.
    pub fn writer(&self) -> &str {
        &self.handle.shared.writer
    }

    /// Writes all taken records, signs a checkpoint, and closes the log, also for its clones. Has no effect in a forked process.
    ///
    /// # Errors
    /// If a record could not be stored.
    pub fn close(self) -> Result<(), AuditError> {
        if self.handle.shared.is_forked() {
            return Ok(());
        }
        let result = self.checkpoint();
        self.handle.stop();
        result
    }

    fn wait(&self, push: impl FnOnce(Done) -> Result<(), AuditError>) -> Result<(), AuditError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        push(Box::new(move |result| _ = sender.send(result)))?;
        receiver.recv().unwrap_or(Err(AuditError::Closed))
    }

    async fn answered(&self, push: impl FnOnce(Done) -> Result<(), AuditError>) -> Result<(), AuditError> {
        let (sender, receiver) = oneshot::channel();
        push(Box::new(move |result| _ = sender.send(result)))?;
        self.handle.shared.sync_spin.wait(receiver).await.unwrap_or(Err(AuditError::Closed))
    }
}

impl AuditLog for Log {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        Ok(self.take(&record)?)
    }

    /// # Cancel safety
    /// Dropping the future has no effect: the records are written.
    async fn flush(&self, since: Receipt) -> Result<(), PortError> {
        let shared = &*self.handle.shared;
        if shared.durability == Durability::Async {
            return Ok(shared.lock().lost_since(since)?);
        }
        Ok(self.answered(|done| self.push(Job::Flush(since, done))).await?)
    }
}

impl Handle {
    fn stop(&self) {
        if self.shared.is_forked() {
            // The writing thread does not exist in this process.
            return std::mem::forget(self.writer.try_lock().ok().and_then(|mut writer| writer.take()));
        }
        self.shared.lock().is_closed = true;
        self.shared.arrived.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The writer catches its panics.
        let _ = writer.map(JoinHandle::join);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("writer", &self.writer()).finish_non_exhaustive()
    }
}

/// Creates a name from the process id and eight random digits, because process ids are reused.
fn writer_name() -> Result<String, AuditError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| AuditError::Storage { doing: "opened", error: std::io::Error::other(error) })?;
    Ok(format!("{}-{:08x}", std::process::id(), u32::from_be_bytes(random)))
}
