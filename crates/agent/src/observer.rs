//! Watching a session from outside, as a terminal does.

use amplifier_core::ToolCall;

use crate::provider::TokenUsage;

/// What a person in front of the agent sees. Hooks are not asked for this: it is what remains after they were.
pub trait SessionObserver: Send + Sync + 'static {
    /// The model is being asked.
    fn thinking(&self) {}

    /// A piece of the answer, as it comes or all at once.
    fn text(&self, _text: &str) {}

    /// The answer is complete, or will not come.
    fn response_ended(&self, _usage: &TokenUsage) {}

    /// A tool runs.
    fn tool_started(&self, _call: &ToolCall) {}

    /// A tool has run, or was not allowed to: what the model reads.
    fn tool_ended(&self, _call: &ToolCall, _success: bool, _output: &str) {}

    /// Something that a person should know: a retry, a compaction, a sub-agent.
    fn note(&self, _text: &str) {}

    /// Something that a person has to see to: the conversation cannot be written down.
    fn warning(&self, text: &str) {
        self.note(text);
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl SessionObserver for NullObserver {}
