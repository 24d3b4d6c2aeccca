//! Messages for all clients of the stream, written once for all of them.
//!
//! One task receives changes, writes the messages, and sets the pace at which records are sent: clients that keep up
//! read the same records at the same time, and so receive the same bytes. The task runs while there are clients.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::message::StreamMessage;
use crate::App;
use crate::access::Role;
use crate::api::sessions::{find_session, gone_between};
use crate::api_types::AuditStatus;
use crate::hub::HubEvent;
use crate::redact;

/// Intervals at which new records and changed sessions are sent.
const PACE: Duration = Duration::from_millis(50);
const SESSIONS: Duration = Duration::from_millis(250);

/// Interval of the check for sessions that are gone.
const SILENT: SignedDuration = SignedDuration::from_secs(1);

/// Limit of sessions sent at once; the others follow.
const SESSIONS_AT_ONCE: usize = 50;

/// Limit of messages that wait for a slow client. A client that misses some receives the whole state instead.
const NOTES: usize = 4096;

pub(in crate::api) struct StreamBroadcast {
    app: App,
    notes: broadcast::Sender<BroadcastMessage>,
    /// Records below this number can be sent.
    pace: watch::Sender<u64>,
    // A std lock: nothing awaits while it is held.
    is_running: Mutex<bool>,
}

#[derive(Clone, Debug)]
pub(super) enum BroadcastMessage {
    /// A message and the sessions concerned, if any.
    Message(Arc<[String]>, RoleText),
    /// Changes were missed, so every client needs the whole state.
    Missed,
}

/// A message as approvers see it, and as viewers do.
#[derive(Clone, Debug)]
pub(super) struct RoleText {
    whole: Utf8Bytes,
    /// Form without secrets; `None` if there is no difference.
    masked: Option<Utf8Bytes>,
}

impl RoleText {
    pub(super) fn for_role(self, role: Role) -> Utf8Bytes {
        match self.masked {
            Some(text) if !redact::sees_all(role) => text,
            _ => self.whole,
        }
    }
}

pub(super) struct BroadcastReceiver {
    pub(super) notes: broadcast::Receiver<BroadcastMessage>,
    pub(super) pace: watch::Receiver<u64>,
}

impl StreamBroadcast {
    pub(in crate::api) fn new(app: App) -> Arc<Self> {
        let (notes, _) = broadcast::channel(NOTES);
        Arc::new(Self { app, notes, pace: watch::Sender::new(0), is_running: Mutex::new(false) })
    }

    pub(super) fn subscribe(self: &Arc<Self>) -> BroadcastReceiver {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = BroadcastReceiver { notes: self.notes.subscribe(), pace: self.pace.subscribe() };
        if !std::mem::replace(&mut *is_running, true) {
            self.pace.send_replace(self.app.feed.cursor());
            // Subscribed before this returns, so that nothing is missed.
            let task = BroadcastTask {
                broadcast: self.clone(),
                changes: self.app.hub.subscribe(),
                records: self.app.feed.changed(),
                status: self.app.feed.status_changed(),
                changed: BTreeSet::new(),
                sent_to: self.app.feed.cursor(),
                last: String::new(),
                checked_at: Timestamp::now(),
            };
            tokio::spawn(task.run());
        }
        receiver
    }

    /// Returns `true` if there are no clients. The next subscription starts another task.
    fn stop_if_unused(&self) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *is_running = self.notes.receiver_count() > 0;
        !*is_running
    }
}

/// Returns the sessions that a request concerns: the requesting one and its parent.
fn request_sessions(session: &str, within: Option<&String>) -> Arc<[String]> {
    [session.to_owned()].into_iter().chain(within.cloned()).collect()
}

struct BroadcastTask {
    broadcast: Arc<StreamBroadcast>,
    changes: broadcast::Receiver<HubEvent>,
    records: watch::Receiver<u64>,
    status: watch::Receiver<Arc<AuditStatus>>,
    /// Sessions with changes that were not sent yet.
    changed: BTreeSet<String>,
    /// Sessions are up to date as of this record.
    sent_to: u64,
    /// The session that was sent last.
    last: String,
    /// Time of the last check for sessions that are gone.
    checked_at: Timestamp,
}

impl BroadcastTask {
    async fn run(mut self) {
        let mut sessions = interval(SESSIONS);
        sessions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = Instant::now();
        loop {
            let cursor = self.broadcast.app.feed.cursor();
            let is_behind = *self.broadcast.pace.borrow() != cursor;
            tokio::select! {
                () = sleep_until(next), if is_behind => {
                    self.broadcast.pace.send_replace(cursor);
                    next = Instant::now() + PACE;
                }
                grown = self.records.changed(), if !is_behind => if grown.is_err() { return },
                change = self.changes.recv() => match change {
                    Ok(change) => self.apply_event(change),
                    Err(RecvError::Lagged(_)) => {
                        self.changes = self.changes.resubscribe();
                        self.send(BroadcastMessage::Missed);
                    }
                    Err(RecvError::Closed) => return,
                },
                proven = self.status.changed() => {
                    if proven.is_err() {
                        return;
                    }
                    let audit = AuditStatus::clone(&self.status.borrow_and_update());
                    self.send_to_all([].into(), &StreamMessage::Audit { audit });
                }
                _ = sessions.tick() => {
                    if self.broadcast.stop_if_unused() {
                        return;
                    }
                    self.send_sessions();
                }
            }
        }
    }

    fn apply_event(&mut self, change: HubEvent) {
        match change {
            HubEvent::Session(id) => _ = self.changed.insert(id),
            HubEvent::ApprovalRequested(approval) => {
                let shown = |role| self.broadcast.app.hub.redacted(&approval, role).brief();
                let about = request_sessions(&approval.session, approval.parent_session.as_ref());
                self.send_by_role(about, |role| StreamMessage::ApprovalRequested { approval: shown(role) });
            }
            HubEvent::ApprovalClosed { id, decided, parent_session } => {
                let shown = |role| redact::decision(decided.clone(), role);
                let about = request_sessions(&decided.session, parent_session.as_ref());
                self.send_by_role(about, |role| StreamMessage::ApprovalClosed { id: id.clone(), decided: shown(role) });
            }
            HubEvent::ApprovalFlood(busy) => self.send_by_role([].into(), |role| StreamMessage::ApprovalFlood {
                busy: redact::flood(busy.clone(), role),
            }),
            HubEvent::Rules => self.send_to_all([].into(), &StreamMessage::Rules {}),
        }
    }

    fn send_sessions(&mut self) {
        let broadcast = self.broadcast.clone();
        let feed = &broadcast.app.feed;
        let now = Timestamp::now();
        if now.duration_since(self.checked_at) >= SILENT {
            self.changed.extend(gone_between(&broadcast.app, self.checked_at, now));
            self.checked_at = now;
        }
        if feed.cursor() > self.sent_to && self.changed.len() < SESSIONS_AT_ONCE {
            let sessions = feed.sessions_from(self.sent_to, SESSIONS_AT_ONCE);
            self.sent_to = match sessions.last() {
                Some(last) if sessions.len() == SESSIONS_AT_ONCE => last.last_seq + 1,
                _ => feed.cursor().max(self.sent_to),
            };
            self.changed.extend(sessions.into_iter().map(|facts| facts.id));
        }
        // The log may have been replaced.
        self.sent_to = self.sent_to.min(feed.cursor());
        for _ in 0..SESSIONS_AT_ONCE {
            // In rotation: a session that changes all the time does not delay others.
            let beyond = self.changed.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded)).next();
            let Some(id) = beyond.or_else(|| self.changed.first()).cloned() else { break };
            self.changed.remove(&id);
            self.last.clone_from(&id);
            if let Some(session) = find_session(&broadcast.app, &id) {
                self.send_to_all([id].into(), &StreamMessage::Session { session });
            }
        }
    }

    fn send_to_all(&self, about: Arc<[String]>, message: &StreamMessage) {
        self.send_text(about, message.text().map(|whole| RoleText { whole, masked: None }));
    }

    /// Sends a message in the form for each role.
    fn send_by_role(&self, about: Arc<[String]>, message: impl Fn(Role) -> StreamMessage) {
        let text = |role| message(role).text();
        let both = text(Role::Approver).zip(text(Role::Viewer));
        self.send_text(
            about,
            both.map(|(whole, masked)| RoleText { masked: (masked != whole).then_some(masked), whole }),
        );
    }

    fn send_text(&self, about: Arc<[String]>, text: Option<RoleText>) {
        match text {
            Some(text) => self.send(BroadcastMessage::Message(about, text)),
            // The message cannot be written, so every client reads the whole state.
            None => self.send(BroadcastMessage::Missed),
        }
    }

    fn send(&self, note: BroadcastMessage) {
        // There may be no clients.
        let _ = self.broadcast.notes.send(note);
    }
}
