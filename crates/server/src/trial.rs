//! Events that are tried out: what hooks would do.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What would come of it. Nobody is asked, and nothing runs but the hooks.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Tried {
    /// What was decided: `deny`, `ask_user`, `inject_context`, `modify` or `continue`.
    pub decision: String,
    /// The hook that decided; empty if none did.
    pub by: String,
    /// In which words.
    pub says: String,
    /// The data after every modification.
    #[schema(value_type = Object)]
    pub data: Value,
    /// Each hook that was called, in running order.
    pub hooks: Vec<TriedHook>,
    /// The questions that would be asked.
    pub approvals: Vec<TriedApproval>,
    /// What would be told to the agent.
    pub injections: Vec<TriedInjection>,
    /// What would be told to the person.
    pub messages: Vec<TriedMessage>,
    /// What programs would print into the transcript.
    pub outputs: Vec<TriedOutput>,
    /// Why hooks are missing that one could expect: those of a project that is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// What a hook answered, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriedHook {
    /// Its name.
    pub hook: String,
    /// The action, or the word for how it failed.
    pub answer: String,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// The reason that it gave.
    pub reason: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// A question that a hook would ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriedApproval {
    /// The hook that asks.
    pub hook: String,
    /// The question.
    pub prompt: String,
    /// The labels of its options.
    pub options: Vec<String>,
}

/// Something that a hook would tell the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriedInjection {
    /// The hook that tells it.
    pub hook: String,
    /// As whom: `system`, `user` or `assistant`.
    pub role: String,
    /// Where it lands: `history`, `next_call` or `last_tool_result`.
    pub placement: String,
    /// What it says.
    pub text: String,
}

/// Something that a hook would tell the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriedMessage {
    /// The hook that tells it.
    pub hook: String,
    /// How urgent it is: `info`, `warning` or `error`.
    pub level: String,
    /// What it says.
    pub text: String,
}

/// Something that a hook's program prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriedOutput {
    /// The hook.
    pub hook: String,
    /// What it prints.
    pub text: String,
}
