//! The order in which an outcome is routed.

use std::sync::atomic::Ordering;

use super::approval_requests::OnDrop;
use super::failures::failures;
use super::inject::{self, CheckedInjection, ContainedCounter, Origin};
use super::record::RecordWriter;
use super::{Coordinator, Verdict};
use crate::audit::{AuditEntry, InjectionEntry, MessageEntry};
use crate::contain;
use crate::event::{Data, EventData, EventEffects, EventName};
use crate::ports::approval_rules::ToolDefinition;
use crate::ports::display::{AddedContext, DisplayMessage};
use crate::registry::{Attributed, Denial, HookApproval, Outcome};
use crate::result::{Injection, InjectionStatus, Level, UserMessage};
use crate::sync::lock;

pub(super) const TOOL_CALL_ID: &str = "tool_call_id";

pub(super) struct Routing<'a> {
    pub(super) event: &'a EventName,
    pub(super) data: EventData,
    /// The tool call as emitted: it pairs intent and outcome, independent of modifications.
    pub(super) tool_call_id: Option<String>,
    /// The definition of the event's tool, if it is an external one.
    pub(super) definition: Option<ToolDefinition>,
    pub(super) denial: Option<Denial>,
    pub(super) approvals: Vec<HookApproval>,
    pub(super) injections: Vec<Attributed<Injection>>,
    pub(super) messages: Vec<Attributed<UserMessage>>,
    pub(super) failures: Vec<Attributed<String>>,
    pub(super) outputs: Vec<Attributed<Box<str>>>,
    pub(super) reports: Vec<AuditEntry>,
}

impl<'a> Routing<'a> {
    pub(super) fn new(event: &'a EventName, data: EventData) -> Self {
        Self {
            event,
            tool_call_id: data.text(TOOL_CALL_ID).map(str::to_owned),
            data,
            definition: None,
            denial: None,
            approvals: Vec::new(),
            injections: Vec::new(),
            messages: Vec::new(),
            failures: Vec::new(),
            outputs: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// `emitted` is the data as emitted, at events where denials and modifications do not count; `recorded` is `true` if there is an audit log.
    pub(super) fn from_outcome(outcome: &'a Outcome, emitted: Option<EventData>, recorded: bool) -> Self {
        Self::from_outcome_of(outcome, emitted.unwrap_or_else(|| outcome.data.clone()), recorded)
    }

    /// Does the same for an emission over any type of data; `data` is its effective data as JSON.
    pub(super) fn from_outcome_of<D: Data>(outcome: &'a Outcome<D>, data: EventData, recorded: bool) -> Self {
        let event = outcome.event();
        let observed = event.effects() == EventEffects::Observed;
        Self {
            definition: if outcome.approvals().is_empty() { None } else { ToolDefinition::from_data(&data) },
            denial: outcome.denial().filter(|_| !observed).cloned(),
            approvals: if event.effects() == EventEffects::All { outcome.approvals().to_vec() } else { Vec::new() },
            injections: if event.effects().can_inject() { outcome.injections().to_vec() } else { Vec::new() },
            messages: outcome.messages().to_vec(),
            failures: failures(outcome),
            outputs: outcome.outputs().to_vec(),
            reports: match recorded {
                true => super::record::reports(outcome, &data, outcome.decision.kind()),
                false => Vec::new(),
            },
            ..Self::new(event, data)
        }
    }
}

impl Coordinator {
    /// Routes approvals, injections, messages and records; returns the verdict.
    pub(super) async fn route(&self, routing: Routing<'_>) -> Verdict {
        let Routing {
            event,
            data,
            tool_call_id,
            definition,
            denial,
            approvals,
            injections,
            messages,
            failures,
            outputs,
            reports,
        } = routing;
        let mut recording = RecordWriter::new(self, event);
        for entry in reports {
            recording.record(entry);
        }

        let mut verdict = match &denial {
            Some(denial) => Verdict::denied(denial.by.clone(), denial.reason()),
            None => self.request_approvals(&mut recording, approvals, &data, definition.as_ref()).await,
        };
        self.inject_all(&mut recording, injections, tool_call_id.as_deref()).await;
        for failure in failures {
            let warning = lock(&self.shared.failures).warning(&failure, event, &verdict);
            if let Some(warning) = warning {
                self.show(&mut recording, Level::Warning, format!("hook:{}", failure.hook), warning).await;
            }
        }
        for Attributed { hook, value } in messages {
            let source = format!("hook:{hook}");
            let shown_source = value.source.map_or_else(|| source.clone(), |name| format!("hook:{name}"));
            self.show_as(&mut recording, value.level, source, shown_source, value.text).await;
        }
        for Attributed { hook, value } in outputs {
            self.show_output(&mut recording, &hook, &value).await;
        }
        let runs = if let Verdict::Proceed(runs) = &verdict { runs } else { &data };
        let given_up = recording.record_operation(runs, tool_call_id, verdict.is_proceed());
        // If this future is dropped here, the operation never begins, and its intent needs an outcome.
        let given_up = OnDrop::new(|| given_up.map(|outcome| self.record(event, outcome)));
        let problem = recording.finish().await;
        given_up.disarm();
        if let Some(problem) = problem {
            let text = format!("the audit log failed: {problem}");
            if let Some(display) = self.shared.display.as_ref().filter(|_| !recording.has_hung("display")) {
                let message = DisplayMessage { text: text.clone(), level: Level::Error, source: "kernel".to_owned() };
                // Not recorded, because recording just failed.
                let shown = contain::port(self.clock(), display.message(&message)).await;
                shown.unwrap_or_else(|error| log("display", &error));
            }
            if self.shared.config.audit_required && event.effects() != EventEffects::Observed && verdict.is_proceed() {
                verdict = Verdict::denied("audit".into(), &text);
            }
        }
        verdict
    }

    /// Applies the limits to a single injection, without using the budget of the turn.
    pub(super) fn admit_alone(&self, injection: Attributed<Injection>) -> CheckedInjection {
        inject::InjectionBudget::default().admit(injection, &self.shared.config, &self.tokens())
    }

    async fn inject_all(
        &self,
        recording: &mut RecordWriter<'_>,
        injections: Vec<Attributed<Injection>>,
        tool_call_id: Option<&str>,
    ) {
        if injections.is_empty() {
            return;
        }
        let admitted: Vec<CheckedInjection> = {
            let mut budget = lock(&self.shared.budget);
            let budget = budget.of_turn(self.shared.turn.load(Ordering::Relaxed));
            let admit = |injection| budget.admit(injection, &self.shared.config, &self.tokens());
            injections.into_iter().map(admit).collect()
        };
        for one in &admitted {
            self.record_injection(recording, one);
            if let Some(warning) = one.check.warning() {
                if self.shared.display.is_none() {
                    tracing::warn!({ hook.name = &*one.injection.hook }, "{warning}");
                }
                self.show(recording, Level::Warning, format!("hook:{}", one.injection.hook), warning).await;
            }
        }
        let Some(context) = &self.shared.context else { return };
        if let Some(display) = &self.shared.display {
            for CheckedInjection { injection: Attributed { hook, value }, tokens, check } in &admitted {
                if check.is_injected() && !value.text.is_empty() {
                    let added = AddedContext { hook: hook.clone(), tokens: *tokens, placement: value.placement };
                    let _ = recording.call("display", display.context(&added)).await;
                }
            }
        }
        let origin = Origin { event: recording.event(), tool_call_id, at: self.clock().wall() };
        for message in inject::messages(&admitted, &origin) {
            let source = format!("hook:{}", message.hooks.join(", "));
            if let Err(error) = recording.call("context", context.add(message)).await {
                self.show(recording, Level::Error, source, format!("the injection was lost: {error}")).await;
            }
        }
    }

    fn record_injection(&self, recording: &mut RecordWriter<'_>, admitted: &CheckedInjection) {
        let CheckedInjection { injection: Attributed { hook, value }, tokens, check } = admitted;
        let status = if self.shared.context.is_some() { check.status() } else { InjectionStatus::NoContext };
        let bytes = value.text.len();
        tracing::info!({ hook.name = %hook, bytes, tokens, fate = status.as_str() }, "hook injection");
        recording.record(AuditEntry::Injection(InjectionEntry {
            hook: hook.to_string(),
            role: value.role,
            placement: value.placement,
            bytes,
            tokens: *tokens,
            status,
            text: value.text.clone(),
        }));
    }

    /// Records a result whose injection is too large to be routed.
    pub(super) async fn record_refusal(&self, event: &EventName, reports: Vec<AuditEntry>, refused: &CheckedInjection) {
        let mut recording = RecordWriter::new(self, event);
        reports.into_iter().for_each(|entry| recording.record(entry));
        self.record_injection(&mut recording, refused);
        recording.finish().await;
    }

    pub(super) async fn show(&self, recording: &mut RecordWriter<'_>, level: Level, source: String, text: String) {
        self.show_as(recording, level, source.clone(), source, text).await;
    }

    /// Records a message under its source, and shows it under another.
    async fn show_as(
        &self,
        recording: &mut RecordWriter<'_>,
        level: Level,
        source: String,
        shown_source: String,
        text: String,
    ) {
        let shown = self.shared.display.is_some();
        recording.record(AuditEntry::Message(MessageEntry { shown, source, level, text: text.clone() }));
        if let Some(display) = &self.shared.display {
            let message = DisplayMessage { text, level, source: shown_source };
            // A failure is already recorded.
            let _ = recording.call("display", display.message(&message)).await;
        }
    }

    async fn show_output(&self, recording: &mut RecordWriter<'_>, hook: &str, output: &str) {
        let Some(display) = &self.shared.display else { return };
        let source = format!("hook:{hook}");
        let _ = recording.call("display", display.output(&source, output)).await;
    }

    fn tokens(&self) -> ContainedCounter<'_> {
        ContainedCounter(&*self.shared.tokens)
    }

    pub(super) fn clock(&self) -> &dyn crate::ports::clock::Clock {
        &**self.shared.hooks.clock()
    }
}

pub(super) fn log(part: &'static str, error: &crate::ports::PortError) {
    tracing::error!(part, %error, "a part of the system failed");
}
