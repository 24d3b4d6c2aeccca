//! Who is connected, and what is asked.
//!
//! What happens is decided in `state.rs`, without I/O. The handle here puts a lock around it, tells whoever listens what has changed, and
//! waits for sessions.

mod busy;
mod rules;
mod state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::Answerer;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};

pub use self::rules::{Kept, KeptRule, NewRule, RuleBook};
pub(crate) use self::rules::{decision, explain};
use self::state::{Delivery, State};
use crate::access::Role;
use crate::action::masked::Masks;
use crate::link::protocol::{Hello, ToServer, ToSession};
use crate::wire::{Approval, Busy, Decided, Place, Reload, Reloaded, Rule, Rules, Scope, Unreadable};

/// How long a session may take to say what became of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
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
    waiting: Mutex<Waiting>,
    changes: broadcast::Sender<Change>,
    book: OnceLock<Arc<dyn RuleBook>>,
    masks: Masks,
}

/// Who waits for what a session says, by reference, with the connection that it is expected from.
#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, (u64, oneshot::Sender<Result<Decided, Refused>>)>,
    rulings: HashMap<u64, (u64, oneshot::Sender<Result<(), Refused>>)>,
    looks: HashMap<u64, (u64, oneshot::Sender<Reloaded>)>,
    watches_busy: bool,
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
    /// How many questions are open.
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
    pub by: Answerer,
    /// For what the answer holds beside this question: nothing, or the project.
    pub scope: Option<Scope>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// A word for programs: `unknown`, `nonce`, `answered`, `late`, `closed`, `not_offered`, `busy`, `too_many`, `unreachable` (the session is not
    /// connected), `silent` (it is, but says nothing), `failed`.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
    /// Who was faster.
    pub by: Option<Answerer>,
    /// Whether no session has taken notice of the answer, so that none has recorded it.
    pub unheard: bool,
}

/// What a session can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// To work on this.
    Prompt(String),
    /// To stop the running turn: the first time when the running tool has finished, then at once.
    Interrupt,
    /// To end.
    End,
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
            waiting: Mutex::default(),
            changes,
            book: OnceLock::new(),
            masks: Masks::new(),
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

    /// A question that is open.
    pub fn approval(&self, id: &str) -> Option<Arc<Approval>> {
        self.state().approval(id)
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
        let (tell, told) = oneshot::channel();
        let delivery = self.state().answer(id, &answering)?;
        let Delivery { link, connection, number, digest, reference, decided, session } = delivery;
        self.waiting().answers.insert(reference, (connection, tell));
        let Answering { option, by, scope, .. } = answering;
        // Nobody waits any more when this ends, however it ends.
        let _forget = Forget(|| _ = self.waiting().answers.remove(&reference));
        if link.try_send(ToSession::Answer { id: number, digest, reference, option, by, scope }).is_err() {
            let refused = decided.map_or_else(|| Refused::gone(&session), |decided| Refused::over(&decided));
            return Err(refused.unheard());
        }
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Refused::new(
                "unreachable",
                "the connection to the session broke; the audit log says what became of the question",
            )),
            Err(_) => Err(Refused::new(
                "silent",
                "the session has not said in time what became of the answer; the audit log will say so",
            )),
        }
    }

    /// The standing answers: of sessions, of projects, of the person; and the files that cannot be read. Blocks while it reads.
    pub fn rules(&self) -> Rules {
        let mut rules = self.state().rules();
        let Kept { rules: kept, unreadable } = self.shared.book.get().map(|book| book.list()).unwrap_or_default();
        rules.extend(kept.iter().map(KeptRule::shown));
        Rules { rules, unreadable }
    }

    /// Adds a standing answer. Sessions go by those in files as they are when a hook asks.
    ///
    /// # Errors
    /// If it is none, or cannot be kept or recorded.
    pub async fn add_rule(&self, rule: NewRule, by: Answerer) -> Result<Rule, Refused> {
        rules::check(&rule.hook, &rule.pattern).map_err(|problem| Refused::new("not_offered", problem))?;
        let NewRule { scope, session, project, hook, pattern, allows } = rule;
        if scope == Scope::Session {
            let session = session.ok_or_else(|| Refused::new("not_offered", "say for which session: `session`"))?;
            let (hook_name, asked) = (hook.clone(), pattern.clone());
            self.ruled(&session, |reference| {
                let decision = decision(allows).to_owned();
                ToSession::Rule { reference, hook, pattern, decision, by }
            })
            .await?;
            let now = self.state().rules();
            let added = now.into_iter().find(|rule| {
                rule.session.as_ref() == Some(&session) && rule.hook == hook_name && rule.pattern == asked
            });
            return added.ok_or_else(|| Refused::new("failed", "the session does not list the rule"));
        }
        let project = match (scope, project) {
            (Scope::Project, None) => return Err(Refused::new("not_offered", "say for which folder: `project`")),
            (Scope::Project, Some(project)) => Some(folder(project).await?),
            _ => None,
        };
        let kept = KeptRule { project, hook, pattern, allows };
        let shown = kept.shown();
        self.in_book(move |book| book.add(&kept, &by)).await?;
        self.told(vec![Change::Rules]);
        Ok(shown)
    }

    /// Takes a standing answer back.
    ///
    /// # Errors
    /// If there is none, or that cannot be kept or recorded.
    pub async fn revoke(&self, id: &str, by: Answerer) -> Result<(), Refused> {
        let rules = self.state().rules();
        if let Some(Rule { session: Some(session), .. }) = rules.into_iter().find(|rule| rule.id == id) {
            let prefix = format!("session.{session}.");
            let rule = id.strip_prefix(&prefix).unwrap_or(id).to_owned();
            return self.ruled(&session, |reference| ToSession::Revoke { reference, rule, by }).await;
        }
        let none = || Refused::new("unknown", format!("there is no rule `{id}`"));
        if self.shared.book.get().is_none() {
            return Err(none());
        }
        let wanted = id.to_owned();
        let (found, unreadable) = self
            .in_book(move |book| {
                let Kept { rules, unreadable } = book.list();
                let kept = rules.into_iter().find(|rule| rule.id() == wanted);
                let found = kept.map_or(Ok(false), |kept| book.revoke(&kept, &by))?;
                Ok((found, unreadable))
            })
            .await?;
        match unreadable.first() {
            _ if found => {}
            None => return Err(none()),
            // It may stand there.
            Some(Unreadable { file, why }) => {
                let message = format!("there is no rule `{id}` where rules can be read, and `{file}` cannot be: {why}");
                return Err(Refused::new("unknown", message));
            }
        }
        self.told(vec![Change::Rules]);
        Ok(())
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
        let no_answer = |why: &str| Reloaded { result: Reload::NoAnswer, message: Some(why.to_owned()) };
        let (tell, told) = oneshot::channel();
        let reference = self.state().next_reference();
        self.waiting().looks.insert(reference, (connection, tell));
        let _forget = Forget(|| _ = self.waiting().looks.remove(&reference));
        if link.try_send(ToSession::Reload { reference }).is_err() {
            return no_answer("the session does not listen");
        }
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(reloaded)) => reloaded,
            Ok(Err(_)) => no_answer("the connection to the session broke"),
            Err(_) => no_answer(
                "the session has not said in time what came of it; it looks again before the next call to the model",
            ),
        }
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
            ToServer::Closed { id, outcome } => self.state().closed(connection, id, outcome, now),
            ToServer::Answered { id, reference, result, outcome, note } => {
                let (answer, changes) = self.state().answered(connection, id, result, outcome, now);
                let answer = answer.map(|decided| match note {
                    Some(note) => Decided { reason: format!("{} ({note})", decided.reason), ..decided },
                    None => decided,
                });
                let mut waiting = self.waiting();
                // Only the session that was asked can say what became of it.
                let is_expected = waiting.answers.get(&reference).is_some_and(|(expected, _)| *expected == connection);
                if let Some((_, tell)) = is_expected.then(|| waiting.answers.remove(&reference)).flatten() {
                    // Whoever asked may have gone.
                    let _ = tell.send(answer);
                }
                changes
            }
            ToServer::Ruled { reference, error } => {
                let mut waiting = self.waiting();
                if waiting.rulings.get(&reference).is_some_and(|(expected, _)| *expected == connection) {
                    let ruled = error.map_or(Ok(()), |error| Err(Refused::new("failed", error)));
                    drop(waiting.rulings.remove(&reference).map(|(_, tell)| tell.send(ruled)));
                }
                Vec::new()
            }
            ToServer::Reloaded { reference, reloaded } => {
                let mut waiting = self.waiting();
                if waiting.looks.get(&reference).is_some_and(|(expected, _)| *expected == connection) {
                    drop(waiting.looks.remove(&reference).map(|(_, tell)| tell.send(reloaded)));
                }
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
        {
            // Whoever waits for it learns that by the closed channel.
            let mut waiting = self.waiting();
            waiting.answers.retain(|_, (expected, _)| *expected != connection);
            waiting.rulings.retain(|_, (expected, _)| *expected != connection);
            waiting.looks.retain(|_, (expected, _)| *expected != connection);
        }
        self.told(changes);
    }

    /// Has a session change one of its standing answers, and waits until it has.
    async fn ruled(&self, session: &str, message: impl FnOnce(u64) -> ToSession) -> Result<(), Refused> {
        let (tell, told) = oneshot::channel();
        let ((link, connection), reference) = {
            let mut state = self.state();
            (state.reach(session, false)?, state.next_reference())
        };
        self.waiting().rulings.insert(reference, (connection, tell));
        let _forget = Forget(|| _ = self.waiting().rulings.remove(&reference));
        link.try_send(message(reference)).map_err(|_| Refused::gone(session))?;
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(ruled)) => ruled,
            Ok(Err(_)) => Err(Refused::gone(session)),
            Err(_) => Err(Refused::new("silent", "the session has not said in time whether the rule is changed")),
        }
    }

    /// Looks into the book, where that may take a while.
    async fn in_book<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn RuleBook) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Refused> {
        let Some(book) = self.shared.book.get().cloned() else {
            return Err(Refused::new("failed", "this server keeps no rules for projects and persons"));
        };
        let done = tokio::task::spawn_blocking(move || act(&*book)).await;
        done.unwrap_or_else(|error| Err(error.to_string())).map_err(|error| Refused::new("failed", error))
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
        if std::mem::replace(&mut self.waiting().watches_busy, true) {
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
                    hub.waiting().watches_busy = false;
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

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// The folder that a rule holds for, as sessions name it.
async fn folder(named: String) -> Result<String, Refused> {
    let none = |why: String| Refused::new("not_offered", format!("`{named}` cannot be a project: {why}"));
    let path = named.clone();
    let found = tokio::task::spawn_blocking(move || std::path::Path::new(&path).canonicalize()).await;
    let found = found.map_err(|error| none(error.to_string()))?.map_err(|error| none(error.to_string()))?;
    if !found.is_dir() || !std::path::Path::new(&named).is_absolute() {
        return Err(none("it has to be the whole path of a folder".to_owned()));
    }
    found.into_os_string().into_string().map_err(|_| none("its name is not text".to_owned()))
}

/// Does something when it is dropped.
struct Forget<F: FnMut()>(F);

impl<F: FnMut()> Drop for Forget<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Something that nobody can guess.
fn nonce() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
