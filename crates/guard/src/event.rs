//! Events of clients, in our names.

use std::path::PathBuf;

use amplifier_core::Map;
use serde_json::Value;

use crate::client::Client;

/// One call of a client's hook: an event of the client, as ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEvent {
    /// The client.
    pub client: Client,
    /// The name of the event in the client's words.
    pub name: String,
    /// The session of the client.
    pub session: String,
    /// The sub-agent, if one calls.
    pub agent: Option<String>,
    /// The session or sub-agent that started a session of a sub-agent, if the client names it.
    pub parent: Option<String>,
    /// The id of the tool call, if the client has one.
    pub call: Option<String>,
    /// The current folder of the agent, if the client names it.
    pub folder: Option<PathBuf>,
    /// The model, if the client names it.
    pub model: Option<String>,
    /// The version of the client, if it names it.
    pub version: Option<String>,
    /// The permission mode of the client, if it names it.
    pub mode: Option<String>,
    /// The form of the payload, which the answer must have, too.
    pub dialect: Dialect,
    /// The event.
    pub kind: EventKind,
}

/// A form of payloads and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The client's own form.
    Own,
    /// Claude's form, as Copilot uses it for hooks of Claude.
    Nested,
}

/// An event by its meaning, with the data of it that hooks can see.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A session starts or continues: `session:start`.
    SessionStart {
        /// Reason: `startup`, `resume` or `compact`.
        source: String,
    },
    /// A session ends: `session:end`.
    SessionEnd {
        /// The reason in the client's words.
        reason: String,
    },
    /// A prompt: `prompt:submit`.
    Prompt {
        /// The prompt.
        text: String,
    },
    /// A tool is about to run: `tool:pre`.
    ToolPre(ClientTool),
    /// A tool has run: `tool:post`.
    ToolPost {
        /// The tool.
        tool: ClientTool,
        /// The result in the client's form.
        result: Value,
        /// `true` if the tool succeeded.
        success: bool,
        /// The duration, if the client measures it.
        milliseconds: u64,
    },
    /// A sub-agent is about to start, in clients with an event of its own for it: `agent:spawn`.
    Spawn {
        /// The name or type of the agent.
        agent: String,
        /// The task.
        task: String,
    },
    /// The conversation is about to be shortened: `context:pre_compact`.
    Compact {
        /// Trigger: `auto` or `manual`.
        trigger: String,
    },
    /// The agent has finished a turn: `orchestrator:complete`.
    Complete {
        /// The last message, if the client sends it.
        message: Option<String>,
    },
    /// An event without a counterpart.
    Other,
}

/// A call of a tool, in the client's words and in ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTool {
    /// The client's name of the tool.
    pub name: String,
    /// The input as the client sent it.
    pub input: Value,
    /// The operations in our words: one, or one for each file of a patch or each possible name of a tool. All must pass.
    pub operations: Vec<ToolOperation>,
}

impl ClientTool {
    /// Returns `true` if all operations have the same input: then they are the possible names of one tool.
    pub(crate) fn has_one_input(&self) -> bool {
        self.operations.windows(2).all(|pair| pair[0].input == pair[1].input)
    }
}

/// One operation of a tool call, in our words.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOperation {
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Map,
}

impl ClientEvent {
    /// Returns `true` if the client waits for a decision: the event can be denied.
    pub fn is_gate(&self) -> bool {
        matches!(self.kind, EventKind::ToolPre(_) | EventKind::Prompt { .. } | EventKind::Spawn { .. })
    }
}
