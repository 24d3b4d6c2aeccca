//! JSON types of the API and the stream.

use amplifier_core::{Actor, ApprovalRule};
use amplifier_link::UnreadableFile;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use crate::access::Browser;

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Session id.
    pub id: String,
    /// Name given by a hook or a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Current state.
    pub state: SessionState,
    /// `true` if the session is connected, and accepts answers and commands.
    pub connected: bool,
    /// `true` if the session accepts prompts from the server.
    pub takes_prompts: bool,
    /// Approval mode of a connected session: `ask`, `accept-edits`, `plan` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Location of a connected session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_in: Option<SessionHost>,
    /// The machine of a connected session on another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Process id of a connected session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Time of the first activity.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// Time of the last activity.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Number of turns.
    pub turns: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Number of denied operations.
    pub denials: u64,
    /// Number of failed hook calls.
    pub errors: u64,
    /// Number of open approval requests.
    pub pending: u64,
    /// Number of tokens used.
    pub tokens: u64,
    /// Cost of the model calls with a known price; missing without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The last prompt, possibly truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The model's last text, possibly truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<String>,
    /// The agent program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<SessionClient>,
    /// The model of the last call, as far as the agent program names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reason of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// A turn is running.
    Running,
    /// A turn is waiting for an approval.
    Waiting,
    /// The session waits for a prompt.
    Idle,
    /// The connection is lost; the session reconnects within seconds, or is gone.
    Away,
    /// The session has ended.
    Ended,
    /// The session has ended after an error.
    Failed,
    /// The session has stopped without an end record.
    Gone,
}

impl SessionState {
    /// Returns `true` if nothing more happens in the session, unless it is resumed.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed | Self::Gone)
    }
}

/// The agent program of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionClient {
    /// Name, such as `amplifier`.
    pub name: String,
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A sum of money, as `hooks-cost` counted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cost {
    /// Amount.
    pub amount: f64,
    /// Currency, such as `USD`.
    pub currency: String,
    /// `true` if the price of some calls is unknown, so that the cost is higher.
    pub incomplete: bool,
}

/// The location of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionHost {
    /// In the server's process.
    Server,
    /// In a process of its own.
    Process,
    /// On another machine. Only its approval requests are here.
    Machine,
}

/// One record of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct LogRecord {
    /// Record number, the cursor of streams.
    pub seq: u64,
    /// Time.
    pub at: String,
    /// Session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Turn number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Event name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Kind of record.
    pub kind: String,
    /// Body.
    pub body: Value,
    /// The writer: the run of a session, or the server.
    pub writer: String,
    /// Hash, in hexadecimal.
    pub hash: String,
}

/// An approval rule as the API lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[non_exhaustive]
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

/// Approval rules, and rule files that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ApprovalRules {
    /// The rules.
    pub rules: Vec<ListedRule>,
    /// Files that cannot be read. While there are some, no rule allows anything.
    pub unreadable: Vec<UnreadableFile>,
}

/// Statistics of a hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct HookStats {
    /// Hook name.
    pub hook: String,
    /// Events of its calls.
    pub events: Vec<String>,
    /// Number of calls.
    pub calls: u64,
    /// Number of denials.
    pub denials: u64,
    /// Number of approval requests.
    pub asks: u64,
    /// Number of modifications.
    pub modifies: u64,
    /// Number of injections.
    pub injects: u64,
    /// Number of failures.
    pub errors: u64,
    /// Median duration, in nanoseconds.
    pub p50_ns: u64,
    /// 95th percentile of the duration, in nanoseconds.
    pub p95_ns: u64,
    /// Longest duration, in nanoseconds.
    pub max_ns: u64,
    /// Histogram of durations up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
    pub latency: Vec<u64>,
    /// Calls in each of the last 30 minutes, the oldest first.
    pub recent: Vec<u64>,
}

/// The activity of the last hours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct Activity {
    /// The hours, the oldest first; the last one is not over.
    pub hours: Vec<ActivityHour>,
    /// Denials in these hours by hook, the most first.
    pub denials_by_hook: Vec<HookDenials>,
    /// Costs in these hours by currency, as far as prices are known.
    pub costs: Vec<Cost>,
}

/// The counts of one hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActivityHour {
    /// Beginning of the hour.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The counts.
    #[serde(flatten)]
    pub counts: ActivityCounts,
    /// Costs by currency, as far as prices are known.
    pub costs: Vec<Cost>,
}

/// Counts of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityCounts {
    /// Number of started sessions.
    pub sessions: u64,
    /// Number of prompts.
    pub prompts: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Number of denied operations.
    pub denials: u64,
    /// Number of failed hook calls.
    pub hook_errors: u64,
    /// Number of sessions that ended after an error.
    pub failed_sessions: u64,
    /// Number of tokens used.
    pub tokens: u64,
}

/// The denials of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookDenials {
    /// Hook name.
    pub hook: String,
    /// Number of denied operations.
    pub denials: u64,
}

/// A record that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchMatch {
    /// Record number.
    pub seq: u64,
    /// Time.
    pub at: String,
    /// Session id.
    pub session: String,
    /// Event name.
    pub event: String,
    /// The searched part of the record.
    pub part: SearchPart,
    /// The text around the first word.
    pub excerpt: String,
}

/// A part of a record that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchPart {
    /// A prompt, or the task of a sub-agent.
    Prompt,
    /// The input of a tool: commands, paths, texts.
    Input,
    /// The reason of a hook or of a decision, or the error of a hook.
    Reason,
    /// The prompt of an approval request.
    Approval,
}

/// Verification status of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct AuditStatus {
    /// Log id.
    pub log: String,
    /// Number of records.
    pub size: u64,
    /// Records below this number are verified.
    pub verified_to: u64,
    /// `true` if no problem was found.
    pub sound: bool,
    /// The problems.
    pub problems: Vec<Problem>,
    /// Last checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointStatus>,
    /// Number of records since the last anchored checkpoint; all records without one.
    pub exposed: u64,
    /// `true` while a verification runs.
    pub checking: bool,
    /// Properties that the verification proves.
    pub proves: Vec<String>,
    /// Properties that it cannot prove.
    pub cannot_prove: Vec<String>,
}

/// A problem of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Record number, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Description.
    pub text: String,
}

/// A signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct CheckpointStatus {
    /// Number of records covered.
    pub size: u64,
    /// Signing time.
    pub at: String,
}

/// The signed-in browsers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Browsers {
    /// The browsers.
    pub browsers: Vec<Browser>,
}

/// The result of signing browsers out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct SignedOutBrowsers {
    /// Number of browsers.
    pub ended: u64,
}

/// A proof that the server knows the key of a browser.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct KeyProof {
    /// The proof.
    pub proof: String,
}

/// The authenticated user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct Me {
    /// Name.
    pub name: String,
    /// Role: `viewer`, `approver` or `admin`.
    pub role: String,
}

/// A request for a sign-in link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignInLinkRequest {
    /// Name for records of answers.
    pub name: String,
    /// Role: `viewer`, `approver` or `admin`.
    pub role: String,
}

/// A one-time sign-in link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInLink {
    /// URL for a browser.
    pub url: String,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// Health check response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Server version.
    pub version: String,
}

/// The body of every error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The error.
    pub error: ErrorDetails,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct ErrorDetails {
    /// Error code for programs.
    pub code: String,
    /// The problem, and what to do.
    pub message: String,
    /// The approver who was faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// A report about too many approval requests in a short time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct ApprovalFlood {
    /// Number of requests.
    pub asked: u64,
    /// Period in seconds.
    pub seconds: u64,
    /// The hook.
    pub hook: String,
    /// Pattern of a rule that would answer them.
    pub pattern: String,
}
