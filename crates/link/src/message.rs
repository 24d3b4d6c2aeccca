//! What a session and the server say to each other: one JSON object a line.

use amplifier_core::{Actor, ApprovalDecision, ApprovalRule, RuleScope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::Approval;

/// The version of the messages. Both ends say theirs; a server refuses a session with another one.
pub const VERSION: u32 = 3;
/// What a session says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToServer {
    /// Who it is. The first line.
    Hello(Hello),
    /// A question is open. The `id` of the approval is its number in the run; its `session` may be a sub-agent; the nonce is the server's.
    Asked {
        /// The question.
        approval: Box<Approval>,
    },
    /// A question is no longer open.
    Closed {
        /// Its number.
        id: u64,
        /// The sub-agent that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// What became of it.
        #[serde(flatten)]
        outcome: ApprovalDecision,
    },
    /// What became of an answer.
    Answered {
        /// The number of the question.
        id: u64,
        /// The sub-agent that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The answer that it is about.
        #[serde(rename = "ref")]
        reference: u64,
        /// Whether it counts.
        result: Reception,
        /// What became of the question, if it is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<ApprovalDecision>,
        /// What the person should know about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The standing answers of the session, all of them.
    Rules {
        /// They.
        rules: Vec<ApprovalRule>,
    },
    /// What became of a change of a standing answer.
    Ruled {
        /// The change that it is about.
        #[serde(rename = "ref")]
        reference: u64,
        /// Why it did not happen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The hooks of the session, all of them.
    Hooks {
        /// They.
        hooks: Vec<Value>,
    },
    /// What came of a look at its bundles.
    Reloaded {
        /// The look that it is about.
        #[serde(rename = "ref")]
        reference: u64,
        /// What came of it.
        #[serde(flatten)]
        reloaded: Reloaded,
    },
    /// Whether it waits for a prompt.
    Idle {
        /// Whether it does.
        idle: bool,
    },
    /// It ends. The last line.
    Bye {
        /// Why.
        reason: String,
    },
}

/// Whether this can be the id of a session, or of a run.
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Who a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its messages.
    pub version: u32,
    /// Its id.
    pub session: String,
    /// What tells this run of it from others: a session that is resumed counts its questions anew.
    pub run: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its process.
    pub pid: u32,
    /// The folder that it works in.
    pub workspace: String,
    /// Whether it takes prompts.
    #[serde(default)]
    pub takes_prompts: bool,
    /// Whether it waits for one now.
    #[serde(default)]
    pub idle: bool,
    /// When it began.
    pub begun_at: Timestamp,
}

/// Whether an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reception {
    /// It does: the kernel has taken it.
    Taken,
    /// It came after the time limit.
    Late,
    /// Somebody else was faster.
    Answered,
    /// The question is closed for another reason, or there is none of that number.
    Closed,
    /// It is none of the options, or not for that long; the question is still open.
    NotOffered,
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToSession {
    /// The session is known now. The first line.
    Welcome {
        /// The version of the server's messages.
        version: u32,
    },
    /// Somebody has answered a question.
    Answer {
        /// The number of the question.
        id: u64,
        /// The digest of what was shown. An answer to anything else is none.
        digest: String,
        /// Tells this answer from others.
        #[serde(rename = "ref")]
        reference: u64,
        /// The label of the option.
        option: String,
        /// Who answered.
        by: Actor,
        /// For what the answer is to hold beside this question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<RuleScope>,
    },
    /// A prompt.
    Prompt {
        /// It.
        text: String,
    },
    /// The running turn is to stop: the first time when the running tool has finished, then at once.
    Interrupt,
    /// The session is to end.
    End,
    /// A standing answer for the rest of the session.
    Rule {
        /// Tells this change from others.
        #[serde(rename = "ref")]
        reference: u64,
        /// The rule.
        rule: Box<ApprovalRule>,
    },
    /// A standing answer of the session is taken back.
    Revoke {
        /// Tells this change from others.
        #[serde(rename = "ref")]
        reference: u64,
        /// The id of the rule.
        rule: String,
        /// Who takes it back.
        by: Actor,
    },
    /// The bundles are to be looked at, at once.
    Reload {
        /// Tells this look from others.
        #[serde(rename = "ref")]
        reference: u64,
    },
}

/// What came of a look at the bundles of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reloaded {
    /// In a word.
    pub result: Reload,
    /// What is wrong, or what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The same in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reload {
    /// Nothing has changed.
    Unchanged,
    /// There is a new version, and its hooks are in force.
    Changed,
    /// There is a mistake in the new version, so the old one stays in force.
    Refused,
    /// The bundle of the project is not what the person has trusted, so it is not used, or not as it is now.
    NotTrusted,
    /// The session has not said in time what came of it, or is not connected any more.
    NoAnswer,
}
