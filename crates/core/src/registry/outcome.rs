//! Everything that the hooks of one emission said.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::progress::Progress;
use super::table::Listeners;
use crate::event::{Data, Digest, EventData, EventName};
use crate::result::{ActionKind, Approval, DecisionKind, FlatAction, FlatResult, HookError, Injection, UserMessage};

/// The outcome of an emission. Nothing that a hook said is lost.
pub struct Outcome<D: Data = EventData> {
    /// What is to happen: the strongest of all answers.
    pub decision: Decision,
    /// The data after every modification.
    pub data: D,
    // Boxed: most hooks say nothing beyond their answer, and outcomes are moved around.
    pub(super) details: Option<Box<OutcomeDetails<D>>>,
    pub(super) progress: Progress,
    pub(super) listeners: Listeners,
}

/// What hooks said beyond their answers, each list in running order.
pub(super) struct OutcomeDetails<D: Data> {
    pub(super) approvals: Vec<HookApproval>,
    pub(super) injections: Vec<Attributed<Injection>>,
    pub(super) messages: Vec<Attributed<UserMessage>>,
    pub(super) outputs: Vec<Attributed<Box<str>>>,
    pub(super) responses: Vec<Attributed<D::Object>>,
    /// Why hooks answered as they did, by their place in the running order.
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

/// What is to happen with the operation: `deny > ask_user > inject_context > modify > continue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Continue,
    /// It goes on with changed data.
    Modify,
    /// It goes on, and the agent is told something.
    InjectContext,
    /// It goes on if a person agrees.
    AskUser,
    /// It does not go on.
    Deny(Box<Denial>),
}

/// Who blocked an operation, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The hook.
    pub by: Arc<str>,
    /// What it said.
    pub reason: Option<String>,
}

impl Denial {
    /// The words for a missing reason.
    pub const NO_REASON: &str = "no reason given";

    /// The reason, in words.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(Self::NO_REASON)
    }
}

/// What the agent reads as the result of a blocked operation.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denied by hook {}: {}", self.by, self.reason())
    }
}

impl Decision {
    /// `deny > ask_user > inject_context > modify > continue`
    pub(super) fn strength(&self) -> u8 {
        match self {
            Self::Continue => 0,
            Self::Modify => 1,
            Self::InjectContext => 2,
            Self::AskUser => 3,
            Self::Deny(_) => 4,
        }
    }

    /// Who blocked the operation, and why.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Deny(denial) => Some(denial),
            _ => None,
        }
    }

    /// Returns the decision without its denial.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Continue => DecisionKind::Continue,
            Self::Modify => DecisionKind::Modify,
            Self::InjectContext => DecisionKind::InjectContext,
            Self::AskUser => DecisionKind::AskUser,
            Self::Deny(_) => DecisionKind::Deny,
        }
    }

    /// Returns the word of its kind.
    pub fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }
}

/// Something a hook said, and which hook.
#[derive(Clone, Debug, PartialEq)]
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

/// An approval that a hook asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct HookApproval {
    /// The hook's name.
    pub hook: Arc<str>,
    /// What it asks.
    pub approval: Approval,
    /// Why it asks.
    pub reason: Option<String>,
    /// The digest of the data that the hook saw; `None` if that data has none.
    pub(crate) asked_about: Option<Digest>,
}

impl Deref for HookApproval {
    type Target = Approval;

    fn deref(&self) -> &Approval {
        &self.approval
    }
}

/// What one hook answered, how long it took, and how it failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HookReportRef<'a> {
    /// The hook's name.
    pub hook: &'a str,
    /// What it answered.
    pub answer: ActionKind,
    /// How long it took. Beyond the sixteenth, hooks that answer at once are timed four together and share the time.
    pub took: Duration,
    /// Why it answered so.
    pub reason: Option<&'a str>,
    /// How it failed.
    pub error: Option<&'a HookError>,
    /// Whether it kept its output out of the transcript.
    pub suppressed_output: bool,
}

impl HookReportRef<'_> {
    /// Returns the action of the hook, or the kind of its failure.
    pub fn answer_or_failure(&self) -> ActionKind {
        self.error.map_or(self.answer, HookError::kind)
    }
}

impl<D: Data> Outcome<D> {
    /// The event as it was emitted.
    pub fn event(&self) -> &EventName {
        self.listeners.event()
    }

    /// Whether no hook failed or said anything but "go on".
    pub fn is_silent(&self) -> bool {
        self.decision == Decision::Continue && self.details.is_none()
    }

    /// Who blocked the operation, and why.
    pub fn denial(&self) -> Option<&Denial> {
        self.decision.denial()
    }

    /// Every approval that was asked for, in running order.
    pub fn approvals(&self) -> &[HookApproval] {
        self.details.as_ref().map_or(&[], |details| &details.approvals)
    }

    /// Every injection, in running order.
    pub fn injections(&self) -> &[Attributed<Injection>] {
        self.details.as_ref().map_or(&[], |details| &details.injections)
    }

    /// Every message for the person, in running order.
    pub fn messages(&self) -> &[Attributed<UserMessage>] {
        self.details.as_ref().map_or(&[], |details| &details.messages)
    }

    /// What hooks printed and did not suppress, in running order.
    pub fn outputs(&self) -> &[Attributed<Box<str>>] {
        self.details.as_ref().map_or(&[], |details| &details.outputs)
    }

    /// Every answer for `emit_and_collect`, in running order.
    pub fn responses(&self) -> &[Attributed<D::Object>] {
        self.details.as_ref().map_or(&[], |details| &details.responses)
    }

    pub(super) fn into_responses(self) -> Vec<Attributed<D::Object>> {
        self.details.map_or_else(Vec::new, |details| details.responses)
    }

    /// What each hook that ran answered, in running order.
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

    /// The outcome as one flat result: the winning action, the final data (none when denied), injections joined by a
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
            flat.set_message(UserMessage { text: texts.join("\n"), level });
        }
        flat
    }

    fn flat_reason(&self) -> Option<&str> {
        if let Some(denial) = self.denial() {
            return denial.reason.as_deref();
        }
        // Those of the gates; an observer's reason has no say.
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
