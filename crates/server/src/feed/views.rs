//! The JSON forms of what is made of records.

use amplifier_audit::Kind;
use amplifier_core::RecordedEmission;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::wire::LogRecord;

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
    pub records: Vec<LogRecord>,
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

/// An event of a session with the report of its emission, or a record that belongs to none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimelineItem {
    /// `event`, or the kind of a record that belongs to no emission: `seal`, `gap`. Its kind stands in `event`, too, and its body in `data`.
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
