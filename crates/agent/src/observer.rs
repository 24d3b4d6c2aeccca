//! Observing a session from outside, as a terminal does.

use amplifier_core::ToolCall;

use crate::provider::TokenUsage;

/// Receives the progress of a session, for a user interface. Observers see only text that the hooks have let through.
pub trait SessionObserver: Send + Sync + 'static {
    /// A request to the model starts.
    fn thinking(&self) {}

    /// A part of the model's response, as it arrives or all at once.
    fn text(&self, _text: &str) {}

    /// The response is complete, or the request has failed.
    fn response_ended(&self, _usage: &TokenUsage) {}

    /// A tool starts.
    fn tool_started(&self, _call: &ToolCall) {}

    /// A tool has ended or was denied. `output` is the text that the model reads.
    fn tool_ended(&self, _call: &ToolCall, _success: bool, _output: &str) {}

    /// A notice for the user: a retry, a compaction, a sub-agent.
    fn note(&self, _text: &str) {}

    /// A problem that the user has to solve: the conversation cannot be stored.
    fn warning(&self, text: &str) {
        self.note(text);
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl SessionObserver for NullObserver {}
