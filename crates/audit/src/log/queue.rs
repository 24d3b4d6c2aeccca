//! The queue between the log's handles and its writer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use amplifier_core::{AuditRecord, Receipt};
use serde::Serialize;

use super::LogStatus;
use super::sync_spin::SyncSpin;
use crate::appender::{AppendEntry, Counts};
use crate::error::AuditError;
use crate::keys::SigningKey;
use crate::record::{Kind, PendingRecord, RecordHeader, write_json};
use crate::redact::Redaction;
use crate::{Durability, Hash};

const MOST_WAITING: usize = 256 << 20;
/// A queue of this size, in bytes, is written at once.
pub(super) const MUCH_WAITING: usize = 256 << 10;

pub(super) struct LogState {
    /// The process with the writing thread; a forked process has none.
    pub(super) process: u32,
    pub(super) durability: Durability,
    pub(super) writer: String,
    pub(super) redaction: Redaction,
    // A std lock: held for a copy. It changes with a rotation.
    pub(super) redaction_key: Mutex<[u8; 32]>,
    pub(super) blob_above: usize,
    // A std lock: nothing is written while it is held.
    pub(super) queue: Mutex<Queue>,
    pub(super) arrived: Condvar,
    /// A copy of the queue's `waiters`, readable without its lock: a hint.
    pub(super) waiting: AtomicUsize,
    pub(super) sync_spin: SyncSpin,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) jobs: Vec<Job>,
    pub(super) bytes: usize,
    /// The number of jobs with a waiting caller.
    pub(super) waiters: usize,
    pub(super) wakes: WakeCondition,
    pub(super) next: u64,
    /// Every lost record has a smaller number.
    pub(super) lost_below: u64,
    pub(super) failure: Option<String>,
    /// Records that were refused since the failure.
    pub(super) refused: Counts,
    pub(super) status: LogStatus,
    pub(super) is_closed: bool,
}

/// The condition that wakes the writer. Waking a thread takes longer than taking a record, so it is avoided.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum WakeCondition {
    /// None: the writer is awake, or was woken already.
    #[default]
    Nothing,
    /// Any job.
    Job,
    /// A waiting caller, or a large queue.
    Waiter,
}

pub(super) type Done = Box<dyn FnOnce(Result<(), AuditError>) + Send>;

pub(super) enum Job {
    Append(AppendEntry),
    /// Makes all earlier records safe.
    Flush(Receipt, Done),
    /// Signs a checkpoint, and makes all records since the receipt safe.
    Checkpoint(Receipt, Done),
    RotateKey(SigningKey, Done),
    Retain(usize, Done),
    Erase(Hash, Done),
}

impl LogState {
    /// Returns `true` in a process that was forked from the writing one.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_all(&self, queue: &mut Queue) -> Vec<Job> {
        queue.bytes = 0;
        queue.waiters = 0;
        self.waiting.store(0, Ordering::Relaxed);
        std::mem::take(&mut queue.jobs)
    }

    pub(super) fn spin(&self, until: Instant) {
        while self.waiting.load(Ordering::Relaxed) == 0 && Instant::now() < until {
            std::thread::yield_now();
        }
    }

    /// Waits until `until` for new jobs and takes them. `taken` becomes the number of the next record. Returns `false` without new jobs, or if
    /// one of them is a command, which must be the first of a batch.
    pub(super) fn gather(
        &self,
        until: Instant,
        entries: &mut Vec<AppendEntry>,
        flushes: &mut Vec<(Receipt, Done)>,
        taken: &mut u64,
    ) -> bool {
        self.spin(until);
        let mut queue = self.lock();
        if queue.waiters == 0 || !queue.jobs.iter().all(|job| matches!(job, Job::Append(_) | Job::Flush(..))) {
            return false;
        }
        *taken = queue.next;
        let jobs = self.take_all(&mut queue);
        drop(queue);
        for job in jobs {
            match job {
                Job::Append(entry) => entries.push(entry),
                Job::Flush(since, done) => flushes.push((since, done)),
                _ => {}
            }
        }
        true
    }

    pub(super) fn push_record(&self, draft: PendingRecord) -> Result<Receipt, AuditError> {
        let bytes = draft.size();
        self.push(Job::Append(AppendEntry::Record(draft)), bytes)
    }

    pub(super) fn push(&self, job: Job, bytes: usize) -> Result<Receipt, AuditError> {
        // Before locking: a lock that was held during the fork is never released.
        if self.is_forked() {
            return Err(AuditError::Forked);
        }
        let mut queue = self.lock();
        if queue.is_closed {
            return Err(AuditError::Closed);
        }
        let is_record = matches!(job, Job::Append(_));
        let refused = match (&queue.failure, queue.bytes) {
            _ if !is_record => None,
            (Some(why), _) => Some(AuditError::Lost { why: why.clone() }),
            (None, waiting) if waiting + bytes > MOST_WAITING => Some(AuditError::Overloaded { waiting }),
            _ => None,
        };
        if let (Some(error), Job::Append(entry)) = (refused, &job) {
            *queue.refused.entry(entry.kind()).or_default() += 1;
            return Err(error);
        }
        let receipt = Receipt(queue.next);
        queue.next += u64::from(is_record);
        queue.bytes += bytes;
        if !is_record {
            queue.waiters += 1;
            self.waiting.store(queue.waiters, Ordering::Relaxed);
        }
        queue.jobs.push(job);
        let wakes = match queue.wakes {
            WakeCondition::Nothing => false,
            WakeCondition::Job => true,
            WakeCondition::Waiter => queue.waiters > 0 || queue.bytes >= MUCH_WAITING,
        };
        if wakes {
            queue.wakes = WakeCondition::Nothing;
            drop(queue);
            self.arrived.notify_one();
        }
        Ok(receipt)
    }

    pub(super) fn draft(&self, record: &AuditRecord) -> PendingRecord {
        let AuditRecord { at, session, turn, event, entry } = record;
        let fields = RecordHeader {
            at: *at,
            writer: &self.writer,
            session: session.as_deref(),
            turn: Some(*turn),
            event: Some(event.as_str()),
            kind: Kind::from(entry),
            digest: entry.digest().map(|digest| digest.to_string()),
        };
        let mut body = Vec::with_capacity(512);
        write_json(&mut body, entry);
        self.redacted(fields, body)
    }

    pub(super) fn redacted_text(&self, text: &str) -> String {
        let mut value = serde_json::Value::from(text);
        let key = *self.redaction_key.lock().unwrap_or_else(PoisonError::into_inner);
        self.redaction.apply(&key, &mut value);
        value.as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn redacted(&self, fields: RecordHeader<'_>, mut body: Vec<u8>) -> PendingRecord {
        if self.redaction.could_match(&body) {
            match serde_json::from_slice(&body) {
                Ok(mut value) => {
                    let key = *self.redaction_key.lock().unwrap_or_else(PoisonError::into_inner);
                    self.redaction.apply(&key, &mut value);
                    body.clear();
                    write_json(&mut body, &value);
                }
                // Nested too deeply to be searched, so the body is not stored.
                Err(_) => {
                    let bytes = body.len();
                    body.clear();
                    write_json(&mut body, &Withheld { withheld: "too deep to be searched for secrets", bytes });
                }
            }
        }
        PendingRecord::new(fields, body, self.blob_above)
    }
}

#[derive(Serialize)]
struct Withheld {
    withheld: &'static str,
    bytes: usize,
}

impl Queue {
    pub(super) fn lost_since(&self, since: Receipt) -> Result<(), AuditError> {
        if self.lost_below > since.0 {
            let why = self.failure.clone().unwrap_or_else(|| "lost in a failure; the log works again".to_owned());
            return Err(AuditError::Lost { why });
        }
        Ok(())
    }
}

impl Job {
    pub(super) fn refuse(self, why: String) {
        match self {
            Self::Append(_) => {}
            Self::Flush(_, done)
            | Self::Checkpoint(_, done)
            | Self::RotateKey(_, done)
            | Self::Retain(_, done)
            | Self::Erase(_, done) => done(Err(AuditError::Lost { why })),
        }
    }
}
