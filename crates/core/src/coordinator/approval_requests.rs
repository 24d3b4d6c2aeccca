//! Approval requests, with the kernel's own time limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tracing::Instrument;

use super::offers::allows_always;
use super::record::RecordWriter;
use super::{ApprovalRuleSources, Coordinator, Verdict};
use crate::approval::{
    ApprovalAnswer, ApprovalDecision, ApprovalError, ApprovalKey, ApprovalRequest, ApprovalRules, OpenRequest,
    OperationParts, RequestLog, late_answer,
};
use crate::audit::{ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry};
use crate::contain::{ContainedFuture, WaitResult, wait};
use crate::event::events::{
    APPROVAL_DENIED, APPROVAL_GRANTED, APPROVAL_REQUIRED, ApprovalDenied, ApprovalGranted, ApprovalRequired,
    USER_NOTIFICATION, UserNotification,
};
use crate::event::{Digest, EventData, EventKey, EventName};
use crate::ports::approval::AnyApprovalSystem;
use crate::ports::approval_rules::ToolDefinition;
use crate::ports::display::ReportedDecision;
use crate::ports::preview::{ActionPreview, COMPARED_WITH};
use crate::ports::{BoxFuture, PortError};
use crate::registry::{self, HookApproval};
use crate::result::{DefaultDecision, Level};
use crate::sync::lock;

/// Time after the time limit during which a late answer is still recorded.
const LATE: Duration = Duration::from_secs(3600);

/// Tolerance for a busy thread, which may notice an answer later than it arrived.
const DELAY: Duration = Duration::from_millis(100);

struct Operation<'a> {
    data: EventData,
    /// The digest of the data that the hooks saw last. A digest reads all of the data, so it is made only for a request.
    digest: Option<Digest>,
    definition: Option<&'a ToolDefinition>,
    /// `true` if a hook other than a fallback requests an approval.
    has_request: bool,
    /// Made for the first request; the data then names the file that it was compared with.
    preview: Option<ActionPreview>,
}

impl Operation<'_> {
    /// Returns `true` if the hook saw this data. Otherwise its prompt may describe something else, and no allow given in advance counts.
    fn is_current(&self, asked: &HookApproval) -> bool {
        self.digest.is_some() && asked.asked_about == self.digest
    }

    /// Makes the preview once: all requests about an operation show the same one.
    async fn preview(
        &mut self,
        session: &Coordinator,
        recording: &mut RecordWriter<'_>,
    ) -> Result<ActionPreview, PortError> {
        if let Some(preview) = &self.preview {
            return Ok(preview.clone());
        }
        let preview = match &session.shared.previews {
            Some(source) => recording.call("previews", source.make(recording.event(), &self.data)).await?,
            None => None,
        };
        let preview = preview.unwrap_or_else(|| ActionPreview::from_event(recording.event(), &self.data));
        if let Some(compared_with) = &preview.compared_with {
            self.data.insert(COMPARED_WITH, serde_json::to_value(compared_with)?);
        }
        Ok(self.preview.insert(preview).clone())
    }
}

/// Conditions, beside unchanged data, under which allows given in advance count.
struct RuleValidity {
    /// `false` if rules cannot be read.
    are_read: bool,
    /// `false` if the rules were given for another definition of the tool.
    is_known: bool,
    /// The rules that may allow the operation, and its parts as the hook sees them.
    rules: ApprovalRules,
    parts: OperationParts,
}

impl Coordinator {
    pub(super) async fn request_approvals(
        &self,
        recording: &mut RecordWriter<'_>,
        approvals: Vec<HookApproval>,
        data: &EventData,
        definition: Option<&ToolDefinition>,
    ) -> Verdict {
        let mut operation = Operation {
            data: data.clone(),
            digest: if approvals.is_empty() { None } else { data.digest().ok() },
            definition,
            has_request: approvals.iter().any(|asked| !asked.fallback),
            preview: None,
        };
        for asked in approvals {
            let key = ApprovalKey {
                hook: asked.hook.clone(),
                event: recording.event().clone(),
                prompt: asked.prompt.clone(),
            };
            let span = tracing::info_span!(
                "hook.approval",
                otel.name = "approval",
                hook.name = %key.hook,
                hook.event = %key.event,
                approval.granted = tracing::field::Empty,
                approval.basis = tracing::field::Empty,
            );
            let decided = self.decide(recording, &mut operation, &key, asked).instrument(span.clone());
            let Some(decision) = decided.await else { continue };
            span.record("approval.granted", decision.granted);
            span.record("approval.basis", decision.basis.as_str());
            self.show_decision(recording, &key, &decision).await;
            self.announce(&key, &decision).await;
            if !decision.granted {
                return Verdict::denied(key.hook, &decision.reason);
            }
        }
        Verdict::Proceed(operation.data)
    }

    /// Decides one approval: by a rule, by a remembered answer, or by a request. `None` for a fallback that another hook's request replaces; a
    /// denial given in advance still counts.
    async fn decide(
        &self,
        recording: &mut RecordWriter<'_>,
        operation: &mut Operation<'_>,
        key: &ApprovalKey,
        asked: HookApproval,
    ) -> Option<ApprovalDecision> {
        let (rules, are_read) = self.rules(recording).await;
        let is_known = self.knows(recording, operation.definition).await;
        let (parts, are_described) = self.parts(recording, &key.hook, &operation.data).await;
        // A rule that cannot be read, or a part that cannot be described, may deny what another rule allows.
        let allows_count = are_read && are_described && operation.is_current(&asked);
        let counts = |decision: &ApprovalDecision| allows_count || !decision.granted;
        let by_rules = ApprovalDecision::by_rules(&rules, key, &parts);
        let known = by_rules.filter(|decision| is_known || !decision.granted).filter(counts);
        let known = known.or_else(|| lock(&self.shared.remembered).recall(key, operation.definition).filter(counts));
        let rules = if is_known { rules } else { ApprovalRules::default() };
        let rules = rules.and(lock(&self.shared.remembered).operations(operation.definition));
        let known = known.or_else(|| ApprovalDecision::by_operations(&rules, key, &parts).filter(counts));
        let is_needless = asked.fallback && operation.has_request;
        if is_needless && known.as_ref().is_none_or(|decision| decision.granted) {
            return None;
        }
        let (id, decision) = match known {
            Some(decision) => (None, decision),
            None => {
                let validity = RuleValidity { are_read, is_known, rules, parts };
                self.ask(recording, operation, key, asked, validity).await
            }
        };
        recording.record(entry(id, key, &decision));
        Some(decision)
    }

    /// Returns the parts of the operation, and `true` if it could be described.
    async fn parts(&self, recording: &mut RecordWriter<'_>, hook: &str, data: &EventData) -> (OperationParts, bool) {
        let Some(source) = &self.shared.operations else { return (OperationParts::default(), true) };
        let described = recording.call("operations", source.describe(hook, recording.event(), data)).await;
        described.map_or_else(|_| (OperationParts::default(), false), |parts| (OperationParts(parts), true))
    }

    /// Returns the current rules, and `true` if they could be read. If not, the rules are the denials that were read before.
    async fn rules(&self, recording: &mut RecordWriter<'_>) -> (ApprovalRules, bool) {
        let ApprovalRuleSources { source, read, session, .. } = &*self.shared.rules;
        let (mut rules, mut are_read) = (ApprovalRules::default(), true);
        if let Some(source) = source {
            rules = match recording.call("approval_rules", source.rules()).await {
                Ok(rules) => rules,
                Err(error) => {
                    let text = format!("approval rules cannot be read, so rules that allow are ignored: {error}");
                    self.show(recording, Level::Error, "kernel".to_owned(), text).await;
                    are_read = false;
                    lock(read).denials()
                }
            };
            lock(read).clone_from(&rules);
        }
        (rules.and(lock(session).clone()), are_read)
    }

    /// Returns `true` if rules that allow a tool count for this definition of it.
    async fn knows(&self, recording: &mut RecordWriter<'_>, definition: Option<&ToolDefinition>) -> bool {
        let Some(definition) = definition else { return true };
        let ApprovalRuleSources { source, definitions, .. } = &*self.shared.rules;
        let is_same = {
            let mut known = lock(definitions);
            *known.entry(definition.tool.clone()).or_insert_with(|| definition.clone()) == *definition
        };
        // A source that fails may know of a change.
        is_same
            && match source {
                Some(source) => recording.call("approval_rules", source.covers(definition)).await.unwrap_or(false),
                None => true,
            }
    }

    /// Remembers that a user always allows a tool in its present definition.
    async fn accept(&self, recording: &mut RecordWriter<'_>, definition: &ToolDefinition) {
        let ApprovalRuleSources { source, definitions, .. } = &*self.shared.rules;
        lock(definitions).insert(definition.tool.clone(), definition.clone());
        if let Some(source) = source {
            // A failure is recorded; the answer counts for the session.
            let _ = recording.call("approval_rules", source.accept(definition)).await;
        }
    }

    async fn ask(
        &self,
        recording: &mut RecordWriter<'_>,
        operation: &mut Operation<'_>,
        key: &ApprovalKey,
        asked: HookApproval,
        validity: RuleValidity,
    ) -> (Option<u64>, ApprovalDecision) {
        let is_current = operation.is_current(&asked);
        let HookApproval { approval, reason, .. } = asked;
        let RuleValidity { are_read, is_known, rules, parts } = validity;
        let Some(system) = &self.shared.approvals else {
            return (None, ApprovalDecision::no_system(&key.prompt));
        };
        let preview = match operation.preview(self, recording).await {
            Ok(preview) => preview,
            Err(error) => {
                return (None, ApprovalDecision::failed(&key.prompt, &format!("cannot make a preview: {error}")));
            }
        };
        let digest = match operation.data.digest() {
            Ok(digest) => digest,
            Err(too_deep) => return (None, ApprovalDecision::failed(&key.prompt, &too_deep)),
        };
        let forbids_default = self.shared.config.forbid_default_allow || !are_read || !is_current;
        let mut options = approval.effective_options();
        if !is_current {
            // A remembered answer would belong to the prompt, which describes other data.
            options.iter_mut().for_each(|option| option.effect = option.effect.once_if_allowing());
        }
        // A rule for an operation that the approver cannot see in full would cover more than is shown.
        let offers = match is_current && !preview.truncated && allows_always(&options) {
            true => parts.offers(&rules, &key.hook, &self.rule_scopes(key)),
            false => Vec::new(),
        };
        let id = self.shared.questions.fetch_add(1, Ordering::Relaxed) + 1;
        let (open, still_open) = watch::channel(None);
        let request = ApprovalRequest {
            number: id,
            hook: key.hook.to_string(),
            event: key.event.clone(),
            prompt: key.prompt.clone(),
            reason,
            warning: warning(are_read, is_current, is_known),
            options,
            timeout: approval.timeout,
            // The effective default, which may be stricter than the hook's.
            default: if forbids_default { DefaultDecision::Deny } else { approval.default },
            digest,
            created_at: self.now().unwrap_or_default(),
            preview,
            offers,
        };
        let (data, log) = (operation.data.clone(), self.request_log(key.event.clone()));
        let request = Arc::new(OpenRequest { request, data, open: still_open, log });
        recording.record(AuditEntry::ApprovalRequest(ApprovalRequestEntry {
            id,
            hook: key.hook.to_string(),
            prompt: key.prompt.clone(),
            options: request.options.clone(),
            timeout: request.timeout,
            default: request.default,
            digest,
            changed_after_asking: !is_current,
            compared_with: request.preview.compared_with.clone(),
        }));
        // A cancelled request is recorded as such.
        let cancelled =
            OnDrop::new(|| self.record(&key.event, entry(Some(id), key, &ApprovalDecision::cancelled(&key.prompt))));
        let labels: Vec<String> = request.options.iter().map(|option| option.label.clone()).collect();
        let required = ApprovalRequired::new(&*key.hook, key.event.as_str(), key.prompt.as_str())
            .with("options", labels)
            .with("digest", digest.to_string());
        self.observe(APPROVAL_REQUIRED, required.into()).await;
        let notice = UserNotification::new("approval_required", key.prompt.as_str())
            .with("metadata", json!({ "hook": &*key.hook, "event": key.event.as_str() }));
        self.observe(USER_NOTIFICATION, notice.into()).await;

        let answer = self.wait_for_answer(system, &request, id, key).await;
        cancelled.disarm();
        let decision = ApprovalDecision::on_answer(&request, answer);
        // Before the request is closed, so that its observers find the remembered answer.
        lock(&self.shared.remembered).remember(key.clone(), operation.definition, &decision, self.now());
        if let Some(scope) = decision.scope.filter(|_| decision.granted) {
            self.create_rules(recording, key, operation.definition, &decision, scope).await;
        }
        if let Some(definition) = operation.definition.filter(|_| decision.granted && decision.is_lasting()) {
            self.accept(recording, definition).await;
        }
        open.send_replace(Some(decision.clone()));
        (Some(id), decision)
    }

    /// Waits for an answer until the time limit. A later one is recorded as such.
    async fn wait_for_answer(
        &self,
        system: &Arc<dyn AnyApprovalSystem>,
        request: &Arc<OpenRequest>,
        id: u64,
        key: &ApprovalKey,
    ) -> Result<ApprovalAnswer, ApprovalError> {
        let since = self.clock().sleep_nanos();
        let mut waiting = ContainedFuture::new(system.clone().request(request.clone()));
        let waited = wait(self.clock(), request.request.timeout, &mut waiting);
        let waited = registry::waiting_for_person(self.clock(), waited).await;
        let took = Duration::from_nanos(self.clock().sleep_nanos().saturating_sub(since));
        match waited {
            // A system that blocks the thread delays the timer.
            WaitResult::Done(Ok(late)) if took > request.request.timeout.saturating_add(DELAY) => {
                let late = ContainedFuture::new(Box::pin(std::future::ready(Ok(late))) as BoxFuture<'static, _>);
                self.watch_for_late_answer(id, key.clone(), late);
                Err(ApprovalError::TimedOut)
            }
            WaitResult::Done(answer) => answer,
            WaitResult::Panicked(what) => Err(ApprovalError::Failed(what)),
            WaitResult::TimedOut => {
                self.watch_for_late_answer(id, key.clone(), waiting);
                Err(ApprovalError::TimedOut)
            }
        }
    }

    fn now(&self) -> Option<jiff::Timestamp> {
        self.clock().wall().try_into().ok()
    }

    /// Waits for a late answer, which is recorded without effect.
    fn watch_for_late_answer(
        &self,
        id: u64,
        key: ApprovalKey,
        mut waiting: ContainedFuture<BoxFuture<'static, Result<ApprovalAnswer, ApprovalError>>>,
    ) {
        let (session, clock) = (Arc::downgrade(&self.shared), self.shared.hooks.clock().clone());
        let watch = async move {
            let waited = wait(&*clock, LATE, &mut waiting).await;
            if let (WaitResult::Done(Ok(answer)), Some(shared)) = (waited, session.upgrade()) {
                Coordinator { shared }.record_late(&key.event, late_answer(id, &key.hook, answer));
            }
        };
        if let Some(background) = &self.shared.background {
            background(Box::pin(watch));
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut late = lock(&self.shared.late);
            while late.try_join_next().is_some() {}
            late.spawn_on(watch, &runtime);
        }
    }

    /// Returns the log of a request. It does not keep the session alive.
    fn request_log(&self, event: EventName) -> RequestLog {
        let session = Arc::downgrade(&self.shared);
        RequestLog(Arc::new(move |entry| {
            if let Some(shared) = session.upgrade() {
                Coordinator { shared }.record_late(&event, entry);
            }
        }))
    }

    fn record_late(&self, event: &EventName, entry: AuditEntry) {
        if let Err(error) = self.record(event, entry) {
            super::route::log("audit", &error);
        }
    }

    async fn show_decision(&self, recording: &mut RecordWriter<'_>, key: &ApprovalKey, decision: &ApprovalDecision) {
        let Some(display) = &self.shared.display else { return };
        let (hook, prompt) = (key.hook.clone(), key.prompt.clone());
        let decided = ReportedDecision { hook, prompt, decision: decision.clone() };
        // A failure is recorded.
        let _ = recording.call("display", display.decision(&decided)).await;
    }

    async fn announce(&self, key: &ApprovalKey, decision: &ApprovalDecision) {
        let ApprovalKey { hook, event, prompt } = key;
        let reason = decision.reason.as_str();
        if decision.granted {
            let granted = ApprovalGranted::new(&**hook, event.as_str(), prompt.as_str(), reason);
            self.observe(APPROVAL_GRANTED, granted.into()).await;
        } else {
            let denied = ApprovalDenied::new(&**hook, event.as_str(), prompt.as_str(), reason);
            self.observe(APPROVAL_DENIED, denied.into()).await;
        }
    }

    /// Emits an event that is only observed. Boxed, because the future's type would be recursive.
    fn observe<'a, K: EventKey + 'a>(&'a self, event: K, data: EventData) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.emit_and_route(&event, data).await;
        })
    }
}

fn warning(are_read: bool, is_current: bool, is_known: bool) -> Option<String> {
    let unread = (!are_read).then_some("approval rules cannot be read, and one may deny this");
    let changed = (!is_current).then_some(
        "another hook changed the operation after the request was written; an answer that allows it counts once",
    );
    let unknown = (!is_known).then_some(
        "the definition of this tool has changed; rules that allow it are ignored until it is always allowed again",
    );
    let warnings: Vec<&str> = unread.into_iter().chain(changed).chain(unknown).collect();
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

fn entry(id: Option<u64>, key: &ApprovalKey, decision: &ApprovalDecision) -> AuditEntry {
    let prompt = id.is_none().then(|| key.prompt.clone());
    let (hook, decision) = (key.hook.to_string(), decision.clone());
    AuditEntry::ApprovalDecision(ApprovalDecisionEntry { id, hook, prompt, decision })
}

pub(super) struct OnDrop<F: FnOnce() -> R, R>(Option<F>);

impl<F: FnOnce() -> R, R> OnDrop<F, R> {
    pub(super) fn new(act: F) -> Self {
        Self(Some(act))
    }

    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce() -> R, R> Drop for OnDrop<F, R> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}
