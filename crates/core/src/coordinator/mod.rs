//! Routes the results of hooks: to approvers, to the conversation, to the display and to the audit log.

mod approval_requests;
pub(crate) mod channels;
mod config;
mod failures;
mod inject;
mod offers;
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
use crate::ports::approval_rules::{AnyApprovalRuleSource, ApprovalRuleSource, ToolDefinition};
use crate::ports::audit::{AnyAuditLog, AuditLog};
use crate::ports::context::{AnyContextManager, ContextManager};
use crate::ports::display::{AnyDisplay, Display, DisplayFn, DisplayMessage};
use crate::ports::operations::{AnyOperationSource, OperationSource};
use crate::ports::preview::{AnyPreviewSource, PreviewSource};
use crate::registry::{Attributed, Denial, Emission, HookApproval, HookRegistry, Outcome};
use crate::result::{Action, DecisionKind, HookResult, Injection};
use crate::sync::{Mutex, lock};

/// Emits events, routes the results of hooks in the order approvals, injections, messages, and records everything.
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
    reserved: Option<Arc<Map>>,
    context: Option<Arc<dyn AnyContextManager>>,
    approvals: Option<Arc<dyn AnyApprovalSystem>>,
    previews: Option<Arc<dyn AnyPreviewSource>>,
    operations: Option<Arc<dyn AnyOperationSource>>,
    display: Option<Arc<dyn AnyDisplay>>,
    audit: Option<Arc<dyn AnyAuditLog>>,
    tokens: Arc<dyn TokenCounter>,
    config: SessionConfig,
    // Std locks: nothing awaits while they are held. Fields in an `Arc` are shared with sub-sessions.
    rules: Arc<ApprovalRuleSources>,
    remembered: Arc<Mutex<RememberedApprovals>>,
    budget: Arc<Mutex<InjectionBudget>>,
    failures: Arc<Mutex<ShownFailures>>,
    channels: Arc<Channels>,
    turn: Arc<AtomicU64>,
    questions: Arc<AtomicU64>,
    /// Tasks that wait for late answers. They end with the session.
    late: Mutex<JoinSet<()>>,
    /// Runs these tasks if tokio does not.
    background: Option<Background>,
    uses_hooks: bool,
}

impl Drop for CoordinatorState {
    fn drop(&mut self) {
        if self.uses_hooks {
            self.hooks.change_sessions(|sessions| sessions.end(self.session_id.as_deref()));
        }
    }
}

#[derive(Default)]
struct ApprovalRuleSources {
    source: Option<Box<dyn AnyApprovalRuleSource>>,
    /// The rules that were last read from the source; after a failure, only the denials among them.
    read: Mutex<ApprovalRules>,
    session: Mutex<ApprovalRules>,
    /// The tool definitions that allows count for: the first ones in this session, or those that a user has accepted since.
    definitions: Mutex<HashMap<String, ToolDefinition>>,
}

type Background = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// Builds a [`Coordinator`]. Every port is optional. Without an approval system every approval is denied; without an audit log gated
/// operations are denied if one is required.
#[must_use = "call `build` to make the coordinator"]
pub struct CoordinatorBuilder {
    shared: CoordinatorState,
    /// `true` for a sub-session, which shares the hooks of its parent.
    is_child: bool,
}

impl CoordinatorBuilder {
    /// Replaces the hooks.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.shared.hooks = hooks;
        self.is_child = false;
        self
    }

    /// Sets the id of the session. Every event that the session emits has this `session_id`; hooks cannot change it.
    ///
    /// Several sessions can share the same hooks. Events that hooks emit on the registry itself belong to the session if it is the only one, and
    /// otherwise to the session that they name.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.shared.reserved = Some(Arc::new(Map::from_iter([(SESSION_ID.to_owned(), id.clone().into())])));
        self.shared.session_id = Some(id);
        self
    }

    /// Sets the receiver of injections.
    pub fn context(mut self, context: impl ContextManager) -> Self {
        self.shared.context = Some(Arc::new(context));
        self
    }

    /// Sets the approval system.
    pub fn approvals(mut self, approvals: impl ApprovalSystem) -> Self {
        self.shared.approvals = Some(Arc::new(approvals));
        self
    }

    /// Sets the source of previews for approval requests.
    pub fn previews(mut self, previews: impl PreviewSource) -> Self {
        self.shared.previews = Some(Arc::new(previews));
        self
    }

    /// Sets the source that describes operations for approval rules. Without one, rules answer prompts.
    pub fn operations(mut self, operations: impl OperationSource) -> Self {
        self.shared.operations = Some(Arc::new(operations));
        self
    }

    /// Sets the approval rules: a fixed set, or a source that is read at each request.
    pub fn approval_rules(mut self, rules: impl ApprovalRuleSource) -> Self {
        let read = Mutex::new(rules.last_known_rules());
        self.shared.rules =
            Arc::new(ApprovalRuleSources { source: Some(Box::new(rules)), read, ..ApprovalRuleSources::default() });
        self
    }

    /// Sets the display for messages.
    pub fn display(mut self, display: impl Display) -> Self {
        self.shared.display = Some(Arc::new(display));
        self
    }

    /// Shows messages with a function: `builder.display_fn(|message| println!("{message}"))`.
    pub fn display_fn(self, show: impl Fn(&DisplayMessage) + Send + Sync + 'static) -> Self {
        self.display(DisplayFn(show))
    }

    /// Sets the audit log.
    pub fn audit(mut self, audit: impl AuditLog) -> Self {
        self.shared.audit = Some(Arc::new(audit));
        self
    }

    /// Sets the token counter; the default assumes four characters a token.
    pub fn tokens(mut self, counter: impl TokenCounter) -> Self {
        self.shared.tokens = Arc::new(counter);
        self
    }

    /// Sets the executor of background tasks, which wait for late answers. The default is tokio; without a runtime there are no such tasks.
    pub fn background(
        mut self,
        run: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.shared.background = Some(Arc::new(run));
        self
    }

    /// Sets limits and policies.
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.shared.config = config;
        self
    }

    /// Builds the coordinator.
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
    /// Returns a builder for a coordinator of these hooks.
    pub fn builder(hooks: HookRegistry) -> CoordinatorBuilder {
        let shared = CoordinatorState {
            hooks,
            session_id: None,
            reserved: None,
            context: None,
            approvals: None,
            previews: None,
            operations: None,
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

    /// Returns a builder for a session that this one delegates to. It shares hooks, approvals, remembered answers, display, audit log, limits and
    /// the budget of the turn, so that delegation does not bypass a gate. It needs its own context and id.
    pub fn child(&self) -> CoordinatorBuilder {
        let CoordinatorState { hooks, approvals, previews, display, audit, tokens, rules, config, background, .. } =
            &*self.shared;
        let CoordinatorState { operations, remembered, budget, failures, channels, turn, questions, .. } =
            &*self.shared;
        let shared = CoordinatorState {
            hooks: hooks.clone(),
            session_id: None,
            reserved: None,
            context: None,
            approvals: approvals.clone(),
            previews: previews.clone(),
            operations: operations.clone(),
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

    /// Returns the id of the session, if it has one.
    pub fn session_id(&self) -> Option<&str> {
        self.shared.session_id.as_deref()
    }

    /// Returns the hooks of the session.
    pub fn hooks(&self) -> &HookRegistry {
        &self.shared.hooks
    }

    /// Replaces the approval rules for this session and its sub-sessions. The rules of the source stay active.
    pub fn set_session_rules(&self, rules: ApprovalRules) {
        *lock(&self.shared.rules.session) = rules;
    }

    /// Returns the remembered answers of this session.
    pub fn remembered_approvals(&self) -> Vec<ApprovalRule> {
        lock(&self.shared.remembered).all()
    }

    /// Forgets a remembered answer; the next request goes to a user again. Returns `false` if the answer is unknown.
    pub fn forget_approval(&self, rule: &ApprovalRule) -> bool {
        let mut remembered = lock(&self.shared.remembered);
        if rule.operation.is_some() {
            return remembered.forget_operation(rule);
        }
        let Some(event) = rule.event.clone() else { return false };
        remembered.forget(&ApprovalKey { hook: rule.hook.as_str().into(), event, prompt: rule.pattern.clone() })
    }

    /// Emits an event, routes the results of the hooks, and returns the verdict on the operation.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws an open approval request and records it as cancelled; the operation must not run.
    pub fn emit<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<Verdict>> + Send {
        let data = data.into();
        async move { K::checked(self.emit_and_route(&event, data).await.map(|(verdict, _)| verdict)) }
    }

    /// Does the same as [`emit`](Self::emit), and also returns the outcome.
    pub fn emit_with_outcome<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<(Verdict, Outcome)>> + Send {
        let data = data.into();
        async move { K::checked(self.emit_and_route(&event, data).await) }
    }

    /// Emits a frequent event, such as a piece of an answer. The results of hooks are routed as usual; an event without any is not recorded.
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
        // From the data as emitted: modifications do not change the tool's definition.
        let definition = tool_call_id.as_ref().and_then(|_| ToolDefinition::from_data(&data));
        let (outcome, emitted) = self.shared.hooks.emit_routed(event, data, &self.shared.reserved, cancelled).await?;
        let routing = Routing::from_outcome(&outcome, emitted, self.shared.audit.is_some());
        let verdict = self.route(Routing { tool_call_id, definition, ..routing }).await;
        Ok((verdict, outcome))
    }

    /// Routes the outcome of an emission with its own driver: see [`Emission`](crate::Emission).
    ///
    /// At events that are only observed, the outcome's data is used unchanged.
    pub async fn route_outcome(&self, outcome: &Outcome) -> Verdict {
        let observed = outcome.event().effects() == EventEffects::Observed;
        let emitted = observed.then(|| outcome.data.clone());
        self.route(Routing::from_outcome(outcome, emitted, self.shared.audit.is_some())).await
    }

    /// Returns `true` if there is something to route or to record.
    pub fn has_to_route<D: Data>(&self, outcome: &Outcome<D>) -> bool {
        !outcome.is_silent() || self.shared.audit.is_some() || self.shared.config.audit_required
    }

    /// Routes the outcome of an emission over another type of data: see [`Data`].
    ///
    /// `data` is the operation as JSON: the data after every modification or, at events that are only observed, the data as emitted.
    /// `tool_call_id` is taken from the data as emitted.
    pub async fn route_outcome_of<D: Data>(
        &self,
        outcome: &Outcome<D>,
        data: EventData,
        tool_call_id: Option<String>,
    ) -> Verdict {
        let routing = Routing::from_outcome_of(outcome, data, self.shared.audit.is_some());
        self.route(Routing { tool_call_id, ..routing }).await
    }

    /// Records that an emission with its own driver was cancelled; `data` is its data so far, as JSON.
    pub fn record_given_up<D: Data>(&self, emission: &Emission<D>, data: &EventData) {
        self.record_cancelled(emission.partial_outcome(), data);
    }

    /// Checks the size of an injection.
    ///
    /// # Errors
    /// If the injection is larger than the session allows.
    pub fn check_injection(&self, hook: &str, injection: &Injection) -> Result<(), InjectionTooLarge> {
        match self.admit_alone(Attributed { hook: hook.into(), value: injection.clone() }).check {
            InjectionCheck::Refused(too_large) => Err(too_large),
            _ => Ok(()),
        }
    }

    /// Returns the number of tokens that hooks injected in the current turn.
    pub fn injected_tokens(&self) -> usize {
        lock(&self.shared.budget).used_in(self.shared.turn.load(Ordering::Relaxed))
    }

    /// Routes the result of a single hook, for callers with their own driver.
    ///
    /// # Errors
    /// If the injection is larger than the session allows. The result is then recorded, but not routed.
    pub async fn process_hook_result(
        &self,
        event: &EventName,
        hook: &str,
        result: HookResult,
        data: EventData,
    ) -> Result<Verdict, InjectionTooLarge> {
        self.process_with_injection(event, hook, result, None, data).await
    }

    /// Does the same for the flat view of an emission, which can have an injection beside a denial or an approval request.
    ///
    /// # Errors
    /// If the injection is larger than the session allows. The result is then recorded, but not routed.
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
                // No other hook runs after this one, so the hook saw this data.
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

    /// Begins a turn, which resets the injection budget.
    pub fn begin_turn(&self) {
        self.shared.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets all remembered answers.
    pub fn forget_answers(&self) {
        lock(&self.shared.remembered).clear();
    }

    /// Registers a contributor to a channel: a function that returns data when the channel is collected.
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

    /// Collects the contributions to a channel, in order of registration. A failed contributor is skipped and reported.
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
