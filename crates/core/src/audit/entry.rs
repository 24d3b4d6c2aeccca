//! Entries of an audit log, as they are recorded and read again.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::approval::{Actor, ApprovalDecision};
use crate::event::{Digest, EventData, EventName, Map};
use crate::ports::preview::ComparedWith;
use crate::registry::HookReportRef;
use crate::result::{
    ActionKind, ApprovalOption, DecisionKind, DefaultDecision, InjectionStatus, Level, Placement, Role,
};
use crate::text::{as_seconds, as_text, from_seconds};

/// An entry with its time, session, turn and event.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRecord {
    /// The time.
    #[serde(serialize_with = "as_rfc3339")]
    pub at: SystemTime,
    /// The session.
    pub session: Option<String>,
    /// The turn of the session.
    pub turn: u64,
    /// The event.
    #[serde(serialize_with = "as_text")]
    pub event: EventName,
    /// The entry. Its fields follow those of the record, after its `kind`.
    #[serde(flatten, serialize_with = "with_kind")]
    pub entry: AuditEntry,
}

/// The content of a record. Serialized as the record's body; the kind is a field beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AuditEntry {
    /// An event was emitted, and hooks decided.
    Event(EventEntry),
    /// A hook answered, or failed.
    HookReport(HookReportEntry),
    /// An approval was requested.
    ApprovalRequest(ApprovalRequestEntry),
    /// An approval was granted or denied.
    ApprovalDecision(ApprovalDecisionEntry),
    /// An answer came when the request was no longer open. It changed nothing.
    LateAnswer(LateAnswerEntry),
    /// A hook added to the conversation of the agent, or tried to.
    Injection(InjectionEntry),
    /// There was a message for the user.
    Message(MessageEntry),
    /// A gated operation may begin.
    Intent(IntentEntry),
    /// A gated operation has ended.
    Outcome(OutcomeEntry),
    /// A part of the system failed.
    Failure(FailureEntry),
}

/// An event, and the decision of the hooks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventEntry {
    /// The data as the hooks left it.
    pub data: RecordedData,
    /// The decision.
    pub decision: DecisionKind,
    /// The hook that denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// The reason of the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The data of a recorded event: a value when it is recorded, text when it is read from a log.
#[derive(Clone, Debug)]
pub enum RecordedData {
    /// The data itself.
    Value(EventData),
    /// JSON, byte for byte as it was recorded.
    Text(Box<RawValue>),
}

/// The answer of a hook, or its failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReportEntry {
    /// The hook.
    pub hook: String,
    /// The action, or the kind of failure.
    pub answer: ActionKind,
    /// The time that it took.
    #[serde(rename = "took_ns", serialize_with = "as_nanos", deserialize_with = "from_nanos")]
    pub took: Duration,
    /// The reason that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error of a hook that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `true` if its output is left out of the transcript.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suppressed_output: bool,
}

/// A request for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequestEntry {
    /// The number of the request in its session.
    pub id: u64,
    /// The hook that requested it.
    pub hook: String,
    /// The prompt of the request.
    pub prompt: String,
    /// The options of the approver.
    pub options: Vec<ApprovalOption>,
    /// The time limit.
    #[serde(rename = "timeout_s", serialize_with = "as_seconds", deserialize_with = "from_seconds")]
    pub timeout: Duration,
    /// The decision if there is no answer in time.
    pub default: DefaultDecision,
    /// The digest of the operation.
    pub digest: Digest,
    /// `true` if another hook changed the data after the request, so that no allow given in advance counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_after_asking: bool,
    /// The file whose change the approver was shown. The digest covers it, together with the data of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<ComparedWith>,
}

/// The decision on a request for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDecisionEntry {
    /// The number of the request; `None` if the decision needed no request.
    pub id: Option<u64>,
    /// The hook that requested the approval.
    pub hook: String,
    /// The prompt, if the decision needed no request. Otherwise the request has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The decision.
    #[serde(flatten)]
    pub decision: ApprovalDecision,
}

/// An answer to a request that was no longer open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateAnswerEntry {
    /// The number of the request.
    pub id: u64,
    /// The hook that requested the approval.
    pub hook: String,
    /// The label of the option.
    pub answer: String,
    /// The approver, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// A text for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectionEntry {
    /// The hook.
    pub hook: String,
    /// The role of the message.
    pub role: Role,
    /// The position in the conversation.
    pub placement: Placement,
    /// The size of the text.
    pub bytes: usize,
    /// The number of tokens of the text.
    pub tokens: usize,
    /// The status.
    #[serde(rename = "fate")]
    pub status: InjectionStatus,
    /// The text.
    pub text: String,
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageEntry {
    /// `true` if there was a display to show it.
    pub shown: bool,
    /// The source: `hook:NAME`, or a part of the system.
    pub source: String,
    /// The urgency.
    pub level: Level,
    /// The text.
    pub text: String,
}

/// A gated operation that may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentEntry {
    /// The digest of the operation; `None` if the data is nested too deeply. It is recorded beside the body.
    #[serde(skip)]
    pub digest: Option<Digest>,
    /// The tool call, which pairs the intent with its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// A gated operation that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = OperationResult))]
pub struct OutcomeEntry {
    /// `true` if it succeeded, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The tool call, which pairs the outcome with its intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// A part of the system that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FailureReport))]
pub struct FailureEntry {
    /// The part.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub part: Cow<'static, str>,
    /// The error.
    pub error: String,
}

impl AuditEntry {
    /// Returns the word of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::HookReport(_) => "hook_report",
            Self::ApprovalRequest(_) => "approval_request",
            Self::ApprovalDecision(_) => "approval_decision",
            Self::LateAnswer(_) => "late_answer",
            Self::Injection(_) => "injection",
            Self::Message(_) => "message",
            Self::Intent(_) => "intent",
            Self::Outcome(_) => "outcome",
            Self::Failure(_) => "failure",
        }
    }

    /// Returns the digest of the operation, if the entry has one.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Intent(intent) => intent.digest,
            Self::ApprovalRequest(request) => Some(request.digest),
            _ => None,
        }
    }
}

impl From<HookReportRef<'_>> for HookReportEntry {
    fn from(report: HookReportRef<'_>) -> Self {
        Self {
            hook: report.hook.to_owned(),
            answer: report.answer_or_failure(),
            took: report.took,
            reason: report.reason.map(str::to_owned),
            error: report.error.map(ToString::to_string),
            suppressed_output: report.suppressed_output,
        }
    }
}

impl RecordedData {
    /// Returns the fields; `None` if the text is too deep to be read.
    pub fn to_map(&self) -> Option<Map> {
        match self {
            Self::Value(data) => Some(data.clone().into_map()),
            Self::Text(text) => serde_json::from_str(text.get()).ok(),
        }
    }

    /// Reads the data as that type; `None` if it is another one.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        match self {
            Self::Value(data) => serde_json::to_value(data).and_then(serde_json::from_value).ok(),
            Self::Text(text) => serde_json::from_str(text.get()).ok(),
        }
    }
}

impl From<EventData> for RecordedData {
    fn from(data: EventData) -> Self {
        Self::Value(data)
    }
}

impl PartialEq for RecordedData {
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Serialize for RecordedData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(data) => data.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RecordedData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Text)
    }
}

/// Writes the kind, then the fields of the entry, with the digest of an intent.
fn with_kind<S: Serializer>(entry: &AuditEntry, serializer: S) -> Result<S::Ok, S::Error> {
    let fields = match serde_json::to_value(entry) {
        Ok(serde_json::Value::Object(fields)) => fields,
        Ok(_) => Map::new(),
        Err(error) => return Err(serde::ser::Error::custom(error)),
    };
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("kind", entry.kind())?;
    if let AuditEntry::Intent(IntentEntry { digest: Some(digest), .. }) = entry {
        map.serialize_entry("digest", digest)?;
    }
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
    map.end()
}

fn as_rfc3339<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&crate::event::rfc3339(*at))
}

fn as_nanos<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_nanos().try_into().unwrap_or(u64::MAX))
}

fn from_nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_nanos)
}
