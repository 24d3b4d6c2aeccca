//! Routes what hooks said: to the person, to the conversation, to the screen, to the record.

mod ask;
pub(crate) mod channels;
mod config;
mod failures;
mod inject;
mod record;
mod remembered;
mod route;
mod verdict;

pub use channels::{
    Contribution, Contributions, ContributorOutput, ContributorRegistration, FailedContribution, IntoContribution,
};
pub use config::{OverBudget, SessionConfig};
pub use inject::{EstimatedTokens, InjectionTooLarge, TokenCounter};
pub use verdict::Verdict;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use self::channels::Channels;
use self::failures::ShownFailures;
use self::inject::{InjectionBudget, InjectionCheck};
use self::remembered::RememberedApprovals;
use self::route::{Routing, TOOL_CALL_ID};
use crate::approval::{ApprovalKey, ApprovalRule, ApprovalRules};
use crate::event::{Data, EventData, EventEffects, EventKey, EventName, Map, SESSION_ID};
use crate::ports::BoxFuture;
use crate::ports::approval::{AnyApprovalSystem, ApprovalSystem};
use crate::ports::audit::{AnyAuditLog, AuditLog};
use crate::ports::context::{AnyContextManager, ContextManager};
use crate::ports::display::{AnyDisplay, Display, DisplayFn, DisplayMessage};
use crate::ports::preview::{AnyPreviewSource, PreviewSource};
use crate::ports::rules::{AnyApprovalRuleSource, ApprovalRuleSource, ToolDefinition};
use crate::registry::{Attributed, Denial, Emission, HookApproval, HookRegistry, Outcome};
use crate::result::{Action, DecisionKind, HookResult, Injection};
use crate::sync::{Mutex, lock};

/// Emits events and routes what hooks say, in this order: approvals, injections, messages; and records everything.
///
/// A coordinator is a handle: clones share the session.
///
/// ```
/// use amplifier_core::{Conversation, Coordinator, HookRegistry, HookResult, Map, MemoryAudit, ToolPre, TOOL_PRE, Verdict};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hooks = HookRegistry::new();
/// hooks.hook(TOOL_PRE).named("guard").run(|event| {
///     (event.tool_name() == "rm").then(|| HookResult::deny("no rm"))
/// });
/// let session = Coordinator::builder(hooks).context(Conversation::new()).audit(MemoryAudit::new()).build();
///
/// match session.emit(TOOL_PRE, ToolPre::new("rm", Map::new())).await {
///     Verdict::Proceed(data) => println!("run it with {data:?}"),
///     denied => assert_eq!(denied.to_string(), "Denied by hook guard: no rm"),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Coordinator {
    shared: Arc<CoordinatorState>,
}

struct CoordinatorState {
    hooks: HookRegistry,
    session_id: Option<String>,
    /// The fields of every event that nobody can forge.
    reserved: Option<Arc<Map>>,
    context: Option<Arc<dyn AnyContextManager>>,
    approvals: Option<Arc<dyn AnyApprovalSystem>>,
    previews: Option<Arc<dyn AnyPreviewSource>>,
    display: Option<Arc<dyn AnyDisplay>>,
    audit: Option<Arc<dyn AnyAuditLog>>,
    tokens: Arc<dyn TokenCounter>,
    config: SessionConfig,
    // Std locks: nothing awaits while they are held. What is in an `Arc` is shared with sub-sessions.
    rules: Arc<ApprovalRuleSources>,
    remembered: Arc<Mutex<RememberedApprovals>>,
    budget: Arc<Mutex<InjectionBudget>>,
    failures: Arc<Mutex<ShownFailures>>,
    channels: Arc<Channels>,
    turn: Arc<AtomicU64>,
    questions: Arc<AtomicU64>,
    /// Questions out of time that are watched for a late answer. They end with the session.
    late: Mutex<JoinSet<()>>,
    /// Who watches them where tokio does not.
    background: Option<Background>,
    /// Whether it counts as one of the sessions that use the hooks.
    uses_hooks: bool,
}

impl Drop for CoordinatorState {
    fn drop(&mut self) {
        if self.uses_hooks {
            self.hooks.change_sessions(|sessions| sessions.end(self.session_id.as_deref()));
        }
    }
}

/// The person's standing answers.
#[derive(Default)]
struct ApprovalRuleSources {
    source: Option<Box<dyn AnyApprovalRuleSource>>,
    /// What the source said last; if it could not be read, what of that denies.
    read: Mutex<ApprovalRules>,
    /// Those that hold for this session alone.
    session: Mutex<ApprovalRules>,
    /// The definitions of tools that allows count for, as far as this session knows: those that it met first, or that a person accepted since.
    definitions: Mutex<HashMap<String, ToolDefinition>>,
}

type Background = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// Makes a [`Coordinator`]. Every port is optional, and what is missing is left out; but without an approval system every
/// approval is refused, and without an audit log nothing gated runs where one is required.
#[must_use = "call `build` to make the coordinator"]
pub struct CoordinatorBuilder {
    shared: CoordinatorState,
    /// Whether it is for a sub-session, which uses the hooks of another.
    is_child: bool,
}

impl CoordinatorBuilder {
    /// Other hooks than those it was begun with.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.shared.hooks = hooks;
        self.is_child = false;
        self
    }

    /// Names the session. Every event that it emits then carries this `session_id`, and nobody can forge it.
    ///
    /// Several sessions can share the same hooks. Events that hooks emit on the registry itself belong to the session as long as it is the only
    /// one; of several, to the one that they name.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.shared.reserved = Some(Arc::new(Map::from_iter([(SESSION_ID.to_owned(), id.clone().into())])));
        self.shared.session_id = Some(id);
        self
    }

    /// Where injections go.
    pub fn context(mut self, context: impl ContextManager) -> Self {
        self.shared.context = Some(Arc::new(context));
        self
    }

    /// Who asks the person.
    pub fn approvals(mut self, approvals: impl ApprovalSystem) -> Self {
        self.shared.approvals = Some(Arc::new(approvals));
        self
    }

    /// Who makes previews of what the person is asked about.
    pub fn previews(mut self, previews: impl PreviewSource) -> Self {
        self.shared.previews = Some(Arc::new(previews));
        self
    }

    /// The person's standing answers: some that stay as they are, or where to look whenever a hook asks.
    pub fn approval_rules(mut self, rules: impl ApprovalRuleSource) -> Self {
        let read = Mutex::new(rules.last_known_rules());
        self.shared.rules =
            Arc::new(ApprovalRuleSources { source: Some(Box::new(rules)), read, ..ApprovalRuleSources::default() });
        self
    }

    /// Where messages are shown.
    pub fn display(mut self, display: impl Display) -> Self {
        self.shared.display = Some(Arc::new(display));
        self
    }

    /// Shows messages with a function: `builder.display_fn(|message| println!("{message}"))`.
    pub fn display_fn(self, show: impl Fn(&DisplayMessage) + Send + Sync + 'static) -> Self {
        self.display(DisplayFn(show))
    }

    /// Where everything is recorded.
    pub fn audit(mut self, audit: impl AuditLog) -> Self {
        self.shared.audit = Some(Arc::new(audit));
        self
    }

    /// How tokens are counted; four characters a token unless given.
    pub fn tokens(mut self, counter: impl TokenCounter) -> Self {
        self.shared.tokens = Arc::new(counter);
        self
    }

    /// Runs what goes on after an emission has returned: late answers are watched for. On tokio unless given, and not at all where
    /// there is no runtime.
    pub fn background(
        mut self,
        run: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.shared.background = Some(Arc::new(run));
        self
    }

    /// Limits and policies.
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.shared.config = config;
        self
    }

    /// The coordinator.
    pub fn build(self) -> Coordinator {
        let Self { mut shared, is_child } = self;
        if !is_child {
            shared.hooks.change_sessions(|sessions| sessions.begin(shared.session_id.as_deref()));
            shared.uses_hooks = true;
        }
        Coordinator { shared: Arc::new(shared) }
    }
}

impl Coordinator {
    /// Begins a coordinator for the hooks of a session.
    pub fn builder(hooks: HookRegistry) -> CoordinatorBuilder {
        let shared = CoordinatorState {
            hooks,
            session_id: None,
            reserved: None,
            context: None,
            approvals: None,
            previews: None,
            display: None,
            audit: None,
            tokens: Arc::new(EstimatedTokens),
            rules: Arc::default(),
            config: SessionConfig::default(),
            remembered: Arc::default(),
            budget: Arc::default(),
            failures: Arc::default(),
            channels: Arc::default(),
            turn: Arc::default(),
            questions: Arc::default(),
            late: Mutex::default(),
            background: None,
            uses_hooks: false,
        };
        CoordinatorBuilder { shared, is_child: false }
    }

    /// Begins a coordinator for a session that this one delegates to: with the same hooks, approvals and lasting answers, display,
    /// audit log, limits and budget of the turn, so that there is no way around a gate by delegating. It needs a context and an id
    /// of its own.
    pub fn child(&self) -> CoordinatorBuilder {
        let CoordinatorState { hooks, approvals, previews, display, audit, tokens, rules, config, background, .. } =
            &*self.shared;
        let CoordinatorState { remembered, budget, failures, channels, turn, questions, .. } = &*self.shared;
        let shared = CoordinatorState {
            hooks: hooks.clone(),
            session_id: None,
            reserved: None,
            context: None,
            approvals: approvals.clone(),
            previews: previews.clone(),
            display: display.clone(),
            audit: audit.clone(),
            tokens: tokens.clone(),
            rules: rules.clone(),
            config: config.clone(),
            remembered: remembered.clone(),
            budget: budget.clone(),
            failures: failures.clone(),
            channels: channels.clone(),
            turn: turn.clone(),
            questions: questions.clone(),
            late: Mutex::default(),
            background: background.clone(),
            uses_hooks: false,
        };
        CoordinatorBuilder { shared, is_child: true }
    }

    /// The name of the session, if it has one.
    pub fn session_id(&self) -> Option<&str> {
        self.shared.session_id.as_deref()
    }

    /// The hooks of the session.
    pub fn hooks(&self) -> &HookRegistry {
        &self.shared.hooks
    }

    /// Puts standing answers in force for this session and its sub-sessions, beside the person's and in the place of those that were put in
    /// force so before.
    pub fn set_session_rules(&self, rules: ApprovalRules) {
        *lock(&self.shared.rules.session) = rules;
    }

    /// Returns the answers that last for this session.
    pub fn remembered_approvals(&self) -> Vec<ApprovalRule> {
        lock(&self.shared.remembered).all()
    }

    /// Forgets an answer that lasts: the next request is put to a user again. Returns `false` if there is no such answer.
    pub fn forget_approval(&self, rule: &ApprovalRule) -> bool {
        let Some(event) = rule.event.clone() else { return false };
        let key = ApprovalKey { hook: rule.hook.as_str().into(), event, prompt: rule.pattern.clone() };
        lock(&self.shared.remembered).forget(&key)
    }

    /// Emits an event, routes what the hooks said, and says whether the operation may run.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws an open question and records it as cancelled; the operation must not run.
    pub fn emit<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<Verdict>> + Send {
        let data = data.into();
        async move { K::checked(self.emit_and_route(&event, data).await.map(|(verdict, _)| verdict)) }
    }

    /// Does what [`emit`](Self::emit) does, and also gives everything that the hooks said.
    pub fn emit_with_outcome<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<(Verdict, Outcome)>> + Send {
        let data = data.into();
        async move { K::checked(self.emit_and_route(&event, data).await) }
    }

    /// Emits an event that comes in great numbers, as each piece of an answer does. What hooks say is routed as always, but where
    /// none says anything, the event is not recorded.
    pub fn emit_often<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<()>> + Send {
        let data = data.into();
        async move {
            let emitted = self.shared.hooks.emit_routed(&event, data, &self.shared.reserved, |_, _| ()).await;
            let spoken = match emitted {
                Ok((outcome, emitted)) if !outcome.is_silent() => {
                    let _ = self.route(Routing::from_outcome(&outcome, emitted, self.shared.audit.is_some())).await;
                    Ok(())
                }
                result => result.map(|_| ()),
            };
            K::checked(spoken)
        }
    }

    async fn emit_and_route<K: EventKey>(&self, event: &K, data: EventData) -> Result<(Verdict, Outcome), K::Error> {
        let cancelled = |outcome: &Outcome, data: &EventData| self.record_cancelled(outcome, data);
        let tool_call_id = data.text(TOOL_CALL_ID).map(str::to_owned);
        // As emitted: what hooks make of the data does not change what the tool is.
        let definition = tool_call_id.as_ref().and_then(|_| ToolDefinition::from_data(&data));
        let (outcome, emitted) = self.shared.hooks.emit_routed(event, data, &self.shared.reserved, cancelled).await?;
        let routing = Routing::from_outcome(&outcome, emitted, self.shared.audit.is_some());
        let verdict = self.route(Routing { tool_call_id, definition, ..routing }).await;
        Ok((verdict, outcome))
    }

    /// Routes what came of an emission that was driven in another way: see [`Emission`](crate::Emission).
    ///
    /// At events that are only observed, the outcome's data is taken as it is.
    pub async fn route_outcome(&self, outcome: &Outcome) -> Verdict {
        let observed = outcome.event().effects() == EventEffects::Observed;
        let emitted = observed.then(|| outcome.data.clone());
        self.route(Routing::from_outcome(outcome, emitted, self.shared.audit.is_some())).await
    }

    /// Whether there is something to route: hooks said something, or there is a record to keep.
    pub fn has_to_route<D: Data>(&self, outcome: &Outcome<D>) -> bool {
        !outcome.is_silent() || self.shared.audit.is_some() || self.shared.config.audit_required
    }

    /// Routes what came of an emission over data of another kind: see [`Data`].
    ///
    /// `data` is what will run, as JSON: the data after every modification or, at events that are only observed, the data as emitted.
    /// `tool_call_id` is that of the data as emitted.
    pub async fn route_outcome_of<D: Data>(
        &self,
        outcome: &Outcome<D>,
        data: EventData,
        tool_call_id: Option<String>,
    ) -> Verdict {
        let routing = Routing::from_outcome_of(outcome, data, self.shared.audit.is_some());
        self.route(Routing { tool_call_id, ..routing }).await
    }

    /// Records that an emission driven in another way was given up; `data` is what it had come to, as JSON.
    pub fn record_given_up<D: Data>(&self, emission: &Emission<D>, data: &EventData) {
        self.record_cancelled(emission.partial_outcome(), data);
    }

    /// Whether the session would refuse the injection for its size.
    ///
    /// # Errors
    /// If it is larger than the session allows.
    pub fn check_injection(&self, hook: &str, injection: &Injection) -> Result<(), InjectionTooLarge> {
        match self.admit_alone(Attributed { hook: hook.into(), value: injection.clone() }).check {
            InjectionCheck::Refused(too_large) => Err(too_large),
            _ => Ok(()),
        }
    }

    /// How many tokens hooks injected in the running turn.
    pub fn injected_tokens(&self) -> usize {
        lock(&self.shared.budget).used_in(self.shared.turn.load(Ordering::Relaxed))
    }

    /// Routes the answer of a single hook, for callers that emit in their own way.
    ///
    /// # Errors
    /// If it injects more than the session allows. Nothing of the answer has been routed then, but it is recorded.
    pub async fn process_hook_result(
        &self,
        event: &EventName,
        hook: &str,
        result: HookResult,
        data: EventData,
    ) -> Result<Verdict, InjectionTooLarge> {
        self.process_with_injection(event, hook, result, None, data).await
    }

    /// Does the same for the flat view of an emission, in which an injection can stand beside a denial or a question.
    ///
    /// # Errors
    /// If it injects more than the session allows. Nothing of the answer has been routed then, but it is recorded.
    pub async fn process_with_injection(
        &self,
        event: &EventName,
        hook: &str,
        result: HookResult,
        mut injection: Option<Injection>,
        mut data: EventData,
    ) -> Result<Verdict, InjectionTooLarge> {
        let HookResult { action, reason, message, output, suppress_output } = result;
        let hook: Arc<str> = hook.into();
        let effects = event.effects();
        self.shared.hooks.lay_reserved_around(&mut data);
        data.reserve(&self.shared.reserved);
        let (answer, decision) = (action.kind(), DecisionKind::from_action(&action));
        let report = record::SingleReport { hook: &hook, answer, decision, reason: reason.clone(), suppress_output };
        let mut routing = Routing::new(event, EventData::new());
        match action {
            Action::Continue | Action::Respond(_) => {}
            Action::Deny | Action::Modify(_) if effects == EventEffects::Observed => {}
            Action::AskUser(_) if effects != EventEffects::All => {}
            Action::Deny => routing.denial = Some(Denial { by: hook.clone(), reason }),
            Action::Modify(change) => data.apply(change),
            Action::InjectContext(said) => injection = Some(*said),
            Action::AskUser(approval) => {
                // No other hook runs after this one, so the data is what it saw.
                let asked_about = data.digest().ok();
                routing.approvals.push(HookApproval { hook: hook.clone(), approval: *approval, reason, asked_about });
            }
        }
        if let Some(said) = injection.filter(|_| effects.can_inject()) {
            let injection = Attributed { hook: hook.clone(), value: said };
            let admitted = self.admit_alone(injection.clone());
            if let InjectionCheck::Refused(too_large) = &admitted.check {
                self.record_refusal(event, report.entries(&data), &admitted).await;
                return Err(too_large.clone());
            }
            routing.injections.push(injection);
        }
        routing.reports = report.entries(&data);
        routing.messages.extend(message.map(|message| Attributed { hook: hook.clone(), value: *message }));
        let shown = output.filter(|_| !suppress_output);
        routing.outputs.extend(shown.map(|output| Attributed { hook, value: output }));
        routing.tool_call_id = data.text(TOOL_CALL_ID).map(str::to_owned);
        routing.definition = ToolDefinition::from_data(&data);
        routing.data = data;
        Ok(self.route(routing).await)
    }

    /// Begins a turn: the injection budget starts afresh.
    pub fn begin_turn(&self) {
        self.shared.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets the answers that last for the session.
    pub fn forget_answers(&self) {
        lock(&self.shared.remembered).clear();
    }

    /// Registers a contributor to a channel: a function that gives data when someone collects it.
    ///
    /// ```
    /// # use amplifier_core::{Coordinator, HookRegistry};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let session = Coordinator::builder(HookRegistry::new()).build();
    /// session.register_contributor("capabilities", "search", || serde_json::json!(["web", "code"]));
    /// session.register_contributor("capabilities", "shell", async || serde_json::json!(["bash"]));
    ///
    /// let capabilities = session.collect_contributions("capabilities").await;
    /// assert_eq!(capabilities.values[0].value[1], "code");
    /// # }
    /// ```
    pub fn register_contributor<F, R, When>(&self, channel: &str, name: &str, contributor: F) -> ContributorRegistration
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: ContributorOutput<When>,
    {
        self.shared.channels.register(channel, name, move || channels::contributor_result(contributor()))
    }

    /// Collects what all contributors of a channel give, in order of registration. One that fails is skipped and
    /// reported.
    pub async fn collect_contributions(&self, channel: &str) -> Contributions {
        let mut collecting = self.shared.channels.collect(channel);
        collecting.finish(&**self.shared.hooks.clock()).await;
        collecting.into_contributions()
    }
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CoordinatorState { session_id, config, .. } = &*self.shared;
        f.debug_struct("Coordinator").field("session_id", session_id).field("config", config).finish_non_exhaustive()
    }
}
