//! What is recorded, as it is recorded.
//!
//! The audit log is the event store. One thread reads it as it grows (`follow.rs`) and keeps what can be known without reading it again
//! (`index.rs`, `hooks.rs`); another one verifies it (`proven.rs`). Whoever asks for records reads them from the log (`query.rs`,
//! `timeline.rs`), so that nobody who is slow holds anything for others.

mod decisions;
mod follow;
mod hooks;
mod index;
mod query;
mod timeline;
mod verification;
mod views;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use amplifier_audit::prometheus::{MetricKind, MetricsText};
use amplifier_audit::{ApprovalDecisionCounts, AuditError, Folder, Proof, PublicKey, RecordFilter, RecordSource};
use amplifier_link::DecidedApproval;
use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub(crate) use self::decisions::PastDecision;
use self::index::Index;
use self::verification::{TrustAnchors, VerifyRequest};
pub use self::views::{Page, SessionFacts, Timeline, TimelineItem};
use crate::limits::FairSemaphore;
use crate::wire::{AuditStatus, HookStats};

/// The audit log, as it grows. A handle: clones share the same log.
///
/// Two threads of its own follow and verify the log until the last handle is dropped.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<FeedState>,
    _stop: Arc<StopGuard>,
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// What was to be read is not as it was recorded, or not there.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A record has a body that is too deep to be read again.
    #[error("a record cannot be read again: {0}")]
    Json(serde_json::Error),
    /// The threads that follow the log cannot be started, or have ended.
    #[error("the audit log cannot be followed: {0}")]
    Thread(io::Error),
}

/// Stops the threads when the last handle goes.
struct StopGuard(Arc<FeedState>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.wake();
    }
}

struct FeedState {
    source: Arc<dyn RecordSource>,
    // A std lock: nothing awaits and nothing but a large body is read while it is held.
    index: RwLock<Index>,
    changed: watch::Sender<u64>,
    /// Whether the log was read to its end once.
    ready: watch::Sender<bool>,
    status: watch::Sender<Arc<AuditStatus>>,
    /// Those who wait for a verification.
    verify_requests: Mutex<Vec<VerifyRequest>>,
    problem: Mutex<Option<String>>,
    stopped: AtomicBool,
    /// Wakes the threads.
    sleeping: Mutex<()>,
    awake: Condvar,
    watching: AtomicUsize,
    /// The newest messages of the stream, for others who watch the same.
    frames: Mutex<VecDeque<(RecordFilter, u64, Frame)>>,
    searches: FairSemaphore,
}

/// How many look for the question of a late answer at a time. It may be anywhere in the log, and whoever may answer can name any.
///
/// These turns are not those of readers: whoever only looks at the log, which takes less of a role, could keep late answers from being
/// recorded by reading a lot. An answer to a question that is open waits for no turn, because nothing is read for it.
const SEARCHES: usize = 4;

/// So many messages are held for others, and so many bytes of them.
const FRAMES: usize = 64;
const FRAME_BYTES: usize = 8 << 20;

/// A message of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) text: Utf8Bytes,
    /// How many records are in it.
    pub(crate) count: usize,
    /// Where to go on.
    pub(crate) cursor: u64,
}

impl FeedState {
    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn set_problem(&self, error: Option<&AuditError>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = error.map(ToString::to_string);
    }

    /// Waits so long, or until it is time to stop.
    fn sleep(&self, time: Duration) {
        let sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.awake.wait_timeout_while(sleeping, time, |()| !self.is_stopped());
    }

    /// The same, or until someone asks for a verification.
    fn sleep_until_requested(&self, time: Duration) {
        let sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |_: &mut ()| {
            !self.is_stopped() && self.verify_requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        };
        let _ = self.awake.wait_timeout_while(sleeping, time, is_idle);
    }

    fn wake(&self) {
        drop(self.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.awake.notify_all();
    }
}

impl Feed {
    /// Follows the log in that folder, which must be signed with that key, if one is given. A log that is not there yet is waited for.
    ///
    /// # Errors
    /// If the threads for that cannot be started.
    pub fn open(folder: &Path, key: Option<PublicKey>) -> Result<Self, FeedError> {
        Self::with_anchors(folder, key, Vec::new())
    }

    /// The same with the files of anchors: checkpoints that are kept elsewhere, and that the log is compared with.
    ///
    /// # Errors
    /// As [`open`](Feed::open).
    pub fn with_anchors(folder: &Path, key: Option<PublicKey>, anchors: Vec<PathBuf>) -> Result<Self, FeedError> {
        Self::from_source(Arc::new(Folder::new(folder)), key, anchors)
    }

    /// Follows a log that is kept elsewhere.
    ///
    /// # Errors
    /// As [`open`](Feed::open).
    pub fn from_source(
        source: Arc<dyn RecordSource>,
        key: Option<PublicKey>,
        anchors: Vec<PathBuf>,
    ) -> Result<Self, FeedError> {
        let status = AuditStatus { checking: true, ..AuditStatus::default() };
        let shared = Arc::new(FeedState {
            source,
            index: RwLock::default(),
            changed: watch::Sender::new(0),
            ready: watch::Sender::new(false),
            status: watch::Sender::new(Arc::new(status)),
            verify_requests: Mutex::default(),
            problem: Mutex::default(),
            stopped: AtomicBool::new(false),
            sleeping: Mutex::default(),
            awake: Condvar::new(),
            watching: AtomicUsize::new(0),
            frames: Mutex::default(),
            searches: FairSemaphore::new(SEARCHES),
        });
        let feed = Self { _stop: Arc::new(StopGuard(shared.clone())), shared };
        let (follower, verifier) = (feed.shared.clone(), feed.shared.clone());
        start("audit-feed", move || follow::follow(&follower))?;
        start("audit-proof", move || verification::run(&verifier, TrustAnchors { key, anchors }))?;
        Ok(feed)
    }

    /// The number of the next record.
    pub fn cursor(&self) -> u64 {
        self.shared.index().cursor
    }

    /// The cursor as it grows.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Why the log cannot be read at the moment.
    pub fn problem(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Up to so many records that fit, from that number on, in order. Blocks while it reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn records(&self, filter: &RecordFilter, after: u64, limit: usize) -> Result<Page, FeedError> {
        self.shared.lines_after(filter, after, limit)?.page()
    }

    /// The last so many records that fit before that number, in order. The cursor of the page is what to ask for next. Blocks while it
    /// reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn records_before(&self, filter: &RecordFilter, before: u64, limit: usize) -> Result<Page, FeedError> {
        self.shared.lines_before(filter, before, limit)?.page()
    }

    /// The same as [`records`](Feed::records), as the text that is sent: records with commas between them, how many there are, and where
    /// to go on. Blocks while it reads.
    pub(crate) fn batch(&self, filter: &RecordFilter, after: u64, limit: usize) -> Result<Batch, FeedError> {
        let lines = self.shared.lines_after(filter, after, limit)?;
        Ok(Batch { events: lines.lines.join(","), count: lines.lines.len(), cursor: lines.cursor, first: lines.first })
    }

    /// The same as a message of the stream, of records before `until` if they are new. None if it has to be read from the log, unless
    /// `blocking` says that it may be.
    ///
    /// All who watch the same, in the same steps, get the same message, which is made once.
    pub(crate) fn frame(
        &self,
        filter: &RecordFilter,
        after: u64,
        until: u64,
        blocking: bool,
    ) -> Result<Option<Frame>, FeedError> {
        const AT_ONCE: usize = 500;
        let frames = || self.shared.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            frames().iter().find(|(of, from, _)| *from == after && of == filter).map(|(.., frame)| frame.clone());
        if same.is_some() {
            return Ok(same);
        }
        let lines = match self.shared.recent_lines(filter, after, until, AT_ONCE) {
            Some(lines) => lines,
            None if blocking => self.shared.lines_after(filter, after, AT_ONCE)?,
            None => return Ok(None),
        };
        let (count, cursor) = (lines.lines.len(), lines.cursor);
        let text = format!("{{\"type\":\"records\",\"records\":[{}],\"cursor\":{cursor}}}", lines.lines.join(","));
        let frame = Frame { text: text.into(), count, cursor };
        if count > 0 {
            let mut frames = frames();
            frames.push_back((filter.clone(), after, frame.clone()));
            while frames.len() > FRAMES
                || frames.iter().map(|(.., frame)| frame.text.len()).sum::<usize>() > FRAME_BYTES
            {
                frames.pop_front();
            }
        }
        Ok(Some(frame))
    }

    /// Sessions, those last heard of first: what the log says about the newest 2,000.
    pub fn sessions(&self) -> Vec<SessionFacts> {
        self.shared.index().sessions()
    }

    /// A session.
    pub fn session(&self, id: &str) -> Option<SessionFacts> {
        self.shared.index().session(id)
    }

    /// Up to so many sessions of which something was heard from that record on, the longest ago first.
    pub fn sessions_from(&self, seq: u64, most: usize) -> Vec<SessionFacts> {
        self.shared.index().sessions_from(seq, most)
    }

    /// The course of a session, from that record on. Blocks while it reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn timeline(&self, session: &str, after: u64, limit: usize) -> Result<Timeline, FeedError> {
        self.shared.timeline(session, after, limit)
    }

    /// What hooks have done, in all sessions or in one.
    pub fn hooks(&self, session: Option<&str>) -> Vec<HookStats> {
        let now = u64::try_from(Timestamp::now().as_second() / 60).unwrap_or(0);
        let index = self.shared.index();
        match session {
            None => index.hooks.list(now),
            Some(session) => index.hooks_of(session).map(|hooks| hooks.list(now)).unwrap_or_default(),
        }
    }

    /// What was decided, the newest first, before that record. Blocks while it reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn history(
        &self,
        session: Option<&str>,
        hook: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DecidedApproval>, FeedError> {
        self.shared.decisions(session, hook, before, limit)
    }

    /// What became of the question of that id, `SESSION.RUN.N`, if it was decided. Blocks while it reads.
    pub(crate) fn find_decision(&self, id: &str) -> Result<Option<PastDecision>, FeedError> {
        self.shared.find_decision(id)
    }

    /// Turns at looking for questions.
    pub(crate) fn searches(&self) -> &FairSemaphore {
        &self.shared.searches
    }

    /// Whether there is a late answer after the seal of a session.
    pub(crate) fn is_reopened(&self, session: &str) -> bool {
        self.shared.index().is_reopened(session)
    }

    /// Returns when all was read that was there when the log was first looked at, or nothing more can be expected.
    pub(crate) async fn ready(&self) {
        let mut ready = self.shared.ready.subscribe();
        let _ = ready.wait_for(|ready| *ready).await;
    }

    /// What is proven about the log.
    pub fn status(&self) -> AuditStatus {
        AuditStatus::clone(&self.shared.status.borrow())
    }

    /// The same as it changes.
    pub fn status_changed(&self) -> watch::Receiver<Arc<AuditStatus>> {
        self.shared.status.subscribe()
    }

    /// Verifies all of the log, and says what came of it.
    ///
    /// # Errors
    /// If the thread that does it has ended.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the log is verified all the same.
    pub async fn verify(&self) -> Result<AuditStatus, FeedError> {
        let (done, is_done) = oneshot::channel();
        self.shared.verify_requests.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        self.shared.wake();
        is_done.await.map_err(|_| FeedError::Thread(io::Error::other("the thread that verifies it has ended")))?;
        Ok(self.status())
    }

    /// The proof that a record is in the log, as `amplifier audit prove` prints it. Blocks while it reads all of the log.
    ///
    /// # Errors
    /// If there is no such record, no checkpoint covers it yet, or the log cannot be read.
    pub fn proof(&self, seq: u64) -> Result<Value, FeedError> {
        serde_json::to_value(Proof::for_record(&*self.shared.source, seq)?).map_err(FeedError::Json)
    }

    /// One more who watches the log, until that is dropped.
    pub(crate) fn watcher(&self) -> Watcher {
        self.shared.watching.fetch_add(1, Ordering::Relaxed);
        Watcher(self.shared.clone())
    }

    /// What is known in numbers.
    pub(crate) fn metrics(&self) -> MetricsText {
        use MetricKind::{Counter, Gauge, Histogram};

        let index = self.shared.index();
        let mut text = MetricsText::default();
        let mut events: Vec<(&str, u64)> = index.events.iter().map(|(event, count)| (&**event, *count)).collect();
        events.sort_unstable();
        text.metric("amplifier_events_total", Counter, "Events that were recorded.");
        for (event, count) in events {
            text.value(&[("event", event)], count);
        }
        let totals = index.hooks.totals();
        for (name, help, value) in [
            ("amplifier_hook_calls_total", "Calls of hooks.", (|hook| hook.calls) as fn(&hooks::Totals<'_>) -> u64),
            ("amplifier_hook_denials_total", "Denials by hooks.", |hook| hook.denials),
            ("amplifier_hook_errors_total", "Failures of hooks.", |hook| hook.errors),
        ] {
            text.metric(name, Counter, help);
            for hook in &totals {
                text.value(&[("hook", hook.hook)], value(hook));
            }
        }
        text.metric("amplifier_hook_duration_seconds", Histogram, "How long hooks took.");
        for hook in &totals {
            text.histogram(&[("hook", hook.hook)], &hook.seconds, hook.calls, hook.total_ns as f64 / 1e9);
        }
        let ApprovalDecisionCounts { granted, refused } = index.decided.approvals;
        text.metric("amplifier_approvals_total", Counter, "Questions that were decided.");
        text.value(&[("decision", "granted")], granted).value(&[("decision", "refused")], refused);
        let status = self.shared.status.borrow().clone();
        let watching = self.shared.watching.load(Ordering::Relaxed) as u64;
        for (name, kind, help, value) in [
            ("amplifier_denials_total", Counter, "Operations that were denied.", index.decided.denials),
            ("amplifier_audit_records", Gauge, "Records of the audit log.", index.cursor),
            ("amplifier_audit_verified_to", Gauge, "Records below this number are verified.", status.verified_to),
            ("amplifier_audit_sound", Gauge, "Whether nothing is wrong with the audit log.", status.sound.into()),
            ("amplifier_audit_exposed", Gauge, "Records that no checkpoint kept elsewhere covers.", status.exposed),
            ("amplifier_audit_unreadable_lines", Gauge, "Lines of the log that are no records.", index.unreadable),
            ("amplifier_stream_clients", Gauge, "Clients that watch the stream.", watching),
        ] {
            text.metric(name, kind, help).value(&[], value);
        }
        text
    }
}

/// Records as they are sent.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// Their JSON, with commas between them.
    pub(crate) events: String,
    /// How many there are.
    pub(crate) count: usize,
    /// Where to go on.
    pub(crate) cursor: u64,
    /// The number of the first record that is there.
    pub(crate) first: u64,
}

/// Someone who watches the log.
pub(crate) struct Watcher(Arc<FeedState>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.watching.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), FeedError> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map(drop).map_err(FeedError::Thread)
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("cursor", &self.cursor()).finish_non_exhaustive()
    }
}
