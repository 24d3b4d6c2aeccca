//! Sessions: what a turn needs, from the first event to the seal.

mod builder;
mod export;
mod journal;
mod store;

pub(crate) use builder::new_id;
pub use builder::{SessionBuilder, SessionError};
pub use export::SessionExport;
pub use store::{Store, StoreError, StoredSession};

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amplifier_audit::Log;
use amplifier_core::{
    Coordinator, Map, Message, SESSION_END, SessionEnd, ToolCall, USER_NOTIFICATION, UserNotification, data, words,
};
use serde_json::Value;

use self::journal::Journal;
use crate::cancel::Cancel;
use crate::compact;
use crate::context::{SessionContext, with_all_results};
use crate::observer::SessionObserver;
use crate::provider::{ContextTag, Provider, TokenUsage, ToolSpec};
use crate::tool::Tool;
use crate::turn::{self, Stop, ToolResult, TurnEnd, VerdictExt};

words! {
    /// How answers reach the person and the hooks.
    #[derive(Default)]
    pub enum Orchestrator("orchestrator") {
        /// When they are complete.
        Basic = "loop-basic",
        /// Piece by piece. Where a hook may change answers, the person sees them when it has.
        #[default]
        Streaming = "loop-streaming",
    }
}

/// Limits of a session. Sub-agents share them.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOptions {
    /// How often the model is asked in one turn, at most.
    pub steps: u64,
    /// How many tokens the session may use; none means no limit.
    pub tokens: Option<u64>,
    /// How often a failed call is tried again.
    pub retries: u32,
    /// How long is waited before the first of these; twice as long before each further one.
    pub retry_delay: Duration,
    /// How long one call may take.
    pub call_timeout: Duration,
    /// How many agents may delegate to one another.
    pub depth: usize,
    /// Compaction begins when this part of what the model can read is full.
    pub compact_above: f64,
    /// What compaction aims for.
    pub compact_to: f64,
    /// Parameters of calls: `temperature`, `max_tokens`, …
    pub parameters: Map,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            steps: 100,
            tokens: None,
            retries: 4,
            retry_delay: Duration::from_secs(1),
            call_timeout: Duration::from_secs(600),
            depth: 3,
            compact_above: 0.8,
            compact_to: 0.4,
            parameters: Map::new(),
        }
    }
}

/// An agent at work: prompts go in, answers come out, and hooks stand around everything between.
///
/// ```
/// use std::sync::Arc;
///
/// use amplifier_agent::provider::{ScriptedResponse, Script, ScriptedProvider};
/// use amplifier_agent::{Session, TurnEnd};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let provider = ScriptedProvider::new(Script::new([ScriptedResponse::text("Good morning.")]));
/// let session = Session::builder(Arc::new(provider)).start().await?;
/// assert_eq!(session.prompt("Hello").await, TurnEnd::Answered("Good morning.".to_owned()));
/// session.end("complete").await?;
/// # Ok(()) }
/// ```
pub struct Session {
    core: Core,
    /// One turn at a time: two would tear the conversation apart. Says whether the session has ended.
    turn: tokio::sync::Mutex<bool>,
}

/// What becomes of a turn that was asked for too late.
const SESSION_ENDED: &str = "the session has ended";

/// What a turn works with.
pub(crate) struct Core {
    pub(crate) id: String,
    pub(crate) coordinator: Coordinator,
    pub(crate) context: SessionContext,
    pub(crate) provider: Arc<dyn Provider>,
    /// The tag in which hooks speak to the model.
    pub(crate) tag: ContextTag,
    pub(crate) tools: BTreeMap<String, Arc<dyn Tool>>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) options: SessionOptions,
    pub(crate) observer: Arc<dyn SessionObserver>,
    pub(crate) cancel: Cancel,
    pub(crate) audit: Option<Log>,
    /// How many agents delegated before this one.
    pub(crate) depth: usize,
    /// Shared with sub-agents.
    pub(crate) budget: Arc<BudgetUsage>,
    pub(crate) mount_plan: Map,
    pub(crate) started: Instant,
    pub(crate) turns: AtomicU64,
    pub(crate) tool_calls: AtomicU64,
    pub(crate) own_tokens: AtomicU64,
    /// Whether a hook has put off compaction.
    pub(crate) compaction_deferred: AtomicBool,
    /// One sub-agent at a time is put to hooks, so that what they inject reaches the right one.
    pub(crate) delegation: tokio::sync::Mutex<()>,
    // A std lock: nothing awaits while it is held.
    pub(crate) journal: Mutex<Option<Journal>>,
}

/// What a session and its sub-agents have used of what they may use.
#[derive(Default)]
pub(crate) struct BudgetUsage {
    steps: AtomicU64,
    tokens: AtomicU64,
}

impl Session {
    fn new(core: Core) -> Self {
        Self { core, turn: tokio::sync::Mutex::default() }
    }

    /// Begins a session with a model.
    pub fn builder(provider: Arc<dyn Provider>) -> SessionBuilder {
        SessionBuilder::new(provider)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Emits events and routes what hooks say.
    pub fn coordinator(&self) -> &Coordinator {
        &self.core.coordinator
    }

    /// Stops the running turn.
    pub fn cancel(&self) -> &Cancel {
        &self.core.cancel
    }

    /// The conversation so far.
    pub fn history(&self) -> Vec<Message> {
        self.core.context.conversation.history()
    }

    /// Tokens used so far, sub-agents included.
    pub fn tokens(&self) -> u64 {
        self.core.budget.tokens.load(Ordering::Relaxed)
    }

    /// Runs a turn: from a prompt to an answer. A turn that runs already is waited for.
    ///
    /// # Cancel safety
    /// Dropping the future stops tools and calls at once, but leaves their end out of the record; use [`cancel`](Self::cancel) to
    /// stop a turn.
    pub async fn prompt(&self, prompt: &str) -> TurnEnd {
        self.prompt_with(prompt, Map::new()).await
    }

    /// The same, with more that hooks may want to know about the prompt.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    pub async fn prompt_with(&self, prompt: &str, metadata: Map) -> TurnEnd {
        let has_ended = self.turn.lock().await;
        if *has_ended {
            return TurnEnd::Failed(SESSION_ENDED.to_owned());
        }
        turn::run(&self.core, prompt, metadata).await
    }

    /// Uses a tool outside of a turn: hooks stand around it as they do in one, and the conversation has the call and its result. A turn that
    /// runs is waited for.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    pub async fn execute_tool(&self, name: &str, input: Map) -> ToolResult {
        let has_ended = self.turn.lock().await;
        let call = ToolCall { id: new_id(), name: name.to_owned(), input: Value::Object(input) };
        if *has_ended {
            return ToolResult::not_started(call, SESSION_ENDED);
        }
        self.core.coordinator.begin_turn();
        self.core.begin();
        turn::run_single_call(&self.core, call).await
    }

    /// Adds a message to the conversation, which the model reads with the next prompt.
    pub fn add_message(&self, message: Message) {
        self.core.push(message);
    }

    /// The names of its tools.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.core.tools.keys().map(String::as_str)
    }

    /// Shortens the conversation to a summary now. A turn that runs is waited for.
    ///
    /// # Errors
    /// What kept it from being shortened; it is as it was then.
    pub async fn compact(&self) -> Result<(), TurnEnd> {
        let has_ended = self.turn.lock().await;
        if *has_ended {
            return Err(TurnEnd::Failed(SESSION_ENDED.to_owned()));
        }
        self.core.begin();
        compact::now(&self.core).await.map_err(Into::into)
    }

    /// Tells hooks that a person should look: `awaiting_input`, `error`, `alert`.
    pub async fn notify(&self, kind: &str, message: &str) {
        self.core.notify(kind, message).await;
    }

    /// Ends the session: `complete`, `user_exit`, `error` or `timeout`. Its part of the audit log is sealed.
    ///
    /// # Errors
    /// If it cannot be sealed.
    pub async fn end(self, reason: &str) -> Result<(), SessionError> {
        self.core.end(reason).await
    }

    /// The same for whoever shares the session with others, who may still read what was said. A turn that runs is waited for; no other one
    /// begins, also none that was asked for before.
    ///
    /// # Errors
    /// As [`end`](Self::end).
    pub async fn end_shared(&self, reason: &str) -> Result<(), SessionError> {
        let mut has_ended = self.turn.lock().await;
        if *has_ended {
            return Ok(());
        }
        let ended = self.core.end(reason).await;
        *has_ended = true;
        // Somebody else may go on with it.
        drop(self.core.journal.lock().unwrap_or_else(PoisonError::into_inner).take());
        ended
    }
}

impl Core {
    /// Begins a turn, and says which it is.
    pub(crate) fn begin_turn(&self) -> u64 {
        if self.depth == 0 {
            self.coordinator.begin_turn();
            self.begin();
        }
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        self.journal(|journal| {
            // What is new belongs to the turn before.
            let written = journal.save(&self.context.conversation);
            journal.turn = turn;
            written
        });
        turn
    }

    /// Leaves behind what is over: that somebody stopped the last turn, the calls that it took, and a catch of injections that was
    /// given up with it.
    fn begin(&self) {
        self.cancel.clear();
        self.budget.steps.store(0, Ordering::Relaxed);
        drop(self.context.take_injections());
        // A turn whose future was dropped may have left calls without results.
        let history = self.context.conversation.history();
        let whole = with_all_results(history.clone());
        if whole != history {
            self.restore(whole);
        }
    }

    /// Takes one call to the model from what is left.
    pub(crate) fn spend_step(&self) -> Result<(), Stop> {
        let SessionOptions { steps, tokens, .. } = &self.options;
        if self.budget.steps.fetch_add(1, Ordering::Relaxed) >= *steps {
            return Err(Stop::Failed(format!("the model was asked {steps} times in this turn, which is the limit")));
        }
        match tokens {
            Some(limit) if self.budget.tokens.load(Ordering::Relaxed) >= *limit => {
                Err(Stop::Failed(format!("the session has used its {limit} tokens")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn count_tokens(&self, usage: &TokenUsage) {
        let used = usage.input_tokens.saturating_add(usage.output_tokens);
        for count in [&self.budget.tokens, &self.own_tokens] {
            // However many a model claims, they do not become few again.
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_add(used)));
        }
    }

    pub(crate) fn count_tool(&self) {
        self.tool_calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn tool_specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec()).collect()
    }

    /// Adds to the conversation.
    pub(crate) fn push(&self, message: Message) {
        self.context.conversation.push(message);
        self.save();
    }

    /// Puts another history in the place of the one so far.
    pub(crate) fn restore(&self, history: Vec<Message>) {
        self.save();
        self.context.conversation.restore(history);
        self.journal(|journal| journal.replace(&self.context.conversation));
    }

    /// Writes down what was added to the conversation.
    pub(crate) fn save(&self) {
        self.journal(|journal| journal.save(&self.context.conversation));
    }

    /// Whoever watches is told when the conversation cannot be written down any more, and when it can be again.
    fn journal(&self, act: impl FnOnce(&mut Journal) -> io::Result<()>) {
        let written = {
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(journal) = journal.as_mut() else { return };
            let written = act(journal);
            let is_news = journal.is_failing != written.is_err();
            journal.is_failing = written.is_err();
            is_news.then_some(written)
        };
        match written {
            Some(Err(error)) => {
                tracing::error!(part = "store", %error, "the conversation cannot be written down");
                self.observer.warning(&format!(
                    "the conversation cannot be written down: {error}; it is tried again with every message"
                ));
            }
            Some(Ok(())) => {
                tracing::info!(part = "store", "the conversation is written down again");
                self.observer.note("the conversation is written down again, nothing of it is missing");
            }
            None => {}
        }
    }

    pub(crate) async fn notify(&self, kind: &str, message: &str) {
        let notification = UserNotification::new(kind, message).with("metadata", Map::new());
        self.coordinator.emit(USER_NOTIFICATION, notification).await.ignore();
    }

    pub(crate) async fn end(&self, reason: &str) -> Result<(), SessionError> {
        let stats = data! {
            "total_messages": self.context.conversation.history().len(),
            "tool_invocations": self.tool_calls.load(Ordering::Relaxed),
            "total_tokens": self.own_tokens.load(Ordering::Relaxed),
        };
        let duration = self.started.elapsed().as_millis() as u64;
        self.coordinator.emit(SESSION_END, SessionEnd::new(reason, duration, stats)).await.ignore();
        self.journal(|journal| journal.end(&self.context.conversation, reason));
        match &self.audit {
            Some(log) => log.seal(&self.id, reason).await.map_err(SessionError::NotSealed),
            None => Ok(()),
        }
    }
}
