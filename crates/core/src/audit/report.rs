//! Reports of emissions.

use serde::{Deserialize, Serialize};

use super::{FailureEntry, HookReportEntry, InjectionEntry, MessageEntry, OutcomeEntry};
use crate::approval::{ApprovalAnswer, ApprovalDecision};
use crate::event::{Data, Digest, EventEffects, EventName, Map};
use crate::ports::preview::ComparedWith;
use crate::registry::{HookReportRef, Outcome};
use crate::result::{
    ActionKind, ApprovalOption, DecisionKind, DefaultDecision, InjectionStatus, Level, Placement, Role,
};
use crate::words::words;

/// The outcome of an emission as JSON, built from the outcome itself or from the records of a log. Fields that are unknown to the source are
/// missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EmissionReport {
    /// The event.
    pub event: String,
    /// The state of the data.
    pub data_status: DataStatus,
    /// The data as the hooks left it; missing if it was erased or withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub data: Option<Map>,
    /// The decision of the hooks; missing if it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionKind>,
    /// The hook that denied the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// The reason of the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hooks that were called, in running order.
    pub hooks: Vec<HookReport>,
    /// The approvals that hooks requested.
    pub approvals: Vec<ApprovalReport>,
    /// The texts for the agent.
    pub injections: Vec<InjectionReport>,
    /// The messages for the user.
    pub messages: Vec<MessageReport>,
    /// The output of hooks, unless suppressed. It is not recorded.
    pub outputs: Vec<OutputReport>,
    /// The operation that may begin after the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<IntentReport>,
    /// The result of the operation that ended before the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<OutcomeEntry>,
    /// The parts of the system that failed.
    pub failures: Vec<FailureEntry>,
    /// The number of further records of the emission whose content is erased or withheld.
    pub unreadable: u64,
}

/// The report of an emission that is in a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordedEmission {
    /// The number of its first record.
    pub seq: u64,
    /// The time of that record.
    pub time: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run of the session.
    pub run: String,
    /// The turn of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The report.
    #[serde(flatten)]
    pub report: EmissionReport,
}

words! {
    /// The state of the data of an event.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DataStatus("data status") {
        /// Complete.
        #[default]
        Whole = "whole",
        /// Secrets are replaced by markers.
        Redacted = "redacted",
        /// Missing: it was erased.
        Erased = "erased",
        /// Missing: it is nested too deeply to be searched for secrets, or to be read.
        Withheld = "withheld",
    }
}

/// The answer of a hook, or its failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct HookReport {
    /// The hook.
    pub hook: String,
    /// The action, or the kind of failure.
    pub answer: ActionKind,
    /// The time that it took, in nanoseconds.
    pub duration_ns: u64,
    /// The reason that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error of a hook that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `true` if its output is left out of the transcript.
    #[serde(default)]
    pub suppressed_output: bool,
}

/// An approval that a hook requested, and the decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalReport {
    /// The hook.
    pub hook: String,
    /// The id of the request, `SESSION.RUN.N`; missing if the decision needed no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The prompt of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The options of the approver.
    #[serde(default)]
    pub options: Vec<ApprovalOption>,
    /// The time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// The decision if there is no answer in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultDecision>,
    /// `true` if the approval is requested only when no other hook requests one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    /// The digest of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub digest: Option<Digest>,
    /// `true` if another hook changed the data after the request, so that no allow given in advance counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_after_asking: bool,
    /// The file whose change the approver was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<ComparedWith>,
    /// The time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The decision; missing while the request is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
    /// The time of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// The number of the record of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_seq: Option<u64>,
    /// The time from the request to the decision, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// The answers that arrived after the request was closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_answers: Vec<ApprovalAnswer>,
}

/// A text that a hook adds to the conversation of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct InjectionReport {
    /// The hook.
    pub hook: String,
    /// The role of the message.
    pub role: Role,
    /// The position in the conversation.
    pub placement: Placement,
    /// The size of the text.
    pub bytes: usize,
    /// The number of tokens of the text; missing if it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// The status; missing if no session applied its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<InjectionStatus>,
    /// The text.
    pub text: String,
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct MessageReport {
    /// The source: `hook:NAME`, or a part of the system.
    pub source: String,
    /// The urgency.
    pub level: Level,
    /// The text.
    pub text: String,
    /// `true` if there was a display to show it; missing if no session had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<bool>,
}

/// The output of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct OutputReport {
    /// The hook.
    pub hook: String,
    /// The text.
    pub text: String,
}

/// A gated operation that may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IntentReport {
    /// The number of its record.
    pub seq: u64,
    /// The digest of the operation; missing if the data is nested too deeply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub digest: Option<Digest>,
    /// The tool call, which pairs the intent with its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// `true` if the log has no result for it: it is running, or its end is unknown.
    pub unresolved: bool,
}

impl EmissionReport {
    /// Returns the names of the hooks that gave this answer, in running order.
    pub fn answered(&self, answer: ActionKind) -> impl Iterator<Item = &str> {
        self.hooks.iter().filter(move |report| report.answer == answer).map(|report| report.hook.as_str())
    }

    /// Returns `true` if a session requests this approval: no hook denies, and a fallback is requested only if no other hook asks.
    pub fn requests(&self, approval: &ApprovalReport) -> bool {
        !self.decision.is_some_and(|decision| decision.denies_at(&self.event))
            && (!approval.fallback || self.approvals.iter().all(|other| other.fallback))
    }

    /// Returns `true` if the operation does not run: a hook denied it, or an approval that a hook requested was denied.
    pub fn is_denied(&self) -> bool {
        self.decision.is_some_and(|decision| decision.denies_at(&self.event))
            || self.approvals.iter().any(|approval| approval.granted() == Some(false))
    }
}

impl DecisionKind {
    /// Returns `true` if the decision stops the operation. A denial has no effect at an event that only observes, which reports a past
    /// operation.
    pub fn denies_at(self, event: &str) -> bool {
        let is_observed = || event.parse::<EventName>().is_ok_and(|event| event.effects() == EventEffects::Observed);
        self == Self::Deny && !is_observed()
    }
}

impl ApprovalReport {
    /// Returns `true` if the approval was granted; `None` if there is no decision.
    pub fn granted(&self) -> Option<bool> {
        self.decision.as_ref().map(|decision| decision.granted)
    }
}

impl<D: Data> Outcome<D> {
    /// Returns the report, with this data as JSON. Without data, its status is [`DataStatus::Withheld`].
    pub fn report_with(&self, data: Option<Map>) -> EmissionReport {
        let denial = self.denial();
        let approvals = self.approvals().iter().map(|requested| ApprovalReport {
            hook: requested.hook.to_string(),
            prompt: Some(requested.prompt.clone()),
            options: requested.effective_options(),
            timeout_s: Some(requested.timeout.as_secs_f64()),
            default: Some(requested.default),
            fallback: requested.fallback,
            ..ApprovalReport::default()
        });
        let injections = self.injections().iter().map(|injection| InjectionReport {
            hook: injection.hook.to_string(),
            role: injection.role,
            placement: injection.placement,
            bytes: injection.text.len(),
            tokens: None,
            status: None,
            text: injection.text.clone(),
        });
        let messages = self.messages().iter().map(|message| MessageReport {
            source: format!("hook:{}", message.hook),
            level: message.level,
            text: message.text.clone(),
            shown: None,
        });
        let outputs = self.outputs().iter();
        let outputs =
            outputs.map(|output| OutputReport { hook: output.hook.to_string(), text: output.value.to_string() });
        EmissionReport {
            event: self.event().to_string(),
            data_status: if data.is_some() { DataStatus::Whole } else { DataStatus::Withheld },
            data,
            decision: Some(self.decision.kind()),
            denied_by: denial.map(|denial| denial.by.to_string()),
            reason: denial.and_then(|denial| denial.reason.clone()),
            hooks: self.reports().map(HookReport::from).collect(),
            approvals: approvals.collect(),
            injections: injections.collect(),
            messages: messages.collect(),
            outputs: outputs.collect(),
            ..EmissionReport::default()
        }
    }
}

impl Outcome {
    /// Returns the outcome in its JSON form.
    ///
    /// ```
    /// use amplifier_core::{DecisionKind, HookRegistry, HookResult, TOOL_PRE, data};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let hooks = HookRegistry::new();
    /// hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::deny("no rm"));
    /// let report = hooks.emit("tool:pre", data! { "tool_name": "Bash", "tool_input": {} }).await.unwrap().report();
    /// assert_eq!((report.decision, report.denied_by.as_deref()), (Some(DecisionKind::Deny), Some("guard")));
    /// # }
    /// ```
    pub fn report(&self) -> EmissionReport {
        self.report_with(Some(self.data.object()))
    }
}

impl From<HookReportRef<'_>> for HookReport {
    fn from(report: HookReportRef<'_>) -> Self {
        HookReportEntry::from(report).into()
    }
}

impl From<HookReportEntry> for HookReport {
    fn from(HookReportEntry { hook, answer, took, reason, error, suppressed_output }: HookReportEntry) -> Self {
        let duration_ns = took.as_nanos().try_into().unwrap_or(u64::MAX);
        Self { hook, answer, duration_ns, reason, error, suppressed_output }
    }
}

impl From<InjectionEntry> for InjectionReport {
    fn from(InjectionEntry { hook, role, placement, bytes, tokens, status, text }: InjectionEntry) -> Self {
        Self { hook, role, placement, bytes, tokens: Some(tokens), status: Some(status), text }
    }
}

impl From<MessageEntry> for MessageReport {
    fn from(MessageEntry { shown, source, level, text }: MessageEntry) -> Self {
        Self { source, level, text, shown: Some(shown) }
    }
}
