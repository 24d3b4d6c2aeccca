//! Who is connected, and what is asked.
//!
//! What happens is decided in `state.rs`, without I/O. The handle here puts a lock around it, tells whoever listens what has changed, and
//! waits for sessions.

mod busy;
mod presence;
mod refused;
mod replies;
mod rules;
mod state;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::{Actor, RuleScope};
pub use amplifier_link::{Command, Kept, RuleBook};
use amplifier_link::{Hello, ToServer, ToSession};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};

use self::presence::Presence;
pub use self::refused::Refused;
use self::replies::{Replies, Silence};
use self::state::{Delivery, Spoken, State};
use crate::access::Role;
use crate::masked::Masks;
use crate::wire::{Approval, Busy, Decided, Place, Reload, Reloaded};

/// How many changes wait for a listener that does not keep up. It is told that it missed some, and reads all again.
const CHANGES: usize = 4096;
/// How often is looked whether there are still too many questions.
const CALM: Duration = Duration::from_secs(1);

/// Who is connected, and what is asked. A handle: clones share the same state.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State<mpsc::Sender<ToSession>>>,
    /// What sessions say became of answers, of changes of their rules, and of looks at their bundles.
    answers: Replies<Result<Decided, Refused>>,
    rulings: Replies<Result<(), Refused>>,
    looks: Replies<Reloaded>,
    watches_busy: AtomicBool,
    changes: broadcast::Sender<Change>,
    book: OnceLock<Arc<dyn RuleBook>>,
    /// What stood in the book when somebody looked last.
    kept: Mutex<Option<Kept>>,
    masks: Masks,
    presence: Presence,
}

/// A session that is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its id.
    pub session: String,
    /// Its name.
    pub name: Option<String>,
    /// Its process.
    pub pid: u32,
    /// The folder that it works in.
    pub workspace: String,
    /// Where it runs.
    pub place: Place,
    /// Whether it takes prompts.
    pub takes_prompts: bool,
    /// When it began.
    pub begun_at: Timestamp,
    /// How many questions are open, with those of its sub-agents.
    pub pending: u64,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    /// The label of an option.
    pub option: String,
    /// The nonce of the question.
    pub nonce: String,
    /// Who answers.
    pub by: Actor,
    /// For what the answer holds beside this question: nothing, or the project.
    pub scope: Option<RuleScope>,
}

/// What has changed.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few thousand are kept at most, and boxes would be in the way of all who match"
)]
pub enum Change {
    /// Something about a session: whether it is connected, how many questions are open, whether it is idle.
    Session(String),
    /// There is a question.
    Asked(Arc<Approval>),
    /// A question is no longer open.
    Closed {
        /// Its id.
        id: String,
        /// What became of it.
        decided: Decided,
        /// The session that the one that asked works for, if it is a sub-agent.
        within: Option<String>,
    },
    /// There are too many questions, or no longer.
    Busy(Option<Busy>),
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
        let shared = Shared {
            state: Mutex::default(),
            answers: Replies::default(),
            rulings: Replies::default(),
            looks: Replies::default(),
            watches_busy: AtomicBool::new(false),
            changes,
            book: OnceLock::new(),
            kept: Mutex::default(),
            masks: Masks::new(),
            presence: Presence::new(Timestamp::now()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Keeps standing answers in these files, and lists what is in them. Without, there are those of sessions alone. The first book
    /// stays.
    pub fn keep_rules(&self, book: Arc<dyn RuleBook>) {
        let _ = self.shared.book.set(book);
    }

    /// Who is connected.
    pub fn connected(&self) -> Vec<Connected> {
        self.state().connected()
    }

    /// One session, if it is connected.
    pub fn session(&self, id: &str) -> Option<Connected> {
        self.state().session(id)
    }

    /// Whether a session waits for a prompt, if it is connected.
    pub fn is_idle(&self, session: &str) -> Option<bool> {
        self.state().is_idle(session)
    }

    /// What is asked, the oldest first.
    pub fn pending(&self) -> Vec<Approval> {
        self.pending_shared().iter().map(|approval| Approval::clone(approval)).collect()
    }

    /// The same, without copies.
    pub fn pending_shared(&self) -> Vec<Arc<Approval>> {
        self.state().pending()
    }

    /// How many questions of a session are open: of one that is connected with those of its sub-agents, or of a sub-agent.
    pub fn pending_of(&self, session: &str) -> u64 {
        self.state().pending_of(session)
    }

    /// A question that is open.
    pub fn approval(&self, id: &str) -> Option<Arc<Approval>> {
        self.state().approval(id)
    }

    /// Who was seen connected.
    pub(crate) fn presence(&self) -> &Presence {
        &self.shared.presence
    }

    /// A question as somebody of that role sees it: without secrets for those who cannot answer.
    pub(crate) fn shown(&self, approval: &Arc<Approval>, role: Role) -> Arc<Approval> {
        self.shared.masks.approval(approval, role)
    }

    /// What became of a question that was closed not long ago.
    pub fn decided(&self, id: &str) -> Option<Decided> {
        self.state().decided(id)
    }

    /// Whether there are too many questions.
    pub fn busy(&self) -> Option<Busy> {
        self.state().busy(Timestamp::now())
    }

    /// Answers a question, and says what became of it when the session's kernel has taken the answer.
    ///
    /// # Errors
    /// If it does not count: somebody was faster, it is too late, or it is none of what was asked. If the session is gone or says nothing, it
    /// is not known whether it counts.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session may have the answer, and takes it.
    pub async fn answer(&self, id: &str, answering: Answering) -> Result<Decided, Refused> {
        let delivery = self.state().answer(id, &answering)?;
        let Delivery { link, connection, number, digest, reference, decided, session } = delivery;
        let Answering { option, by, scope, .. } = answering;
        let message = ToSession::Answer { id: number, digest, reference, option, by, scope };
        let told = self.shared.answers.ask(&link, connection, reference, message).await;
        told.unwrap_or_else(|silence| {
            Err(match silence {
                Silence::Deaf => {
                    decided.map_or_else(|| Refused::gone(&session), |decided| Refused::over(&decided)).unheard()
                }
                Silence::Gone => Refused::new(
                    "unreachable",
                    "the connection to the session broke; the audit log says what became of the question",
                ),
                Silence::Slow => Refused::new(
                    "silent",
                    "the session has not said in time what became of the answer; the audit log will say so",
                ),
            })
        })
    }

    /// Tells a session something.
    ///
    /// # Errors
    /// If it is not connected, or does not do that.
    pub fn tell(&self, session: &str, command: Command) -> Result<(), Refused> {
        let (link, _) = self.state().reach(session, matches!(command, Command::Prompt(_)))?;
        let message = match command {
            Command::Prompt(text) => ToSession::Prompt { text },
            Command::Interrupt => ToSession::Interrupt,
            Command::End => ToSession::End,
        };
        link.try_send(message).map_err(|_| Refused::gone(session))
    }

    /// Has every session look at its bundles at once, and says what came of it in each, in the order of their ids. One that does not say so in
    /// time is named as such.
    ///
    /// # Cancel safety
    /// When the future is dropped, sessions look all the same.
    pub async fn reload(&self) -> Vec<(String, Reloaded)> {
        let everyone = self.state().everyone();
        join_all(everyone.into_iter().map(|(session, link, connection)| async move {
            let reloaded = self.look(link, connection).await;
            (session, reloaded)
        }))
        .await
    }

    async fn look(&self, link: mpsc::Sender<ToSession>, connection: u64) -> Reloaded {
        let reference = self.state().next_reference();
        let told = self.shared.looks.ask(&link, connection, reference, ToSession::Reload { reference }).await;
        told.unwrap_or_else(|silence| {
            let why = match silence {
                Silence::Deaf => "the session does not listen",
                Silence::Gone => "the connection to the session broke",
                Silence::Slow => {
                    "the session has not said in time what came of it; it looks again before the next call to the model"
                }
            };
            Reloaded { result: Reload::NoAnswer, message: Some(why.to_owned()) }
        })
    }

    /// The hooks of a session, if it is connected.
    pub fn hooks_of(&self, session: &str) -> Option<Vec<Value>> {
        self.state().hooks_of(session)
    }

    /// What changes from now on. Whoever does not keep up is told so, and reads everything again.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// A session connects. What it is to be told goes into `link`.
    pub(crate) fn join(
        &self,
        hello: Hello,
        place: Place,
        peer: Option<i32>,
        link: mpsc::Sender<ToSession>,
    ) -> Result<u64, String> {
        let (connection, changes) = self.state().join(hello, place, peer, link, Timestamp::now())?;
        self.told(changes);
        Ok(connection)
    }

    /// A session says something.
    pub(crate) fn heard(&self, connection: u64, message: ToServer) -> Result<(), String> {
        let now = Timestamp::now();
        let changes = match message {
            ToServer::Asked { approval } => {
                let nonce = nonce().map_err(|error| format!("there is no randomness: {error}"))?;
                self.state().asked(connection, *approval, nonce, now)
            }
            ToServer::Closed { id, session, outcome } => {
                self.state().closed(connection, &Spoken { number: id, session }, outcome, now)
            }
            ToServer::Answered { id, session, reference, result, outcome, note } => {
                let spoken = Spoken { number: id, session };
                let (answer, changes) = self.state().answered(connection, &spoken, result, outcome, now);
                let answer = answer.map(|decided| match note {
                    Some(note) => Decided { reason: format!("{} ({note})", decided.reason), ..decided },
                    None => decided,
                });
                self.shared.answers.said(connection, reference, answer);
                changes
            }
            ToServer::Ruled { reference, error } => {
                let ruled = error.map_or(Ok(()), |error| Err(Refused::new("failed", error)));
                self.shared.rulings.said(connection, reference, ruled);
                Vec::new()
            }
            ToServer::Reloaded { reference, reloaded } => {
                self.shared.looks.said(connection, reference, reloaded);
                Vec::new()
            }
            ToServer::Rules { rules } => self.state().set_rules(connection, rules),
            ToServer::Hooks { hooks } => self.state().set_hooks(connection, hooks),
            ToServer::Idle { idle } => self.state().set_idle(connection, idle),
            ToServer::Hello(_) | ToServer::Bye { .. } => Vec::new(),
        };
        self.told(changes);
        Ok(())
    }

    /// A connection is gone.
    pub(crate) fn leave(&self, connection: u64) {
        let changes = self.state().leave(connection, Timestamp::now());
        self.shared.answers.leave(connection);
        self.shared.rulings.leave(connection);
        self.shared.looks.leave(connection);
        self.told(changes);
    }

    fn told(&self, changes: Vec<Change>) {
        for change in changes {
            if matches!(change, Change::Busy(Some(_))) {
                self.watch_busy();
            }
            // Nobody may be listening.
            let _ = self.shared.changes.send(change);
        }
    }

    /// Tells when there are no longer too many questions. Until then, one task looks.
    fn watch_busy(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.shared.watches_busy.swap(true, Ordering::SeqCst) {
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
                    (state.told_busy(now), state.busy(now).is_some())
                };
                if !is_busy {
                    hub.shared.watches_busy.store(false, Ordering::SeqCst);
                }
                hub.told(change.into_iter().collect());
                if !is_busy {
                    return;
                }
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State<mpsc::Sender<ToSession>>> {
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
