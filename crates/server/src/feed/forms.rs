//! The JSON forms of what is made of records.

use amplifier_link::DecidedApproval;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::wire::Record;

/// What the audit log says about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// Its id.
    pub id: String,
    /// The name of the agent, if it was delegated to.
    pub name: Option<String>,
    /// The folder that it works in.
    pub workspace: Option<String>,
    /// The session that delegated to it, or that it branched off.
    pub parent: Option<String>,
    /// When its first record was made.
    pub started_at: Timestamp,
    /// When its last one was.
    pub updated_at: Timestamp,
    /// How many turns it has had.
    pub turns: u64,
    /// How many tools were called.
    pub tool_calls: u64,
    /// How many operations were denied.
    pub denials: u64,
    /// How many hooks failed.
    pub errors: u64,
    /// How many tokens were used.
    pub tokens: u64,
    /// The last prompt, or its beginning.
    pub prompt: Option<String>,
    /// The session in whose process it runs, if it is a sub-agent of it, or of one of its sub-agents.
    pub within: Option<String>,
    /// Whether it, or the session in whose process it runs, is connected to a server whenever there is one.
    pub is_served: bool,
    /// Whether a turn runs.
    pub is_running: bool,
    /// Why it ended, if it has.
    pub ended: Option<String>,
    /// The number of its last record.
    pub last_seq: u64,
}

/// Some records, and where to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// What to ask for next: records from this number on, or before it if `before` was asked for. There may be more even if there are
    /// fewer here than were asked for.
    pub cursor: u64,
    /// The number of the first record that is still there.
    pub first: u64,
}

/// The course of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// What happened, the oldest first.
    pub items: Vec<TimelineItem>,
    /// Where to go on. Fewer items than were asked for are all there are; those of them that may still change come again, and one with
    /// the same `seq` takes the place of the one before.
    pub cursor: u64,
}

/// One event of a session, with all that the hooks made of it; or a record that belongs to none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimelineItem {
    /// The number of its first record.
    pub seq: u64,
    /// When.
    pub at: String,
    /// In which turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The event; for other kinds, the kind.
    pub event: String,
    /// `event`, or the kind of a record that belongs to none: `seal`, `failure`, …
    pub kind: String,
    /// The data as the hooks left it; for other kinds, what the record says.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// Whether something in it was cut.
    #[serde(default)]
    pub cut: bool,
    /// How much of the data is in the log: `whole`, `redacted`, `erased`, `withheld`.
    pub kept: String,
    /// What the hooks decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Who denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What each hook answered, in running order.
    pub hooks: Vec<HookSaid>,
    /// What hooks told the agent.
    pub injections: Vec<Injected>,
    /// What the person was told.
    pub messages: Vec<Told>,
    /// What was asked and decided.
    pub approvals: Vec<DecidedApproval>,
    /// What was asked and is not decided.
    pub open: Vec<OpenQuestion>,
    /// How the operation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Ended>,
    /// What failed meanwhile.
    pub failures: Vec<String>,
}

/// What one hook answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookSaid {
    /// The hook.
    pub hook: String,
    /// What it answered, or how it failed.
    pub answer: String,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// Why it answered so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a hook told the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Injected {
    /// The hook.
    pub hook: String,
    /// As whom it spoke.
    pub role: String,
    /// Where it landed.
    pub placement: String,
    /// How many tokens it takes.
    pub tokens: u64,
    /// What became of it.
    pub fate: String,
    /// What it says.
    pub text: String,
}

/// What the person was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Told {
    /// Who said it.
    pub source: String,
    /// How urgent it is.
    pub level: String,
    /// What it says.
    pub text: String,
}

/// A question that is not decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenQuestion {
    /// `SESSION.RUN.N`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The hook that asks.
    pub hook: String,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ended {
    /// Whether it succeeded, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}
