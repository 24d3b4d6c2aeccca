//! JSON types derived from records.

use amplifier_audit::Kind;
use amplifier_core::RecordedEmission;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api_types::{Cost, LogRecord, SessionClient};

/// A session according to the audit log.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionFacts {
    /// Session id.
    pub id: String,
    /// Agent name of a sub-agent.
    pub name: Option<String>,
    /// Working folder.
    pub workspace: Option<String>,
    /// The session that delegated to it, or that it branched off.
    pub parent: Option<String>,
    /// Time of the first record.
    pub started_at: Timestamp,
    /// Time of the last record.
    pub updated_at: Timestamp,
    /// Number of turns.
    pub turns: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Number of denied operations.
    pub denials: u64,
    /// Number of failed hook calls.
    pub errors: u64,
    /// Number of tokens used.
    pub tokens: u64,
    /// The last prompt, possibly truncated.
    pub prompt: Option<String>,
    /// Cost of the model calls with a known price.
    pub cost: Option<Cost>,
    /// The model's last text, possibly truncated.
    pub last_message: Option<String>,
    /// The agent program.
    pub client: Option<SessionClient>,
    /// The model of the last call.
    pub model: Option<String>,
    /// The outermost parent session, whose process runs this sub-agent.
    pub within: Option<String>,
    /// `true` if the session, or the one that runs it, connects to servers.
    pub is_served: bool,
    /// `true` while a turn runs.
    pub is_running: bool,
    /// The reason of the end.
    pub ended: Option<String>,
    /// `true` if the session ended after an error.
    pub is_failed: bool,
    /// Number of the last record.
    pub last_seq: u64,
}

/// A page of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// The records, the oldest first.
    pub records: Vec<LogRecord>,
    /// Next cursor: records from this number on, or before it for requests with `before`. There may be more records
    /// although the page is short.
    pub cursor: u64,
    /// Number of the first record in the log.
    pub first: u64,
}

/// The timeline of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct Timeline {
    /// The items, the oldest first.
    pub items: Vec<TimelineItem>,
    /// Next cursor. Fewer items than requested means the end; items that may still change come again, and replace those
    /// with the same `seq`.
    pub cursor: u64,
}

/// An event of a session with the report of its emission, or a record that belongs to none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct TimelineItem {
    /// `event`, or the kind of a record without an emission: `seal`, `gap`. The kind is repeated in `event`, and the
    /// body is in `data`.
    #[schema(value_type = String)]
    pub kind: Kind,
    /// `true` if the operation does not run: a hook denied it, or an approval was denied.
    pub denied: bool,
    /// `true` if long texts or lists are shortened.
    pub truncated: bool,
    /// The emission.
    #[serde(flatten)]
    pub emission: RecordedEmission,
}
