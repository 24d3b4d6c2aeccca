//! A conversation in memory, with the rules for injections.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::PortError;
use super::context::{ContextManager, InjectedMessage};
use crate::event::Map;
use crate::result::{Placement, Role};
use crate::sync::{Mutex, lock};

/// The metadata key of a tool's result for the texts that hooks appended to it for one call: a list of `hook_name` and `text`.
pub const APPENDED: &str = "appended";

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The speaker.
    pub role: Speaker,
    /// The text; for a tool, its result.
    pub content: String,
    /// The tool calls of the assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that this result belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The source of the message, and further facts.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
}

/// The speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The environment.
    System,
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// A tool, with its result.
    Tool,
}

/// A tool call in a message of the assistant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its parameters.
    pub input: Value,
}

impl Message {
    fn new(role: Speaker, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None, metadata: Map::new() }
    }

    /// Creates a message of the environment.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Speaker::System, content)
    }

    /// Creates a message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Speaker::User, content)
    }

    /// Creates a message of the agent.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Speaker::Assistant, content)
    }

    /// Creates the result of a tool.
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(tool_call_id.into()), ..Self::new(Speaker::Tool, content) }
    }

    /// Adds a tool call.
    #[must_use]
    pub fn calling(mut self, id: impl Into<String>, name: impl Into<String>, input: impl Into<Value>) -> Self {
        self.tool_calls.push(ToolCall { id: id.into(), name: name.into(), input: input.into() });
        self
    }
}

impl From<InjectedMessage> for Message {
    fn from(injected: InjectedMessage) -> Self {
        let role = match injected.role {
            Role::System => Speaker::System,
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
        };
        let metadata = injected.metadata();
        Self { metadata, ..Self::new(role, injected.content) }
    }
}

/// A conversation in memory. A handle: clones share the same messages.
///
/// Injections are never placed between a tool call and its result: they wait for missing results. Ephemeral ones are
/// part of the next call to the model only, and never of the history.
///
/// ```
/// # use amplifier_core::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let conversation = Conversation::new();
/// let hooks = HookRegistry::new();
/// hooks.on(TOOL_PRE, |_| HookResult::inject("mind the style guide"));
/// let session = Coordinator::builder(hooks).context(conversation.clone()).build();
///
/// conversation.push(Message::user("write it"));
/// conversation.push(Message::assistant("").calling("call-1", "Write", data! { "file_path": "a.py" }));
/// session.emit(TOOL_PRE, ToolPre::new("Write", Map::new())).await;
/// conversation.push(Message::tool_result("call-1", "written"));
///
/// let texts: Vec<_> = conversation.next_call().into_iter().map(|message| message.content).collect();
/// assert_eq!(texts, ["write it", "", "written", "mind the style guide"]);
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Conversation {
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    history: Vec<Message>,
    open_calls: Vec<String>,
    /// Injections that wait for those results.
    waiting: Vec<Message>,
    ephemeral: Vec<InjectedMessage>,
}

impl State {
    fn settle(&mut self) {
        if self.open_calls.is_empty() {
            self.history.append(&mut self.waiting);
        }
    }
}

impl Conversation {
    /// Creates a conversation without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message of the user, the agent or a tool.
    pub fn push(&self, message: Message) {
        let mut state = lock(&self.state);
        if message.tool_call_id.is_none() {
            // The conversation continues, so missing results will not arrive any more.
            state.open_calls.clear();
            state.settle();
        }
        state.open_calls.extend(message.tool_calls.iter().map(|call| call.id.clone()));
        if let Some(id) = &message.tool_call_id {
            state.open_calls.retain(|open| open != id);
        }
        state.history.push(message);
        state.settle();
    }

    /// Replaces the history, to resume a stored conversation or to shorten one. Waiting injections stay.
    pub fn restore(&self, history: Vec<Message>) {
        let mut state = lock(&self.state);
        state.history = history;
        state.open_calls.clear();
        state.settle();
    }

    /// Returns the stored history.
    pub fn history(&self) -> Vec<Message> {
        lock(&self.state).history.clone()
    }

    /// Returns the stored history from that message on.
    pub fn history_since(&self, message: usize) -> Vec<Message> {
        lock(&self.state).history.get(message..).unwrap_or_default().to_vec()
    }

    /// Returns the messages for the next call to the model: the history and, once, the ephemeral injections.
    pub fn next_call(&self) -> Vec<Message> {
        let mut state = lock(&self.state);
        let ephemeral = std::mem::take(&mut state.ephemeral);
        state.messages_with(ephemeral)
    }

    /// Returns the messages that the next call would have now, and leaves the ephemeral injections in place.
    pub fn upcoming(&self) -> Vec<Message> {
        let state = lock(&self.state);
        state.messages_with(state.ephemeral.clone())
    }
}

impl State {
    fn messages_with(&self, ephemeral: Vec<InjectedMessage>) -> Vec<Message> {
        let mut messages = self.history.clone();
        let mut own = Vec::new();
        for injected in ephemeral {
            match result_to_append_to(&mut messages, &injected) {
                Some(result) => {
                    result.content.push_str("\n\n");
                    result.content.push_str(&injected.content);
                    let appended = result.metadata.entry(APPENDED).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(appended) = appended {
                        appended.push(json!({ "hook_name": injected.hooks.join(", "), "text": injected.content }));
                    }
                }
                None => own.push(injected.into()),
            }
        }
        messages.append(&mut own);
        messages
    }
}

/// Returns the tool result that the injection belongs to, if only results follow it; otherwise the last result.
fn result_to_append_to<'a>(messages: &'a mut [Message], injected: &InjectedMessage) -> Option<&'a mut Message> {
    if injected.placement != Placement::LastToolResult {
        return None;
    }
    let results = messages.iter().rev().take_while(|message| message.role == Speaker::Tool).count();
    let results = messages.len() - results..messages.len();
    let is_meant = |message: &Message| injected.tool_call_id.is_some() && message.tool_call_id == injected.tool_call_id;
    let meant = results.clone().find(|at| is_meant(&messages[*at]));
    meant.or(results.last()).and_then(|at| messages.get_mut(at))
}

impl ContextManager for Conversation {
    async fn add_message(&self, injected: InjectedMessage) -> Result<(), PortError> {
        let mut state = lock(&self.state);
        if injected.placement.is_ephemeral() {
            state.ephemeral.push(injected);
        } else {
            state.waiting.push(injected.into());
            state.settle();
        }
        Ok(())
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("messages", &lock(&self.state).history.len()).finish_non_exhaustive()
    }
}
