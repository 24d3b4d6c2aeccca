//! Who is connected, and what is asked.
//!
//! What happens is decided in `state.rs`, without I/O. The handle here puts a lock around it, tells whoever listens what has changed, and
//! waits for sessions.

mod error;
mod flood;
mod machine;
mod presence;
mod queue;
mod replies;
mod rules;
mod state;
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

pub use self::error::{HubError, HubErrorCode};
use self::presence::Presence;
use self::replies::{NoReply, Replies};
use self::state::{Delivery, State};
use crate::access::Role;
use crate::redact::ViewerRedaction;
use crate::wire::{ApprovalFlood, SessionHost};

/// How many changes wait for a listener that does not keep up. It is told that it missed some, and reads all again.
const CHANGES: usize = 4096;
/// The time that a session has to reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether there are still too many questions.
const CALM: Duration = Duration::from_secs(1);

/// Who is connected, and what is asked. A handle: clones share the same state.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<HubState>,
}

struct HubState {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State<mpsc::Sender<ServerMessage>>>,
    // A std lock: nothing awaits while it is held.
    machine: Mutex<Option<machine::ConnectedMachine>>,
    /// The replies of sessions to answers, changes of rules and reloads, and of the machine.
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

/// A session that is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedSession {
    /// Its id.
    pub session: String,
    /// Its name.
    pub name: Option<String>,
    /// Its process.
    pub pid: u32,
    /// The folder that it works in.
    pub workspace: String,
    /// Where it runs.
    pub place: SessionHost,
    /// Whether it takes prompts.
    pub takes_prompts: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// How many questions are open, with those of its sub-agents.
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

/// What has changed.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few thousand are kept at most, and boxes would be in the way of all who match"
)]
pub enum HubEvent {
    /// Something about a session: whether it is connected, how many questions are open, whether it is idle.
    Session(String),
    /// An approval request is open.
    ApprovalRequested(Arc<OpenApproval>),
    /// An approval request is closed.
    ApprovalClosed {
        /// Its id.
        id: ApprovalId,
        /// The decision.
        decided: DecidedApproval,
        /// The session that the one that asked works for, if it is a sub-agent.
        parent_session: Option<String>,
    },
    /// There are too many questions, or no longer.
    ApprovalFlood(Option<ApprovalFlood>),
    /// The standing answers.
    Rules,
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// One where nobody is connected.
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

    /// Who is connected.
    pub fn connected(&self) -> Vec<ConnectedSession> {
        self.state().connected()
    }

    /// One session, if it is connected.
    pub fn session(&self, id: &str) -> Option<ConnectedSession> {
        self.state().session(id)
    }

    /// Whether a session waits for a prompt, if it is connected.
    pub fn is_idle(&self, session: &str) -> Option<bool> {
        self.state().is_idle(session)
    }

    /// What is asked, the oldest first.
    pub fn pending(&self) -> Vec<OpenApproval> {
        self.pending_shared().iter().map(|approval| OpenApproval::clone(approval)).collect()
    }

    /// The same, without copies.
    pub fn pending_shared(&self) -> Vec<Arc<OpenApproval>> {
        self.state().pending()
    }

    /// How many questions of a session are open: of one that is connected with those of its sub-agents, or of a sub-agent.
    pub fn pending_of(&self, session: &str) -> u64 {
        self.state().pending_of(session)
    }

    /// A question that is open.
    pub fn approval(&self, id: &ApprovalId) -> Option<Arc<OpenApproval>> {
        self.state().approval(id)
    }

    /// Who was seen connected.
    pub(crate) fn presence(&self) -> &Presence {
        &self.shared.presence
    }

    /// A question as somebody of that role sees it: without secrets for those who cannot answer.
    pub(crate) fn redacted(&self, approval: &Arc<OpenApproval>, role: Role) -> Arc<OpenApproval> {
        self.shared.redaction.approval(approval, role)
    }

    /// What became of a question that was closed not long ago.
    pub fn decision(&self, id: &ApprovalId) -> Option<DecidedApproval> {
        self.state().decision(id)
    }

    /// Whether there are too many questions.
    pub fn flood(&self) -> Option<ApprovalFlood> {
        self.state().flood(Timestamp::now())
    }

    /// Answers a question, and says what became of it when the session's kernel has taken the answer.
    ///
    /// # Errors
    /// If it does not count: somebody was faster, it is too late, or it is none of what was asked. If the session is gone or says nothing, it
    /// is not known whether it counts.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session may have the answer, and takes it.
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
                    "the connection to the session broke; the audit log says what became of the question",
                ),
                NoReply::TimedOut => HubError::new(
                    HubErrorCode::TimedOut,
                    "the session has not said in time what became of the answer; the audit log will say so",
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
            // The answer counts all the same.
            Err(reason) => {
                let mut decided = decided;
                decided.reason = format!("{} (it counts once, because no rule can be kept: {reason})", decided.reason);
                decided
            }
        })
    }

    /// Tells a session something.
    ///
    /// # Errors
    /// If it is not connected, or does not do that.
    pub fn send(&self, session: &str, command: Command) -> Result<(), HubError> {
        let (link, _) = self.state().reach(session, matches!(command, Command::Prompt(_)))?;
        let message = match command {
            Command::Prompt(text) => ServerMessage::Prompt { text },
            Command::Interrupt => ServerMessage::Interrupt,
            Command::End => ServerMessage::End,
        };
        link.try_send(message).map_err(|_| HubError::offline(session))
    }

    /// Reloads the bundles of every session, and returns the results in the order of the sessions' ids. A session that does not reply in time is
    /// named as such.
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
                NoReply::NotSent => "the session does not listen",
                NoReply::Disconnected => "the connection to the session broke",
                NoReply::TimedOut => {
                    "the session has not said in time what came of it; it looks again before the next call to the model"
                }
            };
            ReloadResult { result: ReloadStatus::NoAnswer, message: Some(why.to_owned()) }
        })
    }

    /// The hooks of a session, if it is connected.
    pub fn hooks_of(&self, session: &str) -> Option<Vec<Value>> {
        self.state().hooks_of(session)
    }

    /// What changes from now on. Whoever does not keep up is told so, and reads everything again.
    pub fn subscribe(&self) -> broadcast::Receiver<HubEvent> {
        self.shared.changes.subscribe()
    }

    /// A session connects. What it is to be told goes into `link`.
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

    /// A session says something.
    pub(crate) fn receive(&self, connection: u64, message: SessionMessage) -> Result<(), String> {
        let now = Timestamp::now();
        let changes = match message {
            SessionMessage::ApprovalRequested { approval } => {
                let nonce = nonce().map_err(|error| format!("there is no randomness: {error}"))?;
                self.state().add_request(connection, *approval, nonce, now)
            }
            SessionMessage::ApprovalClosed { id, decision } => {
                self.state().close_request(connection, &id, decision, now)
            }
            SessionMessage::Answered { reference, id, status, decision } => {
                let (answer, changes) = self.state().finish_answer(connection, &id, status, decision, now);
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
            SessionMessage::Hello(_) | SessionMessage::Bye { .. } => Vec::new(),
        };
        self.announce(changes);
        Ok(())
    }

    /// A connection is gone.
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
            // Nobody may be listening.
            let _ = self.shared.changes.send(change);
        }
    }

    /// Tells when there are no longer too many questions. Until then, one task looks.
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

    fn state(&self) -> MutexGuard<'_, State<mpsc::Sender<ServerMessage>>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// Something that nobody can guess.
fn nonce() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
