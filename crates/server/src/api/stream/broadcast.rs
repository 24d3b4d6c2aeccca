//! What all who watch are told, made once for all of them.
//!
//! One task hears of changes, writes the messages, and sets the pace in which records are told: all who keep up read the same records at the same
//! time, and so get the same bytes. It runs while somebody watches.

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
use crate::hub::HubEvent;
use crate::redact;
use crate::wire::AuditStatus;

/// How often the clients are told about records that come one after another, and about sessions.
const PACE: Duration = Duration::from_millis(50);
const SESSIONS: Duration = Duration::from_millis(250);

/// How often is looked for sessions of which nothing is heard any more.
const SILENT: SignedDuration = SignedDuration::from_secs(1);

/// How many sessions are told about at once; the others have their turn next.
const SESSIONS_AT_ONCE: usize = 50;

/// How many messages wait for a client that does not keep up. It is told how things are instead of what it missed.
const NOTES: usize = 4096;

/// What all who watch are told.
pub(in crate::api) struct StreamBroadcast {
    app: App,
    notes: broadcast::Sender<BroadcastMessage>,
    /// Records below this number can be told.
    pace: watch::Sender<u64>,
    // A std lock: nothing awaits while it is held.
    is_running: Mutex<bool>,
}

/// Something that is told.
#[derive(Clone, Debug)]
pub(super) enum BroadcastMessage {
    /// A message, and the sessions that it is about, if it is about any.
    Message(Arc<[String]>, RoleText),
    /// Something was missed, so everybody has to hear how things are.
    Missed,
}

/// A message, as those see it who may answer, and as the others do.
#[derive(Clone, Debug)]
pub(super) struct RoleText {
    whole: Utf8Bytes,
    /// Without secrets; none if there is no difference.
    masked: Option<Utf8Bytes>,
}

impl RoleText {
    /// As somebody of that role sees it.
    pub(super) fn shown(self, role: Role) -> Utf8Bytes {
        match self.masked {
            Some(text) if !redact::sees_all(role) => text,
            _ => self.whole,
        }
    }
}

/// What is heard of the board.
pub(super) struct BroadcastReceiver {
    pub(super) notes: broadcast::Receiver<BroadcastMessage>,
    pub(super) pace: watch::Receiver<u64>,
}

impl StreamBroadcast {
    pub(in crate::api) fn new(app: App) -> Arc<Self> {
        let (notes, _) = broadcast::channel(NOTES);
        Arc::new(Self { app, notes, pace: watch::Sender::new(0), is_running: Mutex::new(false) })
    }

    /// What is told from now on.
    pub(super) fn subscribe(self: &Arc<Self>) -> BroadcastReceiver {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = BroadcastReceiver { notes: self.notes.subscribe(), pace: self.pace.subscribe() };
        if !std::mem::replace(&mut *is_running, true) {
            self.pace.send_replace(self.app.feed.cursor());
            // Listened to before this returns, so that nothing is missed between.
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

    /// Whether nobody watches any more. Then whoever comes next begins anew.
    fn stop_if_unused(&self) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *is_running = self.notes.receiver_count() > 0;
        !*is_running
    }
}

/// Whom a question is about: whoever asks, and the session that it works for.
fn request_sessions(session: &str, within: Option<&String>) -> Arc<[String]> {
    [session.to_owned()].into_iter().chain(within.cloned()).collect()
}

/// The task that tells.
struct BroadcastTask {
    broadcast: Arc<StreamBroadcast>,
    changes: broadcast::Receiver<HubEvent>,
    records: watch::Receiver<u64>,
    status: watch::Receiver<Arc<AuditStatus>>,
    /// The sessions of which something is new.
    changed: BTreeSet<String>,
    /// Sessions are told about up to this record.
    sent_to: u64,
    /// The session that was told about last.
    last: String,
    /// When was last looked for sessions of which nothing is heard any more.
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
                let shown = |role| redact::decided(decided.clone(), role);
                let about = request_sessions(&decided.session, parent_session.as_ref());
                self.send_by_role(about, |role| StreamMessage::ApprovalClosed { id: id.clone(), decided: shown(role) });
            }
            HubEvent::ApprovalFlood(busy) => self.send_by_role([].into(), |role| StreamMessage::ApprovalFlood {
                busy: redact::flood(busy.clone(), role),
            }),
            HubEvent::Rules => self.send_to_all([].into(), &StreamMessage::Rules {}),
        }
    }

    /// Tells about sessions of which something is new.
    fn send_sessions(&mut self) {
        let broadcast = self.broadcast.clone();
        let feed = &broadcast.app.feed;
        let now = Timestamp::now();
        if now.duration_since(self.checked_at) >= SILENT {
            self.changed.extend(gone_between(&broadcast.app, self.checked_at, now));
            self.checked_at = now;
        }
        if feed.cursor() > self.sent_to && self.changed.len() < SESSIONS_AT_ONCE {
            let receiver = feed.sessions_from(self.sent_to, SESSIONS_AT_ONCE);
            self.sent_to = match receiver.last() {
                Some(last) if receiver.len() == SESSIONS_AT_ONCE => last.last_seq + 1,
                _ => feed.cursor().max(self.sent_to),
            };
            self.changed.extend(receiver.into_iter().map(|facts| facts.id));
        }
        // Another log may have begun.
        self.sent_to = self.sent_to.min(feed.cursor());
        for _ in 0..SESSIONS_AT_ONCE {
            // In turns: one that changes all the time does not keep others waiting.
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

    /// Tells everybody what their role lets them see.
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
            // Nobody can be told, so everybody looks.
            None => self.send(BroadcastMessage::Missed),
        }
    }

    fn send(&self, note: BroadcastMessage) {
        // Everybody may have left.
        let _ = self.broadcast.notes.send(note);
    }
}
