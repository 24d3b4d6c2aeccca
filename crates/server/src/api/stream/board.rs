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
use crate::api::sessions::{gone_between, joined_one};
use crate::hub::Change;
use crate::masked;
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
pub(in crate::api) struct Board {
    app: App,
    notes: broadcast::Sender<Note>,
    /// Records below this number can be told.
    pace: watch::Sender<u64>,
    // A std lock: nothing awaits while it is held.
    is_running: Mutex<bool>,
}

/// Something that is told.
#[derive(Clone, Debug)]
pub(super) enum Note {
    /// A message, and the sessions that it is about, if it is about any.
    Message(Arc<[String]>, Text),
    /// Something was missed, so everybody has to hear how things are.
    Missed,
}

/// A message, as those see it who may answer, and as the others do.
#[derive(Clone, Debug)]
pub(super) struct Text {
    whole: Utf8Bytes,
    /// Without secrets; none if there is no difference.
    masked: Option<Utf8Bytes>,
}

impl Text {
    /// As somebody of that role sees it.
    pub(super) fn shown(self, role: Role) -> Utf8Bytes {
        match self.masked {
            Some(text) if !masked::sees_all(role) => text,
            _ => self.whole,
        }
    }
}

/// What is heard of the board.
pub(super) struct Heard {
    pub(super) notes: broadcast::Receiver<Note>,
    pub(super) pace: watch::Receiver<u64>,
}

impl Board {
    pub(in crate::api) fn new(app: App) -> Arc<Self> {
        let (notes, _) = broadcast::channel(NOTES);
        Arc::new(Self { app, notes, pace: watch::Sender::new(0), is_running: Mutex::new(false) })
    }

    /// What is told from now on.
    pub(super) fn watch(self: &Arc<Self>) -> Heard {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = Heard { notes: self.notes.subscribe(), pace: self.pace.subscribe() };
        if !std::mem::replace(&mut *is_running, true) {
            self.pace.send_replace(self.app.feed.cursor());
            // Listened to before this returns, so that nothing is missed between.
            let telling = Telling {
                board: self.clone(),
                changes: self.app.hub.subscribe(),
                records: self.app.feed.changed(),
                status: self.app.feed.status_changed(),
                changed: BTreeSet::new(),
                told: self.app.feed.cursor(),
                last: String::new(),
                looked: Timestamp::now(),
            };
            tokio::spawn(telling.run());
        }
        heard
    }

    /// Whether nobody watches any more. Then whoever comes next begins anew.
    fn is_left(&self) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *is_running = self.notes.receiver_count() > 0;
        !*is_running
    }
}

/// Whom a question is about: whoever asks, and the session that it works for.
fn asker(session: &str, within: Option<&String>) -> Arc<[String]> {
    [session.to_owned()].into_iter().chain(within.cloned()).collect()
}

/// The task that tells.
struct Telling {
    board: Arc<Board>,
    changes: broadcast::Receiver<Change>,
    records: watch::Receiver<u64>,
    status: watch::Receiver<Arc<AuditStatus>>,
    /// The sessions of which something is new.
    changed: BTreeSet<String>,
    /// Sessions are told about up to this record.
    told: u64,
    /// The session that was told about last.
    last: String,
    /// When was last looked for sessions of which nothing is heard any more.
    looked: Timestamp,
}

impl Telling {
    async fn run(mut self) {
        let mut sessions = interval(SESSIONS);
        sessions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = Instant::now();
        loop {
            let cursor = self.board.app.feed.cursor();
            let is_behind = *self.board.pace.borrow() != cursor;
            tokio::select! {
                () = sleep_until(next), if is_behind => {
                    self.board.pace.send_replace(cursor);
                    next = Instant::now() + PACE;
                }
                grown = self.records.changed(), if !is_behind => if grown.is_err() { return },
                change = self.changes.recv() => match change {
                    Ok(change) => self.change(change),
                    Err(RecvError::Lagged(_)) => {
                        self.changes = self.changes.resubscribe();
                        self.note(Note::Missed);
                    }
                    Err(RecvError::Closed) => return,
                },
                proven = self.status.changed() => {
                    if proven.is_err() {
                        return;
                    }
                    let audit = AuditStatus::clone(&self.status.borrow_and_update());
                    self.say([].into(), &StreamMessage::Audit { audit });
                }
                _ = sessions.tick() => {
                    if self.board.is_left() {
                        return;
                    }
                    self.sessions();
                }
            }
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Session(id) => _ = self.changed.insert(id),
            Change::Requested(approval) => {
                let shown = |role| self.board.app.hub.shown(&approval, role).brief();
                let about = asker(&approval.session, approval.parent_session.as_ref());
                self.say_by_role(about, |role| StreamMessage::ApprovalRequested { approval: shown(role) });
            }
            Change::Closed { id, decided, parent_session } => {
                let shown = |role| masked::decided(decided.clone(), role);
                let about = asker(&decided.session, parent_session.as_ref());
                self.say_by_role(about, |role| StreamMessage::ApprovalClosed { id: id.clone(), decided: shown(role) });
            }
            Change::Busy(busy) => self
                .say_by_role([].into(), |role| StreamMessage::ApprovalFlood { busy: masked::busy(busy.clone(), role) }),
            Change::Rules => self.say([].into(), &StreamMessage::Rules {}),
        }
    }

    /// Tells about sessions of which something is new.
    fn sessions(&mut self) {
        let board = self.board.clone();
        let feed = &board.app.feed;
        let now = Timestamp::now();
        if now.duration_since(self.looked) >= SILENT {
            self.changed.extend(gone_between(&board.app, self.looked, now));
            self.looked = now;
        }
        if feed.cursor() > self.told && self.changed.len() < SESSIONS_AT_ONCE {
            let heard = feed.sessions_from(self.told, SESSIONS_AT_ONCE);
            self.told = match heard.last() {
                Some(last) if heard.len() == SESSIONS_AT_ONCE => last.last_seq + 1,
                _ => feed.cursor().max(self.told),
            };
            self.changed.extend(heard.into_iter().map(|facts| facts.id));
        }
        // Another log may have begun.
        self.told = self.told.min(feed.cursor());
        for _ in 0..SESSIONS_AT_ONCE {
            // In turns: one that changes all the time does not keep others waiting.
            let beyond = self.changed.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded)).next();
            let Some(id) = beyond.or_else(|| self.changed.first()).cloned() else { break };
            self.changed.remove(&id);
            self.last.clone_from(&id);
            if let Some(session) = joined_one(&board.app, &id) {
                self.say([id].into(), &StreamMessage::Session { session });
            }
        }
    }

    fn say(&self, about: Arc<[String]>, message: &StreamMessage) {
        self.tell(about, message.text().map(|whole| Text { whole, masked: None }));
    }

    /// Tells everybody what their role lets them see.
    fn say_by_role(&self, about: Arc<[String]>, message: impl Fn(Role) -> StreamMessage) {
        let text = |role| message(role).text();
        let both = text(Role::Approver).zip(text(Role::Viewer));
        self.tell(about, both.map(|(whole, masked)| Text { masked: (masked != whole).then_some(masked), whole }));
    }

    fn tell(&self, about: Arc<[String]>, text: Option<Text>) {
        match text {
            Some(text) => self.note(Note::Message(about, text)),
            // Nobody can be told, so everybody looks.
            None => self.note(Note::Missed),
        }
    }

    fn note(&self, note: Note) {
        // Everybody may have left.
        let _ = self.board.notes.send(note);
    }
}
