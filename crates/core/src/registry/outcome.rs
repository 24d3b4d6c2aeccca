//! The outcome of an emission.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::precedence::{Decision, Denial};
use super::progress::Progress;
use super::table::Listeners;
use crate::event::{Data, Digest, EventData, EventName};
use crate::result::{ActionKind, Approval, FlatAction, FlatResult, HookError, Injection, UserMessage};

/// All results of the hooks of one emission.
pub struct Outcome<D: Data = EventData> {
    /// The decision: the strongest of all results.
    pub decision: Decision,
    /// The data after every modification.
    pub data: D,
    // Boxed: most hooks have no details, and outcomes are moved around.
    pub(super) details: Option<Box<OutcomeDetails<D>>>,
    pub(super) progress: Progress,
    pub(super) listeners: Listeners,
}

/// The details of hook results beyond the action, each list in running order.
pub(super) struct OutcomeDetails<D: Data> {
    pub(super) approvals: Vec<HookApproval>,
    pub(super) injections: Vec<Attributed<Injection>>,
    pub(super) messages: Vec<Attributed<UserMessage>>,
    pub(super) outputs: Vec<Attributed<Box<str>>>,
    pub(super) responses: Vec<Attributed<D::Object>>,
    /// Reasons and failures, by the index of the hook.
    pub(super) reasons: Vec<(usize, ReportDetail)>,
}

pub(super) enum ReportDetail {
    Reason(String),
    Failure(HookError),
}

impl<D: Data> Default for OutcomeDetails<D> {
    fn default() -> Self {
        Self {
            approvals: Vec::new(),
            injections: Vec::new(),
            messages: Vec::new(),
            outputs: Vec::new(),
            responses: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

/// A value with the hook that returned it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attributed<T> {
    /// The hook's name.
    pub hook: Arc<str>,
    /// The value.
    pub value: T,
}

impl<T> Deref for Attributed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// An approval that a hook requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HookApproval {
    /// The hook's name.
    pub hook: Arc<str>,
    /// The requested approval.
    pub approval: Approval,
    /// The reason of the request.
    pub reason: Option<String>,
    pub(crate) asked_about: Option<Digest>,
}

impl Deref for HookApproval {
    type Target = Approval;

    fn deref(&self) -> &Approval {
        &self.approval
    }
}

/// The report on one hook: action, duration and failure.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HookReportRef<'a> {
    /// The hook's name.
    pub hook: &'a str,
    /// The action.
    pub answer: ActionKind,
    /// The duration. Beyond the sixteenth, synchronous hooks are timed in groups of four, which share the time.
    pub took: Duration,
    /// The reason.
    pub reason: Option<&'a str>,
    /// The failure.
    pub error: Option<&'a HookError>,
    /// `true` if its output is left out of the transcript.
    pub suppressed_output: bool,
}

impl HookReportRef<'_> {
    /// Returns the action of the hook, or the kind of its failure.
    pub fn answer_or_failure(&self) -> ActionKind {
        self.error.map_or(self.answer, HookError::kind)
    }
}

impl<D: Data> Outcome<D> {
    /// Returns the event as emitted.
    pub fn event(&self) -> &EventName {
        self.listeners.event()
    }

    /// Returns `true` if every hook returned a plain `continue`.
    pub fn is_silent(&self) -> bool {
        self.decision == Decision::Continue && self.details.is_none()
    }

    /// Returns the denial, if there is one.
    pub fn denial(&self) -> Option<&Denial> {
        self.decision.denial()
    }

    /// Returns every requested approval, in running order.
    pub fn approvals(&self) -> &[HookApproval] {
        self.details.as_ref().map_or(&[], |details| &details.approvals)
    }

    /// Returns every injection, in running order.
    pub fn injections(&self) -> &[Attributed<Injection>] {
        self.details.as_ref().map_or(&[], |details| &details.injections)
    }

    /// Returns every message for the user, in running order.
    pub fn messages(&self) -> &[Attributed<UserMessage>] {
        self.details.as_ref().map_or(&[], |details| &details.messages)
    }

    /// Returns the output of hooks that is not suppressed, in running order.
    pub fn outputs(&self) -> &[Attributed<Box<str>>] {
        self.details.as_ref().map_or(&[], |details| &details.outputs)
    }

    /// Returns every response for `emit_and_collect`, in running order.
    pub fn responses(&self) -> &[Attributed<D::Object>] {
        self.details.as_ref().map_or(&[], |details| &details.responses)
    }

    pub(super) fn into_responses(self) -> Vec<Attributed<D::Object>> {
        self.details.map_or_else(Vec::new, |details| details.responses)
    }

    /// Returns the report on each hook that ran, in running order.
    pub fn reports(&self) -> impl ExactSizeIterator<Item = HookReportRef<'_>> {
        let hooks = self.listeners.hooks();
        let reasons: &[_] = self.details.as_ref().map_or(&[], |details| &details.reasons);
        self.progress.reports().iter().map(move |stored| {
            let hook = stored.hook as usize;
            let detail = reasons.iter().find(|(of, _)| *of == hook).map(|(_, detail)| detail);
            let (reason, error) = match detail {
                Some(ReportDetail::Reason(reason)) => (Some(reason.as_str()), None),
                Some(ReportDetail::Failure(error)) => (None, Some(error)),
                None => (None, None),
            };
            HookReportRef {
                hook: &hooks[hook].info().name,
                answer: stored.answer,
                took: Duration::from_nanos(stored.nanos),
                reason,
                error,
                suppressed_output: stored.suppressed_output,
            }
        })
    }

    /// Returns the outcome as one flat result: the winning action, the final data (none when denied), injections joined by a
    /// blank line, the first approval, messages joined with the highest level. Modifications alone are `continue`.
    pub fn flat(&self) -> FlatResult<D::Object> {
        let mut flat = FlatResult {
            action: match self.decision {
                Decision::Continue | Decision::Modify => FlatAction::Continue,
                Decision::InjectContext => FlatAction::InjectContext,
                Decision::AskUser => FlatAction::AskUser,
                Decision::Deny(_) => FlatAction::Deny,
            },
            data: self.denial().is_none().then(|| self.data.object()),
            reason: self.flat_reason().map(str::to_owned),
            suppress_output: self.progress.reports().iter().any(|report| report.suppressed_output),
            ..FlatResult::default()
        };
        if let Some(first) = self.injections().first() {
            let texts: Vec<_> = self.injections().iter().map(|injection| injection.text.as_str()).collect();
            flat.set_injection(Injection { text: texts.join("\n\n"), ..first.value });
        }
        if let Some(first) = self.approvals().first() {
            flat.set_approval(first.approval.clone());
        }
        if let Some(level) = self.messages().iter().map(|message| message.level).max() {
            let texts: Vec<_> = self.messages().iter().map(|message| message.text.as_str()).collect();
            // Several messages have several sources.
            let source = match self.messages() {
                [only] => only.source.clone(),
                _ => None,
            };
            flat.set_message(UserMessage { text: texts.join("\n"), level, source });
        }
        flat
    }

    fn flat_reason(&self) -> Option<&str> {
        if let Some(denial) = self.denial() {
            return denial.reason.as_deref();
        }
        // Only gates; an observer's reason does not count.
        let gates = self.progress.gates();
        let reports = || self.progress.reports().iter().zip(self.reports());
        let reason_of = |answer| {
            let (_, report) =
                reports().find(|(stored, report)| (stored.hook as usize) < gates && report.answer == answer)?;
            report.reason
        };
        reason_of(ActionKind::AskUser).or_else(|| reason_of(ActionKind::Modify))
    }
}

impl<D: Data + fmt::Debug> fmt::Debug for Outcome<D>
where
    D::Object: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("event", self.event())
            .field("decision", &self.decision)
            .field("data", &self.data)
            .field("approvals", &self.approvals())
            .field("injections", &self.injections())
            .field("messages", &self.messages())
            .field("responses", &self.responses())
            .field("reports", &self.reports().collect::<Vec<_>>())
            .finish()
    }
}
