//! The order in which an outcome is routed.

use std::sync::Arc;

use super::inject::{self, Admitted, ContainedCounter, Fate, InjectionTooLarge};
use super::record::Recording;
use super::{Coordinator, Verdict};
use crate::event::{Answers, EventData, EventName};
use crate::guard;
use crate::ports::audit::AuditEntry;
use crate::ports::display::DisplayMessage;
use crate::registry::{Answered, Denial, FromHook, Outcome};
use crate::result::{Approval, Injection, Level, UserMessage};
use crate::sync::lock;

/// Everything of an emission that has to be routed.
pub(super) struct Routing<'a> {
    pub(super) event: &'a EventName,
    /// What will run.
    pub(super) data: EventData,
    pub(super) denial: Option<Denial>,
    /// Each with the reason that the hook gave.
    pub(super) approvals: Vec<(FromHook<Approval>, Option<String>)>,
    pub(super) injections: Vec<FromHook<Injection>>,
    pub(super) messages: Vec<FromHook<UserMessage>>,
    pub(super) outputs: Vec<FromHook<Box<str>>>,
    /// What the record says about the emission itself.
    reports: Vec<AuditEntry>,
}

impl<'a> Routing<'a> {
    pub(super) fn new(event: &'a EventName, data: EventData) -> Self {
        Self {
            event,
            data,
            denial: None,
            approvals: Vec::new(),
            injections: Vec::new(),
            messages: Vec::new(),
            outputs: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// `emitted` is the data as emitted, at events where denials and modifications do not count.
    pub(super) fn of(outcome: &'a Outcome, emitted: Option<EventData>) -> Self {
        let event = outcome.event();
        let observed = emitted.is_some();
        let asks = outcome.reports().filter(|report| report.answer == Answered::AskUser);
        let gates = asks
            .zip(outcome.approvals())
            .map(|(report, approval)| (approval.clone(), report.reason.map(str::to_owned)));
        Self {
            denial: outcome.denial().filter(|_| !observed).cloned(),
            approvals: if event.answers() == Answers::All { gates.collect() } else { Vec::new() },
            injections: outcome.injections().to_vec(),
            messages: outcome.messages().to_vec(),
            outputs: outcome.outputs().to_vec(),
            reports: super::record::reports(outcome),
            ..Self::new(event, emitted.unwrap_or_else(|| outcome.data.clone()))
        }
    }
}

impl Coordinator {
    /// Approvals, injections, messages, record; then the verdict.
    pub(super) async fn route(&self, routing: Routing<'_>) -> Verdict {
        let Routing { event, data, denial, approvals, injections, messages, outputs, reports } = routing;
        let mut recording = Recording::new(self, event);
        for entry in reports {
            recording.record(entry);
        }

        let mut verdict = match &denial {
            Some(denial) => Verdict::from(denial),
            None => self.ask_all(&mut recording, approvals, &data).await,
        };
        self.inject_all(&mut recording, injections).await;
        for FromHook { hook, said } in messages {
            self.show(&mut recording, said.level, format!("hook:{hook}"), said.text).await;
        }
        for FromHook { hook, said } in outputs {
            self.show_output(&mut recording, &hook, &said).await;
        }
        recording.record_operation(&data, verdict.is_proceed());
        if let Some(problem) = recording.finish().await {
            let text = format!("the audit log failed: {problem}");
            // Not recorded: that is what just failed.
            self.display(Level::Error, "kernel".to_owned(), &text).await.unwrap_or_else(|error| log("display", &error));
            if self.shared.config.audit_required && event.answers() != Answers::Observed && verdict.is_proceed() {
                verdict = Verdict::Denied { by: "audit".into(), reason: text };
            }
        }
        verdict
    }

    pub(super) fn check_size(&self, hook: &Arc<str>, injection: &Injection) -> Result<(), InjectionTooLarge> {
        let trial = FromHook { hook: hook.clone(), said: injection.clone() };
        let admitted = inject::Turn::default().admit(trial, &self.shared.config, &self.tokens());
        match admitted.fate {
            Fate::Refused(too_large) => Err(too_large),
            _ => Ok(()),
        }
    }

    async fn inject_all(&self, recording: &mut Recording<'_>, injections: Vec<FromHook<Injection>>) {
        if injections.is_empty() {
            return;
        }
        let admitted: Vec<Admitted> = {
            let mut turn = lock(&self.shared.turn);
            let admit = |injection| turn.admit(injection, &self.shared.config, &self.tokens());
            injections.into_iter().map(admit).collect()
        };
        for one in &admitted {
            let Admitted { injection: FromHook { hook, said }, tokens, fate } = one;
            let (bytes, fate_word) = (said.text.len(), fate.as_str());
            tracing::info!({ hook.name = %hook, bytes, tokens, fate = fate_word }, "hook injection");
            recording.record(AuditEntry::Injection {
                hook: hook.to_string(),
                role: said.role,
                placement: said.placement,
                bytes,
                tokens: *tokens,
                fate: fate_word,
                text: said.text.clone(),
            });
            if let Some(warning) = fate.warning() {
                self.show(recording, Level::Warning, format!("hook:{hook}"), warning).await;
            }
        }
        let Some(context) = &self.shared.context else { return };
        for message in inject::messages(&admitted, recording.event(), self.clock().wall()) {
            let source = format!("hook:{}", message.hooks.join(", "));
            if let Err(error) = guard::port(self.clock(), context.add(message)).await {
                recording.fail("context", &error);
                self.show(recording, Level::Error, source, format!("the injection was lost: {error}")).await;
            }
        }
    }

    /// Shows a message and records it.
    pub(super) async fn show(&self, recording: &mut Recording<'_>, level: Level, source: String, text: String) {
        recording.record(AuditEntry::Message { source: source.clone(), level, text: text.clone() });
        if let Err(error) = self.display(level, source, &text).await {
            recording.fail("display", &error);
        }
    }

    async fn display(&self, level: Level, source: String, text: &str) -> Result<(), crate::ports::PortError> {
        let Some(display) = &self.shared.display else { return Ok(()) };
        let message = DisplayMessage { text: text.to_owned(), level, source };
        guard::port(self.clock(), display.message(&message)).await
    }

    async fn show_output(&self, recording: &mut Recording<'_>, hook: &str, output: &str) {
        let Some(display) = &self.shared.display else { return };
        let source = format!("hook:{hook}");
        if let Err(error) = guard::port(self.clock(), display.output(&source, output)).await {
            recording.fail("display", &error);
        }
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
