//! Connected sessions and their open approval requests.
//!
//! `connected_sessions.rs` holds the state and its rules, without I/O. The [`Hub`] adds a lock, announces changes to subscribers and
//! waits for the replies of sessions.

mod approval_rules;
mod connected_sessions;
mod error;
mod flood;
mod machine_calls;
mod presence;
mod replies;
mod request_store;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_core::ApprovalAnswer;
pub use amplifier_link::Command;
use amplifier_link::{
    AnswerScope, ApprovalId, DecidedApproval, MachineReply, OpenApproval, ReloadResult, ReloadStatus, RuleList,
    ServerMessage, SessionHello, SessionMessage,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};

use self::connected_sessions::{AnswerReply, ConnectedSessions, Delivery};
pub use self::error::{HubError, HubErrorCode};
use self::presence::Presence;
use self::replies::{NoReply, Replies};
use crate::access::Role;
use crate::api_types::{ApprovalFlood, SessionHost};
use crate::redact::ViewerRedaction;

/// Limit of events that wait for a subscriber. A subscriber that misses some reads everything again.
const CHANGES: usize = 4096;
/// Time limit for a session's reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval of the checks that end a flood of requests.
const CALM: Duration = Duration::from_secs(1);

/// Connected sessions and their open approval requests. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<HubState>,
}

struct HubState {
    // A std lock: nothing awaits while it is held.
    state: Mutex<ConnectedSessions<mpsc::Sender<ServerMessage>>>,
    // A std lock: nothing awaits while it is held.
    machine: Mutex<Option<machine_calls::ConnectedMachine>>,
    /// The replies of sessions to answers, rule changes and reloads, and of the machine.
    answers: Replies<Result<DecidedApproval, HubError>>,
    rule_changes: Replies<Result<(), HubError>>,
    reloads: Replies<ReloadResult>,
    replies: Replies<MachineReply>,
    watches_flood: AtomicBool,
    changes: broadcast::Sender<HubEvent>,
    /// The approval rules in files, as the machine sent them last.
    rules: Mutex<Option<RuleList>>,
    redaction: ViewerRedaction,
    presence: Presence,
}

/// A connected session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectedSession {
    /// Session id.
    pub session: String,
    /// Session name.
    pub name: Option<String>,
    /// Process id.
    pub pid: u32,
    /// Working folder.
    pub workspace: String,
    /// Location of the session: in the server, in its own process, or on another machine.
    pub place: SessionHost,
    /// The machine, if it is another one.
    pub machine: Option<String>,
    /// `true` if the session accepts prompts.
    pub takes_prompts: bool,
    /// Approval mode, if the session has one.
    pub mode: Option<String>,
    /// Start time.
    pub started_at: Timestamp,
    /// Number of open approval requests, including those of sub-agents.
    pub pending: u64,
}

/// An answer as an approver submits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedAnswer {
    /// The answer.
    pub answer: ApprovalAnswer,
    /// The nonce of the request that was shown.
    pub nonce: String,
    /// The requests that it is for.
    pub scope: AnswerScope,
}

/// A change that subscribers are notified of.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few thousand are kept at most, and boxes would be in the way of all who match"
)]
pub enum HubEvent {
    /// A session changed: connected or not, number of open requests, idle or not.
    Session(String),
    /// An approval request is open.
    ApprovalRequested(Arc<OpenApproval>),
    /// An approval request is closed.
    ApprovalClosed {
        /// The id of the request.
        id: ApprovalId,
        /// The decision.
        decided: DecidedApproval,
        /// The parent session of the requesting session, if that is a sub-agent.
        parent_session: Option<String>,
    },
    /// The flood report changed; `None` if it ended.
    ApprovalFlood(Option<ApprovalFlood>),
    /// The approval rules changed.
    Rules,
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// Creates a hub without sessions.
    pub fn new() -> Self {
        let (changes, _) = broadcast::channel(CHANGES);
        let shared = HubState {
            state: Mutex::default(),
            machine: Mutex::default(),
            answers: Replies::default(),
            rule_changes: Replies::default(),
            reloads: Replies::default(),
            replies: Replies::default(),
            watches_flood: AtomicBool::new(false),
            changes,
            rules: Mutex::default(),
            redaction: ViewerRedaction::new(),
            presence: Presence::new(Timestamp::now()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the connected sessions.
    pub fn connected(&self) -> Vec<ConnectedSession> {
        self.state().connected()
    }

    /// Returns a session, if connected.
    pub fn session(&self, id: &str) -> Option<ConnectedSession> {
        self.state().session(id)
    }

    /// Returns `true` if a connected session is idle.
    pub fn is_idle(&self, session: &str) -> Option<bool> {
        self.state().is_idle(session)
    }

    /// Returns the open approval requests, the oldest first.
    pub fn pending(&self) -> Vec<OpenApproval> {
        self.pending_shared().iter().map(|approval| OpenApproval::clone(approval)).collect()
    }

    /// Returns the open approval requests without copies.
    pub fn pending_shared(&self) -> Vec<Arc<OpenApproval>> {
        self.state().pending()
    }

    /// Returns the number of open requests: of a connected session with its sub-agents, or of a sub-agent.
    pub fn pending_of(&self, session: &str) -> u64 {
        self.state().pending_of(session)
    }

    /// Returns an open approval request.
    pub fn approval(&self, id: &ApprovalId) -> Option<Arc<OpenApproval>> {
        self.state().approval(id)
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.shared.presence
    }

    /// Returns an approval request as this role sees it: without secrets for viewers.
    pub(crate) fn redacted(&self, approval: &Arc<OpenApproval>, role: Role) -> Arc<OpenApproval> {
        self.shared.redaction.approval(approval, role)
    }

    /// Returns the decision on a recently closed request.
    pub fn decision(&self, id: &ApprovalId) -> Option<DecidedApproval> {
        self.state().decision(id)
    }

    /// Returns the flood report, if there are too many requests.
    pub fn flood(&self) -> Option<ApprovalFlood> {
        self.state().flood(Timestamp::now())
    }

    /// Submits an answer, and returns the decision when the session has accepted it.
    ///
    /// # Errors
    /// If the answer does not count: another approver was faster, the request expired, or the option is invalid. If the
    /// session is gone or does not reply, the result is unknown.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session may have received the answer, and accepts it.
    pub async fn answer(&self, id: &ApprovalId, submitted: SubmittedAnswer) -> Result<DecidedApproval, HubError> {
        let delivery = self.state().answer(id, &submitted)?;
        let Delivery { link, connection, id, digest, reference, decided, session, rule } = delivery;
        let message = ServerMessage::Answer { reference, id, digest, answer: submitted.answer };
        let reply = self.shared.answers.ask(&link, connection, reference, message, PATIENCE).await;
        let decided = reply.unwrap_or_else(|failure| {
            Err(match failure {
                NoReply::NotSent => decided
                    .map_or_else(|| HubError::offline(&session), |decided| HubError::already_decided(&decided))
                    .undelivered(),
                NoReply::Disconnected => HubError::new(
                    HubErrorCode::Offline,
                    "the connection to the session was lost; see the audit log for the decision",
                ),
                NoReply::TimedOut => HubError::new(
                    HubErrorCode::TimedOut,
                    "the session did not confirm the answer in time; see the audit log for the decision",
                ),
            })
        })?;
        let kept = match rule {
            None => return Ok(decided),
            Some(Ok(rule)) => self.add_rule(rule).await.map(drop).map_err(|refused| refused.message),
            Some(Err(reason)) => Err(reason.to_owned()),
        };
        Ok(match kept {
            Ok(()) => decided,
            // The answer counts although the rule was not stored.
            Err(reason) => {
                let mut decided = decided;
                decided.reason = format!("{} (counts once; the rule could not be stored: {reason})", decided.reason);
                decided
            }
        })
    }

    /// Sends a command to a session.
    ///
    /// # Errors
    /// If the session is not connected, or does not support the command.
    pub fn send(&self, session: &str, command: Command) -> Result<(), HubError> {
        let (link, _) = self.state().claim_link(session, matches!(command, Command::Prompt(_)))?;
        let message = match command {
            Command::Prompt(text) => ServerMessage::Prompt { text },
            Command::Interrupt => ServerMessage::Interrupt,
            Command::End => ServerMessage::End,
        };
        link.try_send(message).map_err(|_| HubError::offline(session))
    }

    /// Reloads the bundles of all sessions, and returns the results in the order of session ids. A session that does
    /// not reply in time is reported as such.
    ///
    /// # Cancel safety
    /// When the future is dropped, sessions reload all the same.
    pub async fn reload(&self) -> Vec<(String, ReloadResult)> {
        let links = self.state().links();
        join_all(links.into_iter().map(|(session, link, connection)| async move {
            let reload = self.reload_one(link, connection).await;
            (session, reload)
        }))
        .await
    }

    async fn reload_one(&self, link: mpsc::Sender<ServerMessage>, connection: u64) -> ReloadResult {
        let reference = self.state().next_reference();
        let message = ServerMessage::Reload { reference };
        let reply = self.shared.reloads.ask(&link, connection, reference, message, PATIENCE).await;
        reply.unwrap_or_else(|failure| {
            let why = match failure {
                NoReply::NotSent => "the session does not read its messages",
                NoReply::Disconnected => "the connection to the session was lost",
                NoReply::TimedOut => {
                    "the session did not confirm the reload in time; bundles are checked again before the next model call"
                }
            };
            ReloadResult { result: ReloadStatus::NoAnswer, message: Some(why.to_owned()) }
        })
    }

    /// Returns the hooks of a session, if connected.
    pub fn hooks_of(&self, session: &str) -> Option<Vec<Value>> {
        self.state().hooks_of(session)
    }

    /// Subscribes to changes. A subscriber that lags receives an error, and reads everything again.
    pub fn subscribe(&self) -> broadcast::Receiver<HubEvent> {
        self.shared.changes.subscribe()
    }

    /// Adds a session. Messages to it are sent to `link`.
    pub(crate) fn join(
        &self,
        hello: SessionHello,
        place: SessionHost,
        peer: Option<i32>,
        link: mpsc::Sender<ServerMessage>,
    ) -> Result<u64, String> {
        let (connection, changes) = self.state().join(hello, place, peer, link, Timestamp::now())?;
        self.announce(changes);
        Ok(connection)
    }

    pub(crate) fn receive(&self, connection: u64, message: SessionMessage) -> Result<(), String> {
        let now = Timestamp::now();
        let changes = match message {
            SessionMessage::ApprovalRequested { approval } => {
                let nonce = nonce().map_err(|error| format!("no randomness available: {error}"))?;
                self.state().add_request(connection, *approval, nonce, now)
            }
            SessionMessage::ApprovalClosed { id, decision } => {
                self.state().close_request(connection, &id, decision, now)
            }
            SessionMessage::Answered { reference, id, status, decision, by } => {
                let reply = AnswerReply { id, status, decision, by };
                let (answer, changes) = self.state().finish_answer(connection, reply, now);
                self.shared.answers.complete(connection, reference, answer);
                changes
            }
            SessionMessage::RuleChanged { reference, error } => {
                let changed = error.map_or(Ok(()), |error| Err(HubError::new(HubErrorCode::Failed, error)));
                self.shared.rule_changes.complete(connection, reference, changed);
                Vec::new()
            }
            SessionMessage::Reloaded { reference, reload } => {
                self.shared.reloads.complete(connection, reference, reload);
                Vec::new()
            }
            SessionMessage::Rules { rules } => self.state().set_rules(connection, rules),
            SessionMessage::Hooks { hooks } => self.state().set_hooks(connection, hooks),
            SessionMessage::Idle { idle } => self.state().set_idle(connection, idle),
            SessionMessage::Mode { mode } => self.state().set_mode(connection, mode),
            SessionMessage::Hello(_) | SessionMessage::Bye { .. } => Vec::new(),
        };
        self.announce(changes);
        Ok(())
    }

    pub(crate) fn leave(&self, connection: u64) {
        let changes = self.state().leave(connection, Timestamp::now());
        self.shared.answers.leave(connection);
        self.shared.rule_changes.leave(connection);
        self.shared.reloads.leave(connection);
        self.announce(changes);
    }

    fn announce(&self, changes: Vec<HubEvent>) {
        for change in changes {
            if matches!(change, HubEvent::ApprovalFlood(Some(_))) {
                self.watch_flood();
            }
            // There may be no subscribers.
            let _ = self.shared.changes.send(change);
        }
    }

    /// Announces the end of a flood of requests. One task checks until then.
    fn watch_flood(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.shared.watches_flood.swap(true, Ordering::SeqCst) {
            return;
        }
        let hub = Arc::downgrade(&self.shared);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(CALM).await;
                let Some(shared) = hub.upgrade() else { return };
                let hub = Self { shared };
                let now = Timestamp::now();
                let (change, is_busy) = {
                    let mut state = hub.state();
                    (state.flood_change(now), state.flood(now).is_some())
                };
                if !is_busy {
                    hub.shared.watches_flood.store(false, Ordering::SeqCst);
                }
                hub.announce(change.into_iter().collect());
                if !is_busy {
                    return;
                }
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, ConnectedSessions<mpsc::Sender<ServerMessage>>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// A random value that cannot be guessed.
fn nonce() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
