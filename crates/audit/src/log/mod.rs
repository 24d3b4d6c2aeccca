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
use crate::storage::Storage;
use crate::{Durability, Hash};

/// An audit log that is open for writing. A handle: clones share the same log.
///
/// It is closed when the last handle is dropped: what was taken is written, and a checkpoint signed. That blocks, with anchors
/// that do not answer for up to five seconds; [`close`](Log::close) it elsewhere if that matters.
#[derive(Clone)]
pub struct Log {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<LogState>,
    writer: Mutex<Option<JoinHandle<()>>>,
}
/// How a log is doing.
#[derive(Clone, Debug, Default)]
pub struct LogStatus {
    /// The log's id.
    pub log: String,
    /// How many records there are.
    pub size: u64,
    /// Why it cannot be written to at the moment.
    pub failure: Option<String>,
    /// What this writer found that nobody should have been able to write: the log was tampered with, or its disk is broken.
    pub breach: Option<String>,
    /// What its anchors have.
    pub anchors: Vec<AnchorState>,
    /// The public key in force.
    pub public_key: Option<PublicKey>,
}

/// What a log is made of.
pub(crate) struct LogParts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) settings: AppenderSettings,
    pub(crate) key: SigningKey,
    pub(crate) blob_above: usize,
    pub(crate) redaction: Redaction,
    pub(crate) anchors: Vec<Box<dyn Anchor>>,
}

impl Log {
    pub(crate) fn start(parts: LogParts) -> Result<Self, AuditError> {
        let LogParts { storage, settings, key, blob_above, redaction, anchors } = parts;
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
        let worker = Worker::new(shared.clone(), appender, anchors, checkpoint_after);
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

    /// Records that the rules changed: what, in the words of whoever changed them. It stands in the body as `change`.
    ///
    /// # Errors
    /// As [`take`](Log::take), and if it cannot be written as JSON.
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

    /// Seals a session: counts what happened in it and says why it ended. Returns when that is signed and safe, at every level.
    ///
    /// # Errors
    /// If it could not be kept.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the session is sealed all the same.
    pub async fn seal(&self, session: &str, reason: &str) -> Result<(), AuditError> {
        self.answered(|done| self.push_seal(session, reason, done)).await
    }

    /// The same for code that cannot await; it blocks.
    ///
    /// # Errors
    /// If it could not be kept.
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

    /// Returns when every record taken so far is as safe as the log promises. For code that cannot await; it blocks.
    ///
    /// # Errors
    /// If a record could not be kept that was taken since that receipt was given.
    pub fn flush_blocking(&self, since: Receipt) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Flush(since, done)))
    }

    /// Signs a checkpoint of all that was taken so far, and makes it safe.
    ///
    /// # Errors
    /// If that fails.
    pub fn checkpoint(&self) -> Result<(), AuditError> {
        if self.handle.shared.is_forked() {
            return Err(AuditError::Forked);
        }
        let receipt = Receipt(self.handle.shared.lock().next);
        self.wait(|done| self.push(Job::Checkpoint(receipt, done)))
    }

    /// Puts another key in force: the old one signs for it, and it signs for all that is there. Nothing of the old one stays in the key's file.
    /// Others that have the log open follow.
    ///
    /// # Errors
    /// If that fails.
    pub fn rotate_key(&self, new: SigningKey) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::RotateKey(new, done)))
    }

    /// Removes the oldest segments, so that so many are left; their checkpoints stay. Segments with a session that is not sealed are
    /// kept, and all after them.
    ///
    /// # Errors
    /// If that fails.
    pub fn retain(&self, segments: usize) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Retain(segments, done)))
    }

    /// Erases the content of a large body for good. Its hash stays in the record, so the log stays sound.
    ///
    /// # Errors
    /// If that fails.
    pub fn erase(&self, blob: Hash) -> Result<(), AuditError> {
        self.wait(|done| self.push(Job::Erase(blob, done)))
    }

    /// How the log is doing.
    pub fn status(&self) -> LogStatus {
        let queue = self.handle.shared.lock();
        LogStatus { failure: queue.failure.clone(), ..queue.status.clone() }
    }

    /// Who writes: what stands in the `writer` of every record of this handle and its clones.
    pub fn writer(&self) -> &str {
        &self.handle.shared.writer
    }

    /// Writes what was taken, signs a checkpoint, and closes the log, also for its clones. After a fork, the copy of it has nothing to close.
    ///
    /// # Errors
    /// If something could not be kept.
    pub fn close(self) -> Result<(), AuditError> {
        if self.handle.shared.is_forked() {
            return Ok(());
        }
        let result = self.checkpoint();
        self.handle.stop();
        result
    }

    /// Blocks until what was pushed is done.
    fn wait(&self, push: impl FnOnce(Done) -> Result<(), AuditError>) -> Result<(), AuditError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        push(Box::new(move |result| _ = sender.send(result)))?;
        receiver.recv().unwrap_or(Err(AuditError::Closed))
    }

    /// Waits until what was pushed is done.
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
    /// Dropping the future changes nothing: the records are written all the same.
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
            // There is no such thread here to be waited for.
            return std::mem::forget(self.writer.try_lock().ok().and_then(|mut writer| writer.take()));
        }
        self.shared.lock().is_closed = true;
        self.shared.arrived.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The writer keeps its panics inside.
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

/// Process id and eight random digits: process ids come again.
fn writer_name() -> Result<String, AuditError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| AuditError::Storage { doing: "opened", error: std::io::Error::other(error) })?;
    Ok(format!("{}-{:08x}", std::process::id(), u32::from_be_bytes(random)))
}
