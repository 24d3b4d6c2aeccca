//! Building a session: new, resumed or forked.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use amplifier_audit::{AuditError, Log};
use amplifier_core::{
    ApprovalRuleSource, ApprovalSystem, AuditLog, Coordinator, CoordinatorBuilder, Display, EstimatedTokens,
    HookRegistry, Map, Message, OperationSource, SESSION_FORK, SESSION_RESUME, SESSION_START, SessionConfig,
    SessionFork, SessionResume, SessionStart, TokenCounter,
};
use serde_json::{Value, json};

use super::journal::{Journal, replay};
use super::store::{Store, StoreError, StoredSession};
use super::{BudgetUsage, Core, Orchestrator, Session, SessionOptions};
use crate::cancel::Cancel;
use crate::context::{SessionContext, with_all_results};
use crate::observer::{NullObserver, SessionObserver};
use crate::provider::{ContextTag, Provider};
use crate::sub_agent::{self, TaskTool};
use crate::tokens::TokenEstimate;
use crate::tool::Tool;
use crate::turn::{Denial, Stop, ToolPreviews};

/// The reason why a session cannot start or end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A hook denied the start.
    #[error("the session does not start: {0}")]
    Denied(Denial),
    /// The user interrupted the start.
    #[error("the session does not start: interrupted")]
    Interrupted,
    /// [`SessionBuilder::only`] names an unknown tool.
    #[error("unknown tool `{name}` in `only`; expected one of {}", known.join(", "))]
    UnknownTool {
        /// The unknown name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// A tool has the reserved name `Task`.
    #[error("the tool name `{}` is reserved; choose another name", sub_agent::NAME)]
    TakenName,
    /// The stored session cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The audit log could not be sealed.
    #[error("the audit log of the session is not sealed: {0}")]
    NotSealed(AuditError),
}

/// Builds a [`Session`]. Only a model is required. Without an approval system, every approval request is denied.
#[must_use = "call `start`, `resume` or `fork`"]
pub struct SessionBuilder {
    provider: Arc<dyn Provider>,
    coordinator: CoordinatorBuilder,
    tokens: Arc<dyn TokenCounter>,
    context: SessionContext,
    tools: Vec<Arc<dyn Tool>>,
    only: Vec<Vec<String>>,
    system: Option<String>,
    orchestrator: Orchestrator,
    options: SessionOptions,
    observer: Arc<dyn SessionObserver>,
    cancel: Cancel,
    audit: Option<Log>,
    store: Option<Store>,
    mount_plan: Map,
}

impl SessionBuilder {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        let context = SessionContext::default();
        Self {
            provider,
            coordinator: Coordinator::builder(HookRegistry::new()).context(context.clone()),
            context,
            tools: Vec::new(),
            only: Vec::new(),
            system: None,
            orchestrator: Orchestrator::default(),
            options: SessionOptions::default(),
            observer: Arc::new(NullObserver),
            cancel: Cancel::default(),
            audit: None,
            tokens: Arc::new(EstimatedTokens),
            store: None,
            mount_plan: Map::new(),
        }
    }

    /// Sets the hooks.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.coordinator = self.coordinator.hooks(hooks);
        self
    }

    /// Adds tools. The session adds `Task`, unless [`only`](Self::only) leaves it out; the name is reserved.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Leaves out every tool but these, by name. Several calls combine: a tool stays only if each call names it.
    pub fn only(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.only.push(names.into_iter().collect());
        self
    }

    /// Sets the system prompt. Resumed and forked sessions keep the one they have.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Sets the counter of tokens in injections and in the conversation; without one, four characters are a token. Counts below those that the provider
    /// reports are corrected.
    pub fn tokens(mut self, counter: impl TokenCounter) -> Self {
        self.tokens = Arc::new(counter);
        self.coordinator = self.coordinator.tokens(self.tokens.clone());
        self
    }

    /// Sets the approval system.
    pub fn approvals(mut self, approvals: impl ApprovalSystem) -> Self {
        self.coordinator = self.coordinator.approvals(approvals);
        self
    }

    /// Sets the source of approval rules: fixed rules, or a source that is read at each request.
    pub fn approval_rules(mut self, rules: impl ApprovalRuleSource) -> Self {
        self.coordinator = self.coordinator.approval_rules(rules);
        self
    }

    /// Sets the source that describes operations for approval rules. Without one, rules answer prompts.
    pub fn operations(mut self, operations: impl OperationSource) -> Self {
        self.coordinator = self.coordinator.operations(operations);
        self
    }

    /// Sets the display for messages of hooks.
    pub fn display(mut self, display: impl Display) -> Self {
        self.coordinator = self.coordinator.display(display);
        self
    }

    /// Sets the audit log. The session seals its part at the end.
    pub fn audit(mut self, log: Log) -> Self {
        self.coordinator = self.coordinator.audit(log.clone());
        self.audit = Some(log);
        self
    }

    /// Sets an audit log that is not a [`Log`]; it is not sealed.
    pub fn recorder(mut self, audit: impl AuditLog) -> Self {
        self.coordinator = self.coordinator.audit(audit);
        self.audit = None;
        self
    }

    /// Sets the executor for work that continues after an emission; see [`CoordinatorBuilder::background`].
    pub fn background(
        mut self,
        run: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.coordinator = self.coordinator.background(run);
        self
    }

    /// Sets limits and policies for the results of hooks.
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.coordinator = self.coordinator.config(config);
        self
    }

    /// Sets the limits of the session.
    pub fn options(mut self, options: SessionOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the orchestrator.
    pub fn orchestrator(mut self, orchestrator: Orchestrator) -> Self {
        self.orchestrator = orchestrator;
        self
    }

    /// Sets the observer.
    pub fn observer(mut self, observer: impl SessionObserver) -> Self {
        self.observer = Arc::new(observer);
        self
    }

    /// Sets the handle that stops turns, for callers that keep their own clone.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets the store for the conversation.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Adds fields to the `mount_plan` of `session:start`.
    pub fn mount_plan(mut self, plan: Map) -> Self {
        self.mount_plan = plan;
        self
    }

    /// Starts a new session.
    ///
    /// # Errors
    /// If [`only`](Self::only) names an unknown tool, a hook denies the start, or the session cannot be stored. Then only its record remains.
    pub async fn start(self) -> Result<Session, SessionError> {
        let (store, meta, system) = (self.store.clone(), self.meta(), self.system.clone());
        let mut core = self.core(&meta)?;
        if let Some(system) = system {
            core.context.conversation.push(Message::system(system));
        }
        let started = core.emit_start("startup").await.and_then(|mount_plan| match store {
            Some(store) => core.attach_journal(store.create(
                StoredSession { mount_plan, ..meta },
                Vec::new(),
                &core.context.conversation,
            )),
            None => Ok(()),
        });
        finish_start(core, started).await
    }

    /// Resumes a stored session, by its id, a prefix of the id, or `last`.
    ///
    /// # Errors
    /// If the id is unknown, the session is in use, [`only`](Self::only) names an unknown tool, a hook denies the start, or the session cannot be
    /// stored. The stored session is unchanged then.
    pub async fn resume(self, id: &str) -> Result<Session, SessionError> {
        let (journal, stored, history) = self.require_store()?.reopen(id)?;
        let StoredSession { provider, model, .. } = self.meta();
        let mut core = self.core(&stored)?;
        core.context.conversation.restore(with_all_results(history.clone()));
        let resumed = SessionResume::new(stored.id).with("messages_count", core.context.conversation.history().len());
        let opened = match core.emit_start("resume").await {
            Ok(mount_plan) => core.gate(SESSION_RESUME, resumed).await.map(|_| mount_plan).map_err(start_error),
            error => error,
        };
        let started = opened.and_then(|mount_plan| {
            let journal = journal.resume(&history, &core.context.conversation, |meta| {
                *meta = StoredSession { provider, model, mount_plan, ended: None, ..meta.clone() };
            });
            core.attach_journal(journal)
        });
        finish_start(core, started).await
    }

    /// Starts a copy of a stored session, with all turns or up to `turn`.
    ///
    /// # Errors
    /// If the id, the turn or a tool that [`only`](Self::only) names is unknown, a hook denies the start, or the session cannot be stored. Then only
    /// its record remains.
    pub async fn fork(self, id: &str, turn: Option<u64>) -> Result<Session, SessionError> {
        let store = self.require_store()?;
        let (parent, lines) = store.load(id, turn)?;
        let turns = turn.unwrap_or(parent.turns);
        let meta = StoredSession { turns, parent: Some(parent.id.clone()), ..self.meta() };
        let mut core = self.core(&meta)?;
        core.context.conversation.restore(with_all_results(replay(&lines)));
        let forked = SessionFork::new(parent.id).with("turn", turns);
        let opened = match core.emit_start("startup").await {
            Ok(mount_plan) => core.gate(SESSION_FORK, forked).await.map(|_| mount_plan).map_err(start_error),
            error => error,
        };
        let started = opened.and_then(|mount_plan| {
            // All lines are copied, so that the copy can be exported and forked without the original.
            core.attach_journal(store.create(StoredSession { mount_plan, ..meta }, lines, &core.context.conversation))
        });
        finish_start(core, started).await
    }

    fn require_store(&self) -> Result<Store, StoreError> {
        self.store.clone().ok_or(StoreError::None)
    }

    fn meta(&self) -> StoredSession {
        let (provider, model) = (self.provider.name().to_owned(), self.provider.model().to_owned());
        StoredSession { provider, model, ..StoredSession::new(&new_id()) }
    }

    fn core(self, meta: &StoredSession) -> Result<Core, SessionError> {
        let mut tools: BTreeMap<String, Arc<dyn Tool>> =
            self.tools.into_iter().map(|tool| (tool.spec().name, tool)).collect();
        if tools.insert(sub_agent::NAME.to_owned(), Arc::new(TaskTool)).is_some() {
            return Err(SessionError::TakenName);
        }
        if let Some(unknown) = self.only.iter().flatten().find(|&name| !tools.contains_key(name)) {
            return Err(SessionError::UnknownTool { name: unknown.clone(), known: tools.into_keys().collect() });
        }
        tools.retain(|name, _| self.only.iter().all(|only| only.contains(name)));
        let mut plan = self.mount_plan;
        let defaults = json!({
            "orchestrator": self.orchestrator.as_str(),
            "provider": self.provider.name(),
            "model": self.provider.model(),
            "tools": tools.keys().collect::<Vec<_>>(),
        });
        if let Value::Object(defaults) = defaults {
            defaults.into_iter().for_each(|(key, value)| _ = plan.entry(key).or_insert(value));
        }
        Ok(Core {
            coordinator: self.coordinator.previews(ToolPreviews(tools.clone())).session_id(meta.id.as_str()).build(),
            id: meta.id.clone(),
            context: self.context,
            provider: self.provider,
            tag: ContextTag::new(),
            tools,
            orchestrator: self.orchestrator,
            options: self.options,
            observer: self.observer,
            cancel: self.cancel,
            audit: self.audit,
            depth: 0,
            budget: Arc::new(BudgetUsage::default()),
            mount_plan: plan,
            started: Instant::now(),
            turns: meta.turns.into(),
            tool_calls: 0.into(),
            own_tokens: 0.into(),
            compaction_deferred: false.into(),
            tokens: TokenEstimate::new(self.tokens),
            delegation: tokio::sync::Mutex::default(),
            journal: Mutex::default(),
        })
    }
}

impl Core {
    pub(crate) async fn start(&self, source: &str) -> Result<(), SessionError> {
        self.emit_start(source).await.map(drop)
    }

    /// Emits `session:start`, and returns the mount plan as the hooks left it.
    async fn emit_start(&self, source: &str) -> Result<Value, SessionError> {
        let start = SessionStart::new(self.mount_plan.clone(), source);
        let data = self.gate(SESSION_START, start).await.map_err(start_error)?;
        Ok(data.get("mount_plan").cloned().unwrap_or_default())
    }

    fn attach_journal(&mut self, journal: Result<Journal, StoreError>) -> Result<(), SessionError> {
        self.journal = Mutex::new(Some(journal?));
        Ok(())
    }
}

/// Returns the session, or ends one that did not start.
async fn finish_start(mut core: Core, started: Result<(), SessionError>) -> Result<Session, SessionError> {
    let Err(error) = started else { return Ok(Session::new(core)) };
    core.journal = Mutex::default();
    // The caller gets the reason for the failed start, which matters more than the missing seal.
    if let Err(not_sealed) = core.end("error").await {
        tracing::error!(error = %not_sealed, "a session that did not begin is not sealed");
    }
    Err(error)
}

fn start_error(stop: Stop) -> SessionError {
    match stop {
        Stop::Denied(denial) => SessionError::Denied(denial),
        Stop::Failed(reason) => SessionError::Denied(Denial { by: "kernel".into(), reason }),
        Stop::Interrupted => SessionError::Interrupted,
    }
}

pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
