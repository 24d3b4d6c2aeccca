//! The messages of the link, as lines of JSON.

use amplifier_core::{Actor, ApprovalAnswer, ApprovalDecision, ApprovalRule, DecisionBasis, Digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalId, OpenApproval};

/// The version of the messages. Both ends send theirs; a server rejects other versions.
pub const VERSION: u32 = 4;

/// A message of a session to its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionMessage {
    /// The session introduces itself. The first line.
    Hello(SessionHello),
    /// A new approval request. The server sets its nonce.
    ApprovalRequested {
        /// The request.
        approval: Box<OpenApproval>,
    },
    /// The decision on an approval request.
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
        /// The approver who was faster, if there is no decision yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
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
    /// The session starts or stops waiting for a prompt.
    Idle {
        /// `true` if the session waits.
        idle: bool,
    },
    /// The approval mode of the session.
    Mode {
        /// The mode.
        mode: String,
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
    /// The run of the session: a resumed session numbers its requests from the start.
    pub run: String,
    /// The name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process id.
    pub pid: u32,
    /// The workspace.
    pub workspace: String,
    /// The machine, if it is another one. Only the server's own process can name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// `true` if the session takes prompts.
    #[serde(default)]
    pub takes_prompts: bool,
    /// `true` if the session waits for a prompt.
    #[serde(default)]
    pub idle: bool,
    /// The start time.
    pub started_at: Timestamp,
}

/// The result of an answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// The kernel accepted the answer.
    Taken,
    /// The answer came after the time limit.
    Late,
    /// Another answer was first.
    Answered,
    /// The request is closed for another reason, or unknown.
    Closed,
    /// The answer is not an option of the request, or not available for that scope; the request stays open.
    NotOffered,
    /// The answer is on its way to another machine, which has not confirmed it. It counts if it arrives within the time limit.
    Sent,
}

impl AnswerStatus {
    /// Returns the status of an answer that did not lead to this decision.
    pub fn of_ignored_answer(decision: &ApprovalDecision) -> Self {
        match decision.basis {
            DecisionBasis::Timeout => Self::Late,
            DecisionBasis::Answer | DecisionBasis::InvalidOption => Self::Answered,
            _ => Self::Closed,
        }
    }
}

/// A message of the server to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The session is registered. The first line.
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
        /// The digest of the shown request. An answer to any other version is ignored.
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
    /// Stops the running turn: first gracefully, the second time at once.
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
    /// The files are unchanged.
    Unchanged,
    /// The hooks of the new version are active.
    Changed,
    /// The new version is invalid; the old one stays active.
    Refused,
    /// The user does not trust this version of the project's bundle.
    NotTrusted,
    /// The session did not reply in time, or is offline. Set by the server; a session never sends it.
    NoAnswer,
}
