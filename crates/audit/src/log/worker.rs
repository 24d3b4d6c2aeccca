//! The thread that writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use amplifier_core::Receipt;

use super::LogStatus;
use super::queue::{Done, Job, LogState, MUCH_WAITING, WakeCondition};
use crate::Durability;
use crate::anchor::{Anchor, AnchorWorkers};
use crate::appender::{AppendEntry, Appender};
use crate::error::AuditError;
use crate::retention::{self, RetentionLimit};
use crate::storage::Storage;
use crate::tail::Tail;

/// The longest delay of a record without a waiting caller, so that several share a write.
const LINGER: Duration = Duration::from_millis(5);
/// The same in a log that syncs: the records of an event come one by one, on a busy machine slowly, and their waiter comes last. All of them share its sync.
const LINGER_BEFORE_SYNC: Duration = Duration::from_millis(50);
/// The longest time that the writer spins for the waiters of the last batch. A single waiter whose sync takes longer gains nothing by it.
const AWAKE: Duration = Duration::from_micros(500);
/// The time limit of the anchors on closing.
const LAST_ANCHOR: Duration = Duration::from_secs(5);

pub(super) struct Worker {
    shared: Arc<LogState>,
    appender: Appender,
    anchor_workers: AnchorWorkers,
    checkpoint_after: Duration,
    dirty_since: Option<Instant>,
    taken: u64,
    /// The time of the last attempt to continue after a failure.
    failed_since: Option<Instant>,
    /// The number of waiters of the last batch, who may return soon.
    last_waiters: usize,
    retention_limit: Option<RetentionLimit>,
    limited_segments: usize,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<LogState>,
        appender: Appender,
        anchors: Vec<Box<dyn Anchor>>,
        checkpoint_after: Duration,
        retention_limit: Option<RetentionLimit>,
    ) -> Self {
        let anchor_workers = AnchorWorkers::start(anchors);
        let mut worker = Self {
            shared,
            appender,
            anchor_workers,
            checkpoint_after,
            dirty_since: None,
            taken: 0,
            failed_since: None,
            last_waiters: 0,
            retention_limit,
            limited_segments: 0,
        };
        worker.report();
        worker
    }

    pub(super) fn run(mut self) {
        while let Some(jobs) = self.next_batch() {
            let commit = catch_unwind(AssertUnwindSafe(|| self.commit(jobs)));
            if commit.is_err() {
                self.shared.lock().failure = Some("the writer failed".to_owned());
                break;
            }
        }
        self.finish();
        self.anchor_workers.close(LAST_ANCHOR);
        let mut queue = self.shared.lock();
        // The state of the last checkpoints is known only now.
        queue.status.anchors = self.anchor_workers.states();
        queue.is_closed = true;
        // The dropped channels notify the remaining waiters.
        queue.jobs.clear();
    }

    fn finish(&mut self) {
        let finished = catch_unwind(AssertUnwindSafe(|| {
            if self.failed().is_none() && self.appender.is_dirty() {
                let result = self.appender.checkpoint();
                self.taken = self.shared.lock().next;
                self.check(result);
                self.report();
            }
        }));
        // A panic here has already been printed.
        drop(finished);
    }

    /// Waits for jobs. Returns an empty batch when a checkpoint or a new attempt is due, and `None` when the log is closed and all jobs
    /// are done.
    fn next_batch(&mut self) -> Option<Vec<Job>> {
        let shared = self.shared.clone();
        let linger = if shared.durability == Durability::Async { LINGER } else { LINGER_BEFORE_SYNC };
        let mut queue = shared.lock();
        let mut arrived_at = None;
        loop {
            let is_empty = queue.jobs.is_empty();
            if is_empty && queue.is_closed {
                return None;
            }
            if queue.is_closed || queue.waiters > 0 || queue.bytes >= MUCH_WAITING {
                break;
            }
            let due = match is_empty {
                true => self.due(queue.failure.is_some()),
                // More records may arrive, and share the write.
                false => Some(linger.saturating_sub(arrived_at.get_or_insert_with(Instant::now).elapsed())),
            };
            if due == Some(Duration::ZERO) {
                break;
            }
            // An unflushed record has no waiter, and the writer wakes by its time limit, if it has one.
            queue.wakes = match due {
                None => WakeCondition::Job,
                Some(_) if is_empty && shared.durability == Durability::Async => WakeCondition::Job,
                Some(_) => WakeCondition::Waiter,
            };
            queue = match due {
                None => shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(due) => shared.arrived.wait_timeout(queue, due).unwrap_or_else(PoisonError::into_inner).0,
            };
            queue.wakes = WakeCondition::Nothing;
        }
        self.taken = queue.next;
        Some(shared.take_all(&mut queue))
    }

    /// Returns the time until the next checkpoint or attempt is due.
    fn due(&mut self, has_failed: bool) -> Option<Duration> {
        let since = match has_failed {
            // Attempts after a failure have the interval of checkpoints.
            true => *self.failed_since.get_or_insert_with(Instant::now),
            false => self.dirty_since?,
        };
        Some(self.checkpoint_after.saturating_sub(since.elapsed()))
    }

    fn commit(&mut self, jobs: Vec<Job>) {
        self.failed_since = None;
        let refused = std::mem::take(&mut self.shared.lock().refused);
        self.appender.add_lost(refused);
        if self.failed().is_some() {
            self.reopen();
        } else {
            let result = self.appender.record_lost("more was recorded than could be written");
            self.check(result);
        }
        if jobs.is_empty() && self.failed().is_none() {
            let result = self.appender.checkpoint();
            self.check(result);
        }
        let mut entries = Vec::with_capacity(jobs.len());
        let mut flushes = Vec::new();
        for job in jobs {
            match job {
                Job::Append(entry) => entries.push(entry),
                Job::Flush(since, done) => flushes.push((since, done)),
                other => {
                    self.append(&mut entries, &mut flushes);
                    entries.clear();
                    self.command(other);
                }
            }
        }
        self.keep(&mut entries, &mut flushes);
        // The last waiters are likely to return before a sleeping thread could wake, while the file is still locked.
        while self.last_waiters > 0 && self.failed().is_none() && !self.is_checkpoint_due() {
            self.keep(&mut entries, &mut flushes);
        }
        // A log that is never idle needs checkpoints, too.
        if self.failed().is_none() && self.is_checkpoint_due() {
            let result = self.appender.checkpoint();
            self.check(result);
        }
        self.report();
    }

    fn is_checkpoint_due(&self) -> bool {
        self.dirty_since.is_some_and(|since| since.elapsed() >= self.checkpoint_after)
    }

    /// Appends the entries, notifies the waiters, and only then drops the entries, which takes a moment.
    fn keep(&mut self, entries: &mut Vec<AppendEntry>, flushes: &mut Vec<(Receipt, Done)>) {
        self.append(entries, flushes);
        self.answer(flushes);
        entries.clear();
    }

    fn answer(&mut self, flushes: &mut Vec<(Receipt, Done)>) {
        let sync = self.appender.last_sync();
        let is_worth_spinning = flushes.len() > 1 || sync <= AWAKE;
        self.last_waiters = if is_worth_spinning { flushes.len() } else { 0 };
        self.report();
        let queue = self.shared.lock();
        let answers: Vec<_> = flushes.drain(..).map(|(since, done)| (queue.lost_since(since), done)).collect();
        drop(queue);
        self.shared.sync_spin.expect(answers.len(), sync, AWAKE);
        answers.into_iter().for_each(|(result, done)| done(result));
    }

    /// Appends the entries, and those that arrive meanwhile: all waiters share one sync.
    fn append(&mut self, entries: &mut Vec<AppendEntry>, flushes: &mut Vec<(Receipt, Done)>) {
        if entries.is_empty() && self.last_waiters == 0 {
            return;
        }
        let result = match self.failed() {
            None => {
                // The waiters of the last sync may return soon.
                let until = Instant::now() + self.appender.last_sync().min(AWAKE);
                let Self { shared, appender, taken, last_waiters, .. } = self;
                appender.append(entries, |entries| {
                    let known = entries.len();
                    while entries.len() == known
                        && flushes.len() < *last_waiters
                        && shared.gather(until, entries, flushes, taken)
                    {}
                })
            }
            Some(why) => {
                self.appender.add_lost(entries.iter().map(|entry| (entry.kind(), 1)));
                Err(AuditError::Lost { why })
            }
        };
        self.check(result);
    }

    fn command(&mut self, job: Job) {
        if let Some(why) = self.failed() {
            return job.refuse(why);
        }
        match job {
            Job::Append(_) | Job::Flush(..) => {}
            Job::Checkpoint(since, done) => {
                let result = self.appender.checkpoint();
                let told = result.as_ref().map_err(|error| AuditError::Lost { why: error.to_string() }).copied();
                self.check(result);
                // The status is updated before the caller continues.
                self.report();
                let lost = self.shared.lock().lost_since(since);
                done(told.and(lost));
            }
            Job::RotateKey(key, done) => {
                let result = self.appender.rotate_key(key);
                // Later records are redacted with the new key.
                self.report();
                done(result);
            }
            Job::Retain(keep, done) => {
                let removable = self.retention_limit.as_ref().map_or(u64::MAX, |limit| limit());
                let limited = &mut self.limited_segments;
                let plan = |storage: &dyn Storage, tail: &Tail| {
                    let plan = retention::plan(storage, keep, tail.segment, removable)?;
                    *limited = plan.limited;
                    Ok(plan.change)
                };
                let result = self.appender.change(plan);
                if self.limited_segments > 0 {
                    tracing::warn!(
                        segments = self.limited_segments,
                        "retention keeps old segments until they are received"
                    );
                }
                self.report();
                done(result);
            }
            Job::Erase(blob, done) => {
                let plan = |_: &dyn Storage, _: &Tail| Ok(Some(retention::erasure(&blob)));
                done(self.appender.change(plan));
            }
        }
        // After any failure, the next record must not follow unsafe lines.
        if self.appender.has_failed() {
            self.check(Err(AuditError::Lost { why: "a change of the log failed".to_owned() }));
        }
    }

    fn failed(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }

    /// After a failure, blocks new records until the log works again.
    fn check(&mut self, result: Result<(), AuditError>) {
        // The message about lost records is added later.
        let why = match result {
            Ok(()) => return,
            Err(AuditError::Lost { why }) => why,
            Err(error) => error.to_string(),
        };
        let mut queue = self.shared.lock();
        queue.lost_below = queue.lost_below.max(self.taken);
        let is_new = queue.failure.is_none();
        queue.failure = Some(why.clone());
        drop(queue);
        if is_new {
            tracing::error!(
                why,
                "the audit log failed; operations that need a record are denied until the log works again"
            );
            self.reopen();
        }
    }

    fn reopen(&mut self) {
        let why = self.failed().unwrap_or_default();
        match self.appender.reopen(&why) {
            Ok(()) => {
                self.shared.lock().failure = None;
                tracing::info!("the audit log works again");
            }
            Err(error) => self.shared.lock().failure = Some(error.to_string()),
        }
    }

    fn report(&mut self) {
        if let Some(signed) = self.appender.take_checkpoint() {
            self.anchor_workers.deliver(signed.size, &signed.note);
        }
        let status = LogStatus {
            log: self.appender.tail().log.clone(),
            size: self.appender.tail().size,
            failure: None,
            breach: self.appender.found_breach().map(str::to_owned),
            anchors: self.anchor_workers.states(),
            public_key: Some(self.appender.tail().key),
            limited_segments: self.limited_segments,
        };
        if let Some(key) = self.appender.take_new_key() {
            *self.shared.redaction_key.lock().unwrap_or_else(PoisonError::into_inner) = key.redaction_key();
        }
        self.shared.lock().status = status;
        self.dirty_since = match self.appender.is_dirty() {
            true => self.dirty_since.or_else(|| Some(Instant::now())),
            false => None,
        };
    }
}
