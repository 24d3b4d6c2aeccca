//! Making a session: new, resumed, or forked off another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use amplifier_audit::{AuditError, Log};
use amplifier_core::{
    ApprovalRules, ApprovalSystem, Coordinator, CoordinatorBuilder, Display, HookRegistry, Map, Message, SESSION_FORK,
    SESSION_RESUME, SESSION_START, SessionConfig, SessionFork, SessionResume, SessionStart,
};
use serde_json::{Value, json};

use super::store::{Journal, Meta, Store, StoreError};
use super::{Core, Orchestrator, Session, SessionOptions, Spent};
use crate::cancel::Cancel;
use crate::context::Context;
use crate::provider::Provider;
use crate::task::Task;
use crate::tokens::Tokenizer;
use crate::tool::Tool;
use crate::turn::{Refusal, Stop};
use crate::watch::{Silent, Watch};

/// Why there is no session, or no end of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A hook did not allow it.
    #[error("the session does not start: {0}")]
    Refused(Refusal),
    /// Somebody stopped it.
    #[error("the session does not start: it was interrupted")]
    Interrupted,
    /// What is stored cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The end of the session is not in the audit log.
    #[error("the audit log of the session is not sealed: {0}")]
    NotSealed(AuditError),
}

/// Makes a [`Session`]. Only a model is needed; what else is missing is left out, and without an approval system every question is
/// answered with no.
#[must_use = "call `start`, `resume` or `fork`"]
pub struct SessionBuilder {
    provider: Arc<dyn Provider>,
    coordinator: CoordinatorBuilder,
    context: Context,
    tools: Vec<Arc<dyn Tool>>,
    system: Option<String>,
    orchestrator: Orchestrator,
    options: SessionOptions,
    watch: Arc<dyn Watch>,
    cancel: Cancel,
    audit: Option<Log>,
    store: Option<Store>,
    mount_plan: Map,
}

impl SessionBuilder {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        let context = Context::default();
        Self {
            provider,
            coordinator: Coordinator::builder(HookRegistry::new()).context(context.clone()).tokens(Tokenizer),
            context,
            tools: Vec::new(),
            system: None,
            orchestrator: Orchestrator::default(),
            options: SessionOptions::default(),
            watch: Arc::new(Silent),
            cancel: Cancel::default(),
            audit: None,
            store: None,
            mount_plan: Map::new(),
        }
    }

    /// The hooks that stand around everything.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.coordinator = self.coordinator.hooks(hooks);
        self
    }

    /// What the agent can do. `Task` is added: an agent can always delegate.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// What the model is told before everything else.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Who asks the person.
    pub fn approvals(mut self, approvals: impl ApprovalSystem) -> Self {
        self.coordinator = self.coordinator.approvals(approvals);
        self
    }

    /// The person's standing answers.
    pub fn approval_rules(mut self, rules: ApprovalRules) -> Self {
        self.coordinator = self.coordinator.approval_rules(rules);
        self
    }

    /// Where messages of hooks are shown.
    pub fn display(mut self, display: impl Display) -> Self {
        self.coordinator = self.coordinator.display(display);
        self
    }

    /// Where everything is recorded.
    pub fn audit(mut self, log: Log) -> Self {
        self.coordinator = self.coordinator.audit(log.clone());
        self.audit = Some(log);
        self
    }

    /// Limits and policies for what hooks say.
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.coordinator = self.coordinator.config(config);
        self
    }

    /// Limits of the session.
    pub fn options(mut self, options: SessionOptions) -> Self {
        self.options = options;
        self
    }

    /// How answers are told.
    pub fn orchestrator(mut self, orchestrator: Orchestrator) -> Self {
        self.orchestrator = orchestrator;
        self
    }

    /// Who watches.
    pub fn watch(mut self, watch: impl Watch) -> Self {
        self.watch = Arc::new(watch);
        self
    }

    /// What stops its turns, to be kept elsewhere, too.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Where the conversation is kept.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// More for the `mount_plan` of `session:start`.
    pub fn mount_plan(mut self, plan: Map) -> Self {
        self.mount_plan = plan;
        self
    }

    /// Starts a new session.
    ///
    /// # Errors
    /// If a hook does not allow it, or it cannot be stored.
    pub async fn start(self) -> Result<Session, SessionError> {
        let id = new_id();
        let core = self.core(id)?;
        core.start("startup").await?;
        Ok(Session { core })
    }

    /// Goes on with a stored session.
    ///
    /// # Errors
    /// If there is none of that id, a hook does not allow it, or it cannot be stored.
    pub async fn resume(self, id: &str) -> Result<Session, SessionError> {
        let store = self.stored()?;
        let (meta, history) = store.load(id)?;
        let journal = store.reopen(&meta, history.len())?;
        let core = self.core_with(meta.id.clone(), Some(journal), meta.turns);
        core.context.conversation.restore(history.clone());
        // What was cut off gets an end, so that every call has a result.
        close_calls(&core, &history);
        core.start("resume").await?;
        let resumed = SessionResume::new(meta.id).with("messages_count", history.len());
        core.gate(SESSION_RESUME, resumed).await.map_err(refused)?;
        Ok(Session { core })
    }

    /// Starts a session that branches off a stored one: after all of it, or after one of its turns.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub async fn fork(self, id: &str, turn: Option<u64>) -> Result<Session, SessionError> {
        let store = self.stored()?;
        let (parent, history) = store.load_until(id, turn)?;
        let turns = turn.unwrap_or(parent.turns);
        let mut core = self.core(new_id())?;
        core.turns = turns.into();
        core.restore(history.clone());
        close_calls(&core, &history);
        core.start("startup").await?;
        let forked = SessionFork::new(parent.id.as_str()).with("turn", turns);
        core.gate(SESSION_FORK, forked).await.map_err(refused)?;
        core.journal(|journal| journal.update(|meta| meta.parent = Some(parent.id)));
        Ok(Session { core })
    }

    fn stored(&self) -> Result<Store, StoreError> {
        self.store.clone().ok_or(StoreError::None)
    }

    fn core(self, id: String) -> Result<Core, SessionError> {
        let journal = match &self.store {
            Some(store) => Some(store.create(Meta {
                provider: self.provider.name().to_owned(),
                model: self.provider.model().to_owned(),
                ..Meta::new(&id)
            })?),
            None => None,
        };
        let system = self.system.clone();
        let core = self.core_with(id, journal, 0);
        if let Some(system) = system {
            core.push(Message::system(system));
        }
        Ok(core)
    }

    fn core_with(self, id: String, journal: Option<Journal>, turns: u64) -> Core {
        let task: Arc<dyn Tool> = Arc::new(Task);
        let tools = self.tools.into_iter().chain([task]).map(|tool| (tool.spec().name, tool));
        let tools: BTreeMap<String, Arc<dyn Tool>> = tools.collect();
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
        Core {
            coordinator: self.coordinator.session_id(id.as_str()).build(),
            id,
            context: self.context,
            provider: self.provider,
            tools,
            orchestrator: self.orchestrator,
            options: self.options,
            watch: self.watch,
            cancel: self.cancel,
            audit: self.audit,
            depth: 0,
            spent: Arc::new(Spent::default()),
            mount_plan: plan,
            begun: Instant::now(),
            turns: turns.into(),
            tool_calls: 0.into(),
            own_tokens: 0.into(),
            put_off: false.into(),
            delegating: tokio::sync::Mutex::default(),
            journal: journal.map(Mutex::new),
        }
    }
}

impl Core {
    /// Puts the start to the hooks.
    pub(crate) async fn start(&self, source: &str) -> Result<(), SessionError> {
        let start = SessionStart::new(self.mount_plan.clone(), source);
        let data = self.gate(SESSION_START, start).await.map_err(refused)?;
        let plan = data.get("mount_plan").cloned().unwrap_or_default();
        self.journal(|journal| journal.update(|meta| meta.mount_plan = plan));
        self.save();
        Ok(())
    }
}

fn refused(stop: Stop) -> SessionError {
    match stop {
        Stop::Refused(refusal) => SessionError::Refused(refusal),
        Stop::Failed(reason) => SessionError::Refused(Refusal { by: "kernel".into(), reason }),
        Stop::Interrupted => SessionError::Interrupted,
    }
}

/// Gives every call that has no result one.
fn close_calls(core: &Core, history: &[Message]) {
    let has_result = |id: &str| history.iter().any(|message| message.tool_call_id.as_deref() == Some(id));
    let calls = history.iter().flat_map(|message| &message.tool_calls);
    for call in calls.filter(|call| !has_result(&call.id)) {
        core.push(Message::tool_result(call.id.as_str(), "The session ended before this was done."));
    }
}

pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
