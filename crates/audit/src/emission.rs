//! What a log says about one emission of an event.

use amplifier_core::{Actor, DecisionBasis, FailureEntry, HookReportEntry, InjectionEntry, MessageEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::Kind;
use crate::statistics::is_observed;

/// What a log says about one emission: the event, what the hooks made of it, and what followed from that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedEmission {
    /// The number of the record of the event.
    pub seq: u64,
    /// When it was recorded.
    pub time: String,
    /// In which session.
    pub session: Option<String>,
    /// In which turn.
    pub turn: Option<u64>,
    /// The event.
    pub event: String,
    /// How much of the data is there.
    pub kept: Kept,
    /// The data as the hooks left it; none if it is not there any more.
    pub data: Option<Map<String, Value>>,
    /// What the hooks decided; none if that is not there any more.
    pub decision: Option<String>,
    /// Who denied it.
    pub denied_by: Option<String>,
    /// Why it was denied.
    pub reason: Option<String>,
    /// What each hook answered, in running order.
    pub hooks: Vec<RecordedReport>,
    /// What was asked, and what came of it.
    pub approvals: Vec<RecordedApproval>,
    /// What hooks told the agent.
    pub injections: Vec<RecordedInjection>,
    /// What the person was told.
    pub messages: Vec<RecordedMessage>,
    /// The operation that may begin after it.
    pub intent: Option<RecordedIntent>,
    /// The operation that has ended before it.
    pub outcome: Option<RecordedOutcome>,
    /// What failed meanwhile.
    pub failures: Vec<RecordedFailure>,
    /// How many more records belong to it whose content is not there any more.
    pub unreadable: u64,
}

/// How much of the data of an event is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// All of it.
    Whole,
    /// All but secrets, which became markers.
    Redacted,
    /// Nothing: it was erased.
    Erased,
    /// Nothing: it was too deep to be searched for secrets, or to be read again.
    Withheld,
}

/// What one hook answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedReport {
    /// The hook.
    pub hook: String,
    /// What it answered, or how it failed.
    pub answer: String,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// Why it answered so.
    pub reason: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Whether it kept its output out of the transcript.
    #[serde(default)]
    pub suppressed_output: bool,
}

/// What a hook wanted to have allowed, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecordedApproval {
    /// The hook.
    pub hook: String,
    /// The question; none if nobody had to be asked.
    pub id: Option<u64>,
    /// What was asked.
    pub prompt: Option<String>,
    /// When it was asked.
    pub asked: Option<String>,
    /// Whether it was allowed; none if the log does not say.
    pub granted: Option<bool>,
    /// What that rests on: `answer`, `rule`, `remembered`, `timeout`, …
    pub basis: Option<DecisionBasis>,
    /// The same in words.
    pub reason: Option<String>,
    /// Who answered, where somebody did and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// When it was decided.
    #[serde(skip)]
    pub decided_at: Option<String>,
    /// The number of the record that says so.
    #[serde(skip)]
    pub decided_seq: Option<u64>,
    /// How long the decision took from the question on, in milliseconds.
    pub waited_ms: Option<u64>,
    /// An answer that came too late.
    pub late_answer: Option<String>,
    /// The approver who gave it, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_answer_by: Option<Actor>,
}

/// What a hook told the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedInjection {
    /// The hook.
    pub hook: String,
    /// As whom it spoke.
    pub role: String,
    /// Where it landed.
    pub placement: String,
    /// How large it is.
    pub bytes: u64,
    /// How many tokens it takes.
    pub tokens: u64,
    /// What became of it.
    pub fate: String,
    /// What it says.
    pub text: String,
}

/// What the person was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMessage {
    /// Whether there was a display to show it.
    pub shown: bool,
    /// Who said it.
    pub source: String,
    /// How urgent it is.
    pub level: String,
    /// What it says.
    pub text: String,
}

/// A gated operation that may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedIntent {
    /// The number of its record.
    pub seq: u64,
    /// The digest of what was to run.
    pub digest: Option<String>,
    /// Which call.
    pub tool_call_id: Option<String>,
    /// Whether nobody knows how it ended. Only the end of the log tells: see [`Operations`](crate::Operations).
    pub in_doubt: bool,
}

/// A gated operation that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedOutcome {
    /// Whether it succeeded, where that is known.
    pub success: Option<bool>,
    /// Which call.
    pub tool_call_id: Option<String>,
}

/// A part of the system that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFailure {
    /// The part.
    pub part: String,
    /// What went wrong.
    pub error: String,
}

/// A record that belongs to no emission, or to one that was long over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrayRecord {
    /// The number of the record.
    pub seq: u64,
    /// When it was recorded.
    pub time: String,
    /// In which session.
    pub session: Option<String>,
    /// In which turn.
    pub turn: Option<u64>,
    /// At which event.
    pub event: Option<String>,
    /// What it is about.
    pub kind: Kind,
    /// What it says.
    pub body: Value,
}

impl RecordedEmission {
    /// The hooks that gave this answer.
    pub fn answered(&self, answer: &str) -> impl Iterator<Item = &str> {
        self.hooks.iter().filter(move |report| report.answer == answer).map(|report| report.hook.as_str())
    }

    /// Whether something did not go on: a hook denied it, or what a hook asked for was refused.
    pub fn is_stopped(&self) -> bool {
        (self.decision.as_deref() == Some("deny") && !is_observed(&self.event))
            || self.approvals.iter().any(|approval| approval.granted == Some(false))
    }

    /// Whether a hook is still waiting for what it asked for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.approvals.iter().any(|approval| approval.granted.is_none())
    }
}

impl From<HookReportEntry> for RecordedReport {
    fn from(HookReportEntry { hook, answer, took, reason, error, suppressed_output }: HookReportEntry) -> Self {
        let took_ns = took.as_nanos().try_into().unwrap_or(u64::MAX);
        Self { hook, answer: answer.as_str().to_owned(), took_ns, reason, error, suppressed_output }
    }
}

impl From<InjectionEntry> for RecordedInjection {
    fn from(InjectionEntry { hook, role, placement, bytes, tokens, status, text }: InjectionEntry) -> Self {
        Self {
            hook,
            role: role.as_str().to_owned(),
            placement: placement.as_str().to_owned(),
            bytes: bytes as u64,
            tokens: tokens as u64,
            fate: status.as_str().to_owned(),
            text,
        }
    }
}

impl From<MessageEntry> for RecordedMessage {
    fn from(MessageEntry { shown, source, level, text }: MessageEntry) -> Self {
        Self { shown, source, level: level.as_str().to_owned(), text }
    }
}

impl From<FailureEntry> for RecordedFailure {
    fn from(FailureEntry { part, error }: FailureEntry) -> Self {
        Self { part: part.into_owned(), error }
    }
}
