//! The JSON forms of the API, the stream and the link.

use amplifier_core::{Actor, ApprovalRule};
use amplifier_link::UnreadableFile;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use crate::access::Browser;

/// A session, as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The name that a hook or a person gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What it does at the moment.
    pub state: SessionState,
    /// Whether it is connected, so that it can be answered, stopped and prompted from here.
    pub connected: bool,
    /// Whether it takes prompts from here.
    pub takes_prompts: bool,
    /// Where it runs, if it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_in: Option<SessionHost>,
    /// The process that it runs in, if it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it was first heard of.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it was last heard of.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// How many turns it has had.
    pub turns: u64,
    /// How many tools were called.
    pub tool_calls: u64,
    /// How many operations were denied.
    pub denials: u64,
    /// How many hooks failed.
    pub errors: u64,
    /// How many questions are open.
    pub pending: u64,
    /// How many tokens were used.
    pub tokens: u64,
    /// The last prompt, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Why it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The session that delegated to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// A turn runs.
    Running,
    /// A turn runs, and waits for a person.
    Waiting,
    /// It waits for a prompt.
    Idle,
    /// It has not ended, and should be connected. It comes back within seconds, or is gone.
    Away,
    /// It has ended.
    Ended,
    /// It has not ended, but nothing is heard of it any more.
    Gone,
}

/// Where a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionHost {
    /// In the server.
    Server,
    /// In a process of its own.
    Process,
}

/// One record of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LogRecord {
    /// Its number: the cursor of streams.
    pub seq: u64,
    /// When.
    pub at: String,
    /// In which session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In which turn of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// At which event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What kind of record it is.
    pub kind: String,
    /// What it says.
    pub body: Value,
    /// Who wrote it.
    pub writer: String,
    /// Its hash, in hexadecimal.
    pub hash: String,
}

/// An approval rule as the API lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedRule {
    /// Identifies the rule when it is revoked.
    pub id: String,
    /// The rule.
    #[serde(flatten)]
    pub rule: ApprovalRule,
    /// The requests that it answers, in a sentence.
    pub explanation: String,
}

impl From<ApprovalRule> for ListedRule {
    fn from(rule: ApprovalRule) -> Self {
        Self { id: rule.id(), explanation: rule.explanation(), rule }
    }
}

/// Standing answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ApprovalRules {
    /// They.
    pub rules: Vec<ListedRule>,
    /// The files that cannot be read, so that what stands in them is missing here. While that is so, none of them allows anything.
    pub unreadable: Vec<UnreadableFile>,
}

/// What a hook has done so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HookStats {
    /// Its name.
    pub hook: String,
    /// The events at which it was called.
    pub events: Vec<String>,
    /// How often it was called.
    pub calls: u64,
    /// How often it denied.
    pub denials: u64,
    /// How often it asked a person.
    pub asks: u64,
    /// How often it changed data.
    pub modifies: u64,
    /// How often it told the agent something.
    pub injects: u64,
    /// How often it failed.
    pub errors: u64,
    /// Half of the calls were as fast as that, in nanoseconds.
    pub p50_ns: u64,
    /// 95 of 100 calls were as fast as that.
    pub p95_ns: u64,
    /// The slowest call.
    pub max_ns: u64,
    /// How many calls took up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
    pub latency: Vec<u64>,
    /// Calls in each of the last 30 minutes, the oldest first.
    pub recent: Vec<u64>,
}

/// What is proven about the audit log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditStatus {
    /// The id of the log.
    pub log: String,
    /// How many records there are.
    pub size: u64,
    /// Every record below this number is verified.
    pub verified_to: u64,
    /// Whether nothing is wrong with them.
    pub sound: bool,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// The last checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointStatus>,
    /// How many records are newer than the last checkpoint that is kept elsewhere; all if none is.
    pub exposed: u64,
    /// Whether it is being verified.
    pub checking: bool,
    /// What verifying proves.
    pub proves: Vec<String>,
    /// What it cannot prove.
    pub cannot_prove: Vec<String>,
}

/// Something that is wrong with the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// At which record, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What.
    pub text: String,
}

/// A signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointStatus {
    /// How many records it covers.
    pub size: u64,
    /// When it was signed.
    pub at: String,
}

/// The browsers that are in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Browsers {
    /// They.
    pub browsers: Vec<Browser>,
}

/// How many browsers are out now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedOutBrowsers {
    /// So many.
    pub ended: u64,
}

/// A proof that the server knows the key of a browser.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyProof {
    /// It.
    pub proof: String,
}

/// Who is asking the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The name.
    pub name: String,
    /// What they may do: `viewer`, `approver`, `admin`.
    pub role: String,
}

/// A link that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// The name that answers given through it are recorded under.
    pub name: String,
    /// What it allows: `viewer`, `approver`, `admin`.
    pub role: String,
}

/// A link that lets one browser in, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// To be opened in a browser.
    pub url: String,
    /// Until when.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// That the server works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// The version of the server.
    pub version: String,
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    /// What.
    pub error: ErrorDetails,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetails {
    /// A word for programs.
    pub code: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// Who was faster, if somebody else has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// Too many questions in a short time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalFlood {
    /// How many were asked.
    pub asked: u64,
    /// In how many seconds.
    pub seconds: u64,
    /// By which hook.
    pub hook: String,
    /// A rule that would answer them.
    pub pattern: String,
}
