//! The audit log as a feed.
//!
//! The audit log is the event store. One thread follows it (`follow.rs`) and updates the index (`index.rs`,
//! `hooks.rs`); another one verifies it (`verification.rs`). Requests read records from the log itself (`query.rs`,
//! `timeline.rs`), so that a slow client holds no memory.

mod activity;
mod cost;
mod decisions;
mod follow;
mod hooks;
mod index;
mod query;
mod search;
mod summary;
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
use amplifier_core::session_id::{self, AmbiguousSessionId};
use amplifier_link::DecidedApproval;
use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub(crate) use self::activity::MOST_HOURS;
pub(crate) use self::decisions::PastDecision;
use self::index::Index;
pub(crate) use self::search::{SearchPage, SearchQuery};
use self::verification::{TrustAnchors, VerifyRequest};
pub use self::views::{Page, SessionFacts, Timeline, TimelineItem};
use crate::api_types::{Activity, AuditStatus, HookStats};
use crate::fair_semaphore::FairSemaphore;

/// The audit log as it grows. Cheap to clone; clones share the log.
///
/// Two threads follow and verify the log until the last clone is dropped.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<FeedState>,
    _stop: Arc<StopGuard>,
}

/// The reason why the log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// A record is missing or was changed.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A record's body is nested too deeply.
    #[error("cannot read a record: {0}")]
    Json(serde_json::Error),
    /// A thread cannot be started, or has ended.
    #[error("cannot follow the audit log: {0}")]
    Thread(io::Error),
}

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
    /// `true` once the log was read to its end.
    ready: watch::Sender<bool>,
    status: watch::Sender<Arc<AuditStatus>>,
    verify_requests: Mutex<Vec<VerifyRequest>>,
    problem: Mutex<Option<String>>,
    stopped: AtomicBool,
    sleeping: Mutex<()>,
    awake: Condvar,
    watching: AtomicUsize,
    /// Recent messages of the stream, shared between clients with the same filter.
    frames: Mutex<VecDeque<(RecordFilter, u64, Frame)>>,
    searches: FairSemaphore,
}

/// Limit of concurrent searches for late answers. The request may be anywhere in the log, and an approver can name any
/// id.
///
/// Separate from the limit of readers: a viewer, who needs a lower role, could prevent the recording of late answers by
/// reading a lot. An answer to an open request needs no search.
const SEARCHES: usize = 4;

/// Limits of shared messages in number and bytes.
const FRAMES: usize = 64;
const FRAME_BYTES: usize = 8 << 20;

/// A message of the stream with records.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) text: Utf8Bytes,
    pub(crate) count: usize,
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

    /// Sleeps until the time has passed or the feed stops.
    fn sleep(&self, time: Duration) {
        let sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.awake.wait_timeout_while(sleeping, time, |()| !self.is_stopped());
    }

    /// Sleeps until the time has passed, the feed stops, or a verification is requested.
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
    /// Follows the log in this folder. The log must be signed with the key, if given. The log may be created later.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn open(folder: &Path, key: Option<PublicKey>) -> Result<Self, FeedError> {
        Self::with_anchors(folder, key, Vec::new())
    }

    /// Follows a log, and compares it with the checkpoints in these anchor files.
    ///
    /// # Errors
    /// As [`open`](Feed::open).
    pub fn with_anchors(folder: &Path, key: Option<PublicKey>, anchors: Vec<PathBuf>) -> Result<Self, FeedError> {
        Self::from_source(Arc::new(Folder::new(folder)), key, anchors)
    }

    /// Follows a log in another storage.
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

    /// Returns the number of the next record.
    pub fn cursor(&self) -> u64 {
        self.shared.index().cursor
    }

    /// Subscribes to the cursor.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Returns the reason why the log cannot be read at the moment.
    pub fn problem(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns records that match, from this number on, in order. Blocks on file reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn records(&self, filter: &RecordFilter, after: u64, limit: usize) -> Result<Page, FeedError> {
        self.shared.lines_after(filter, after, limit)?.page()
    }

    /// Returns the last records that match before this number, in order. The page's cursor continues. Blocks on file
    /// reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn records_before(&self, filter: &RecordFilter, before: u64, limit: usize) -> Result<Page, FeedError> {
        self.shared.lines_before(filter, before, limit)?.page()
    }

    /// Returns the same as [`records`](Feed::records) as JSON text. Blocks on file reads.
    pub(crate) fn batch(&self, filter: &RecordFilter, after: u64, limit: usize) -> Result<Batch, FeedError> {
        let lines = self.shared.lines_after(filter, after, limit)?;
        Ok(Batch { events: lines.lines.join(","), count: lines.lines.len(), cursor: lines.cursor, first: lines.first })
    }

    /// Returns records before `until` as a message of the stream; `None` if they must be read from the log and
    /// `blocking` is `false`.
    ///
    /// Clients with the same filter and cursor share one message.
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

    /// Returns the 2,000 most recently active sessions.
    pub fn sessions(&self) -> Vec<SessionFacts> {
        self.shared.index().sessions()
    }

    /// Returns a session.
    pub fn session(&self, id: &str) -> Option<SessionFacts> {
        self.shared.index().session(id)
    }

    /// Finds the session that an id, or its beginning or end, means; `None` if no indexed session matches.
    ///
    /// # Errors
    /// If several sessions match.
    pub(crate) fn find_session(&self, wanted: &str) -> Result<Option<String>, AmbiguousSessionId> {
        let index = self.shared.index();
        session_id::find(wanted, index.session_ids()).map(|id| id.map(str::to_owned))
    }

    /// Returns the activity of the last hours.
    pub fn activity(&self, hours: usize) -> Activity {
        self.shared.index().activity.report(Timestamp::now(), hours)
    }

    /// Searches the records before this number, the newest first. Blocks on file reads, within limits of time and bytes.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub(crate) fn search(&self, query: &SearchQuery, before: u64, limit: usize) -> Result<SearchPage, FeedError> {
        self.shared.search(query, before, limit)
    }

    /// Returns sessions with records from this number on, the least recently active first.
    pub fn sessions_from(&self, seq: u64, most: usize) -> Vec<SessionFacts> {
        self.shared.index().sessions_from(seq, most)
    }

    /// Returns the timeline of a session from this record on. Blocks on file reads.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn timeline(&self, session: &str, after: u64, limit: usize) -> Result<Timeline, FeedError> {
        self.shared.timeline(session, after, limit)
    }

    /// Returns statistics of hooks, in all sessions or in one.
    pub fn hooks(&self, session: Option<&str>) -> Vec<HookStats> {
        let now = u64::try_from(Timestamp::now().as_second() / 60).unwrap_or(0);
        let index = self.shared.index();
        match session {
            None => index.hooks.list(now),
            Some(session) => index.hooks_of(session).map(|hooks| hooks.list(now)).unwrap_or_default(),
        }
    }

    /// Returns decisions before this record, the newest first. Blocks on file reads.
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

    /// Returns the decision on the request with this id, `SESSION.RUN.N`. Blocks on file reads.
    pub(crate) fn find_decision(&self, id: &str) -> Result<Option<PastDecision>, FeedError> {
        self.shared.find_decision(id)
    }

    /// Returns the limit of searches for late answers.
    pub(crate) fn searches(&self) -> &FairSemaphore {
        &self.shared.searches
    }

    /// Returns `true` if a late answer follows the session's seal.
    pub(crate) fn is_reopened(&self, session: &str) -> bool {
        self.shared.index().is_reopened(session)
    }

    /// Returns when the first pass over the log is complete, or the log cannot be read.
    pub(crate) async fn ready(&self) {
        let mut ready = self.shared.ready.subscribe();
        let _ = ready.wait_for(|ready| *ready).await;
    }

    /// Returns the verification status.
    pub fn status(&self) -> AuditStatus {
        AuditStatus::clone(&self.shared.status.borrow())
    }

    /// Subscribes to the verification status.
    pub fn status_changed(&self) -> watch::Receiver<Arc<AuditStatus>> {
        self.shared.status.subscribe()
    }

    /// Verifies the whole log, and returns the status.
    ///
    /// # Errors
    /// If the verification thread has ended.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the verification goes on.
    pub async fn verify(&self) -> Result<AuditStatus, FeedError> {
        let (done, is_done) = oneshot::channel();
        self.shared.verify_requests.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        self.shared.wake();
        is_done.await.map_err(|_| FeedError::Thread(io::Error::other("the verification thread has ended")))?;
        Ok(self.status())
    }

    /// Returns the proof that a record is in the log, as `amplifier audit prove` prints it. Blocks while it reads the
    /// whole log.
    ///
    /// # Errors
    /// If the record is missing or not covered by a checkpoint, or the log cannot be read.
    pub fn proof(&self, seq: u64) -> Result<Value, FeedError> {
        serde_json::to_value(Proof::for_record(&*self.shared.source, seq)?).map_err(FeedError::Json)
    }

    /// Counts a client until the result is dropped.
    pub(crate) fn watcher(&self) -> Watcher {
        self.shared.watching.fetch_add(1, Ordering::Relaxed);
        Watcher(self.shared.clone())
    }

    pub(crate) fn metrics(&self) -> MetricsText {
        use MetricKind::{Counter, Gauge, Histogram};

        let index = self.shared.index();
        let mut text = MetricsText::default();
        let mut events: Vec<(&str, u64)> = index.events.iter().map(|(event, count)| (&**event, *count)).collect();
        events.sort_unstable();
        text.metric("amplifier_events_total", Counter, "Recorded events.");
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
        text.metric("amplifier_hook_duration_seconds", Histogram, "Duration of hook calls.");
        for hook in &totals {
            text.histogram(&[("hook", hook.hook)], &hook.seconds, hook.calls, hook.total_ns as f64 / 1e9);
        }
        let ApprovalDecisionCounts { granted, refused } = index.decided.approvals;
        text.metric("amplifier_approvals_total", Counter, "Decided approval requests.");
        text.value(&[("decision", "granted")], granted).value(&[("decision", "refused")], refused);
        let status = self.shared.status.borrow().clone();
        let watching = self.shared.watching.load(Ordering::Relaxed) as u64;
        for (name, kind, help, value) in [
            ("amplifier_denials_total", Counter, "Denied operations.", index.decided.denials),
            ("amplifier_audit_records", Gauge, "Records of the audit log.", index.cursor),
            ("amplifier_audit_verified_to", Gauge, "Records below this number are verified.", status.verified_to),
            ("amplifier_audit_sound", Gauge, "1 if the audit log has no known problem, else 0.", status.sound.into()),
            ("amplifier_audit_exposed", Gauge, "Records that no anchored checkpoint covers.", status.exposed),
            ("amplifier_audit_unreadable_lines", Gauge, "Invalid lines of the log.", index.unreadable),
            ("amplifier_stream_clients", Gauge, "Clients of the stream.", watching),
        ] {
            text.metric(name, kind, help).value(&[], value);
        }
        text
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The records, separated by commas.
    pub(crate) events: String,
    pub(crate) count: usize,
    pub(crate) cursor: u64,
    /// Number of the first record in the log.
    pub(crate) first: u64,
}

/// A client of the stream, counted until dropped.
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
