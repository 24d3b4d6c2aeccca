//! Sessions, from the first event to the seal.

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
use crate::tokens::TokenEstimate;
use crate::tool::Tool;
use crate::turn::{self, Stop, ToolResult, TurnEnd, VerdictExt};

words! {
    /// The delivery of responses to the user and the hooks.
    #[derive(Default)]
    pub enum Orchestrator("orchestrator") {
        /// Responses are delivered when they are complete.
        Basic = "loop-basic",
        /// Responses are streamed. If a hook may change them, the user sees them after that hook.
        #[default]
        Streaming = "loop-streaming",
    }
}

/// Limits of a session. Sub-agents share them.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOptions {
    /// The largest number of model calls in one turn.
    pub steps: u64,
    /// The largest number of tokens of the session; unlimited if none.
    pub tokens: Option<u64>,
    /// The number of retries of a failed call.
    pub retries: u32,
    /// The delay before the first retry, doubled for each further one.
    pub retry_delay: Duration,
    /// The time limit of one call.
    pub call_timeout: Duration,
    /// The largest depth of delegation.
    pub depth: usize,
    /// The share of the context window at which compaction starts.
    pub compact_above: f64,
    /// The share of the context window that compaction aims for.
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

/// A running agent: takes prompts and returns responses. Hooks run around every step between.
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
    /// Ensures one turn at a time. `true` after the session has ended.
    turn: tokio::sync::Mutex<bool>,
}

const SESSION_ENDED: &str = "the session has ended";

pub(crate) struct Core {
    pub(crate) id: String,
    pub(crate) coordinator: Coordinator,
    pub(crate) context: SessionContext,
    pub(crate) provider: Arc<dyn Provider>,
    /// The tag around text of hooks in requests to the model.
    pub(crate) tag: ContextTag,
    pub(crate) tools: BTreeMap<String, Arc<dyn Tool>>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) options: SessionOptions,
    pub(crate) observer: Arc<dyn SessionObserver>,
    pub(crate) cancel: Cancel,
    pub(crate) audit: Option<Log>,
    /// The number of delegations above this agent.
    pub(crate) depth: usize,
    pub(crate) budget: Arc<BudgetUsage>,
    pub(crate) mount_plan: Map,
    pub(crate) started: Instant,
    pub(crate) turns: AtomicU64,
    pub(crate) tool_calls: AtomicU64,
    pub(crate) own_tokens: AtomicU64,
    pub(crate) compaction_deferred: AtomicBool,
    pub(crate) tokens: TokenEstimate,
    /// Serializes the events of sub-agents, so that injections reach the right one.
    pub(crate) delegation: tokio::sync::Mutex<()>,
    // A std lock: nothing awaits while it is held.
    pub(crate) journal: Mutex<Option<Journal>>,
}

/// The steps and tokens that a session and its sub-agents have used, and their denials.
#[derive(Default)]
pub(crate) struct BudgetUsage {
    steps: AtomicU64,
    tokens: AtomicU64,
    denials: AtomicU64,
}

impl Session {
    fn new(core: Core) -> Self {
        Self { core, turn: tokio::sync::Mutex::default() }
    }

    /// Returns a builder for a session with this model.
    pub fn builder(provider: Arc<dyn Provider>) -> SessionBuilder {
        SessionBuilder::new(provider)
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Returns the coordinator, which emits events and routes results of hooks.
    pub fn coordinator(&self) -> &Coordinator {
        &self.core.coordinator
    }

    /// Returns the handle that stops the running turn.
    pub fn cancel(&self) -> &Cancel {
        &self.core.cancel
    }

    /// Returns the conversation.
    pub fn history(&self) -> Vec<Message> {
        self.core.context.conversation.history()
    }

    /// Returns the number of tokens used, sub-agents included.
    pub fn tokens(&self) -> u64 {
        self.core.budget.tokens.load(Ordering::Relaxed)
    }

    /// Returns the number of operations that hooks or users denied: prompts, model calls, tool calls and sub-agents, also those of sub-agents.
    pub fn denials(&self) -> u64 {
        self.core.budget.denials.load(Ordering::Relaxed)
    }

    /// Runs a turn, from a prompt to the response. Waits for a running turn first.
    ///
    /// # Cancel safety
    /// Dropping the future stops tools and calls at once, but their end is not recorded; use [`cancel`](Self::cancel) to stop a turn.
    pub async fn prompt(&self, prompt: &str) -> TurnEnd {
        self.prompt_with(prompt, Map::new()).await
    }

    /// Runs a turn with metadata of the prompt, which hooks can read.
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

    /// Runs a tool outside of a turn, with the same hooks. The conversation gets the call and its result. Waits for a running turn first.
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

    /// Adds a message, which the model reads with the next prompt.
    pub fn add_message(&self, message: Message) {
        self.core.push(message);
    }

    /// Returns the names of the tools.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.core.tools.keys().map(String::as_str)
    }

    /// Compacts the conversation now. Waits for a running turn first.
    ///
    /// # Errors
    /// The reason why the conversation was not compacted; it is unchanged then.
    pub async fn compact(&self) -> Result<(), TurnEnd> {
        let has_ended = self.turn.lock().await;
        if *has_ended {
            return Err(TurnEnd::Failed(SESSION_ENDED.to_owned()));
        }
        self.core.begin();
        compact::now(&self.core).await.map_err(Into::into)
    }

    /// Sends a notification to hooks: `awaiting_input`, `error`, `alert`.
    pub async fn notify(&self, kind: &str, message: &str) {
        self.core.notify(kind, message).await;
    }

    /// Ends the session with a reason (`complete`, `user_exit`, `error` or `timeout`) and seals its part of the audit log.
    ///
    /// # Errors
    /// If the audit log cannot be sealed.
    pub async fn end(self, reason: &str) -> Result<(), SessionError> {
        self.core.end(reason).await
    }

    /// Ends a session that other owners may still read. Waits for a running turn first; waiting turns fail.
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
        // Another process may resume the session.
        drop(self.core.journal.lock().unwrap_or_else(PoisonError::into_inner).take());
        ended
    }
}

impl Core {
    pub(crate) fn begin_turn(&self) -> u64 {
        if self.depth == 0 {
            self.coordinator.begin_turn();
            self.begin();
        }
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        self.journal(|journal| {
            // New messages belong to the turn before.
            let written = journal.save(&self.context.conversation);
            journal.turn = turn;
            written
        });
        turn
    }

    /// Resets the state of the last turn: its cancellation, its steps, and a capture of injections that was abandoned.
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

    pub(crate) fn spend_step(&self) -> Result<(), Stop> {
        let SessionOptions { steps, tokens, .. } = &self.options;
        if self.budget.steps.fetch_add(1, Ordering::Relaxed) >= *steps {
            return Err(Stop::Failed(format!("the turn reached its limit of {steps} model calls")));
        }
        match tokens {
            Some(limit) if self.budget.tokens.load(Ordering::Relaxed) >= *limit => {
                Err(Stop::Failed(format!("the session reached its limit of {limit} tokens")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn count_tokens(&self, usage: &TokenUsage) {
        let used = usage.input_tokens.saturating_add(usage.output_tokens);
        for count in [&self.budget.tokens, &self.own_tokens] {
            // Saturating: a huge count of a provider must not wrap around.
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_add(used)));
        }
    }

    pub(crate) fn count_tool(&self) {
        self.tool_calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_denial(&self) {
        self.budget.denials.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn tool_specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec()).collect()
    }

    pub(crate) fn push(&self, message: Message) {
        self.context.conversation.push(message);
        self.save();
    }

    pub(crate) fn restore(&self, history: Vec<Message>) {
        self.save();
        self.context.conversation.restore(history);
        self.journal(|journal| journal.replace(&self.context.conversation));
    }

    pub(crate) fn save(&self) {
        self.journal(|journal| journal.save(&self.context.conversation));
    }

    /// Runs a journal operation. The observer is notified when writing starts to fail, and when it works again.
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
                tracing::error!(part = "store", %error, "the conversation cannot be stored");
                self.observer
                    .warning(&format!("the conversation cannot be stored: {error}; every new message retries"));
            }
            Some(Ok(())) => {
                tracing::info!(part = "store", "the conversation is stored again");
                self.observer.note("the conversation is stored again; no message is missing");
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
