//! The messages of the link: one JSON object a line.

use amplifier_core::{Actor, ApprovalAnswer, ApprovalDecision, ApprovalRule, Digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalId, OpenApproval};

/// The version of the messages. Both ends send theirs; a server refuses a session with another one.
pub const VERSION: u32 = 4;

/// A message of a session to its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionMessage {
    /// The session introduces itself. The first line.
    Hello(SessionHello),
    /// An approval request is open. Its nonce is the server's.
    ApprovalRequested {
        /// The request.
        approval: Box<OpenApproval>,
    },
    /// An approval request is closed.
    ApprovalClosed {
        /// The request.
        id: ApprovalId,
        /// The decision.
        #[serde(flatten)]
        decision: ApprovalDecision,
    },
    /// The result of an answer.
    Answered {
        /// The reference of the answer.
        #[serde(rename = "ref")]
        reference: u64,
        /// The request.
        id: ApprovalId,
        /// The result.
        status: AnswerStatus,
        /// The decision, if the request is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<ApprovalDecision>,
    },
    /// All approval rules of the session.
    Rules {
        /// The rules.
        rules: Vec<ApprovalRule>,
    },
    /// The result of a change of a rule.
    RuleChanged {
        /// The reference of the change.
        #[serde(rename = "ref")]
        reference: u64,
        /// The reason why the change failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// All hooks of the session.
    Hooks {
        /// The hooks, in running order.
        hooks: Vec<Value>,
    },
    /// The result of a reload of the bundles.
    Reloaded {
        /// The reference of the reload.
        #[serde(rename = "ref")]
        reference: u64,
        /// The result.
        #[serde(flatten)]
        reload: ReloadResult,
    },
    /// The session begins or ends to wait for a prompt.
    Idle {
        /// `true` if it waits.
        idle: bool,
    },
    /// The session ends. The last line.
    Bye {
        /// The reason.
        reason: String,
    },
}

/// A session's introduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHello {
    /// The version of the session's messages.
    pub version: u32,
    /// The id of the session.
    pub session: String,
    /// The run of the session: one that is resumed counts its requests again.
    pub run: String,
    /// The name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process.
    pub pid: u32,
    /// The folder that the session works in.
    pub workspace: String,
    /// `true` if the session takes prompts.
    #[serde(default)]
    pub takes_prompts: bool,
    /// `true` if the session waits for a prompt.
    #[serde(default)]
    pub idle: bool,
    /// The time at which the session began.
    pub started_at: Timestamp,
}

/// The result of an answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// The kernel has taken the answer.
    Taken,
    /// The answer came after the time limit.
    Late,
    /// Another approver was faster.
    Answered,
    /// The request is closed for another reason, or unknown.
    Closed,
    /// The answer is none of the options, or not for that scope; the request is still open.
    NotOffered,
}

/// A message of the server to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The session is known now. The first line.
    Welcome {
        /// The version of the server's messages.
        version: u32,
    },
    /// An approver has answered a request.
    Answer {
        /// Identifies this answer in the reply.
        #[serde(rename = "ref")]
        reference: u64,
        /// The request.
        id: ApprovalId,
        /// The digest of what was shown. An answer to anything else does not count.
        digest: Digest,
        /// The answer.
        #[serde(flatten)]
        answer: ApprovalAnswer,
    },
    /// A prompt.
    Prompt {
        /// The text.
        text: String,
    },
    /// Stops the running turn: the first time when the running tool has finished, then at once.
    Interrupt,
    /// Ends the session.
    End,
    /// Adds a rule for the rest of the session.
    AddRule {
        /// Identifies this change in the reply.
        #[serde(rename = "ref")]
        reference: u64,
        /// The rule.
        rule: Box<ApprovalRule>,
    },
    /// Revokes a rule of the session.
    RevokeRule {
        /// Identifies this change in the reply.
        #[serde(rename = "ref")]
        reference: u64,
        /// The id of the rule.
        rule: String,
        /// The user who revokes it.
        by: Actor,
    },
    /// Reloads the bundles.
    Reload {
        /// Identifies this reload in the reply.
        #[serde(rename = "ref")]
        reference: u64,
    },
}

/// The result of a reload of the bundles of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReloadResult {
    /// The outcome.
    pub result: ReloadStatus,
    /// The problem, or what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The outcome of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReloadStatus {
    /// The files are as they were.
    Unchanged,
    /// The hooks of the new version are active.
    Changed,
    /// The new version has a mistake; the old one stays active.
    Refused,
    /// The project's bundle is not the one that the user has trusted.
    NotTrusted,
    /// The session has not replied in time, or is gone. A server's view; a session never sends it.
    NoAnswer,
}
