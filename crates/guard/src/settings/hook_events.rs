//! The events at which the guard installs a hook.

use std::time::Duration;

use crate::client::Client;

/// The time limit of a hook at an event without a gate.
const OBSERVER_LIMIT: Duration = Duration::from_secs(10);

/// One hook of a client that the guard installs.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventHook {
    pub(super) name: &'static str,
    /// `true` if the client waits for a decision, or shows the result of a tool to the model.
    pub(super) is_gate: bool,
    /// `true` if the client wants a pattern of tools.
    pub(super) has_matcher: bool,
    /// The longest time limit that the client accepts: it trusts only the limit that it uses.
    longest: Duration,
}

impl EventHook {
    /// Returns the time limit. Nobody is asked at an event without a gate, and a guard that hangs must not hold the agent there.
    pub(super) fn limit(&self, limit: Duration) -> Duration {
        if self.is_gate { limit } else { limit.min(self.longest) }
    }
}

const fn gate(name: &'static str, has_matcher: bool) -> EventHook {
    EventHook { name, is_gate: true, has_matcher, longest: Duration::MAX }
}

const fn observer(name: &'static str) -> EventHook {
    EventHook { name, is_gate: false, has_matcher: false, longest: OBSERVER_LIMIT }
}

const CLAUDE: &[EventHook] = &[
    gate("PreToolUse", true),
    gate("PostToolUse", true),
    EventHook { has_matcher: true, ..observer("PostToolUseFailure") },
    gate("UserPromptSubmit", false),
    observer("SessionStart"),
    observer("PreCompact"),
    observer("Stop"),
    observer("SessionEnd"),
];
const CODEX: &[EventHook] = &[
    gate("PreToolUse", true),
    gate("PostToolUse", true),
    gate("UserPromptSubmit", false),
    observer("SessionStart"),
    observer("Stop"),
    EventHook { longest: Duration::from_secs(3), ..observer("SessionEnd") },
];
const GEMINI: &[EventHook] = &[
    gate("BeforeTool", true),
    gate("AfterTool", true),
    gate("BeforeAgent", false),
    observer("SessionStart"),
    observer("AfterAgent"),
    observer("SessionEnd"),
];
const COPILOT: &[EventHook] = &[
    gate("preToolUse", false),
    gate("postToolUse", false),
    gate("userPromptSubmitted", false),
    observer("postToolUseFailure"),
    observer("sessionStart"),
    observer("preCompact"),
    observer("agentStop"),
    observer("sessionEnd"),
];
const OPENCODE: &[EventHook] = &[
    gate("tool.execute.before", false),
    gate("tool.execute.after", false),
    gate("chat.message", false),
    observer("session.created"),
    observer("session.idle"),
];
// Results cannot be withheld there, so `postToolUse` is no gate.
const CURSOR: &[EventHook] = &[
    gate("preToolUse", false),
    gate("subagentStart", false),
    gate("beforeSubmitPrompt", false),
    observer("postToolUse"),
    observer("postToolUseFailure"),
    observer("sessionStart"),
    observer("preCompact"),
    observer("stop"),
    observer("sessionEnd"),
];

/// Returns the hooks of a client. The first one is before tools.
pub(super) fn hooks_of(client: Client) -> &'static [EventHook] {
    match client {
        Client::Claude => CLAUDE,
        Client::Codex => CODEX,
        Client::Gemini => GEMINI,
        Client::Copilot => COPILOT,
        Client::Opencode => OPENCODE,
        Client::Cursor => CURSOR,
    }
}

/// Returns the name of the event before a tool.
pub fn tool_event(client: Client) -> &'static str {
    hooks_of(client)[0].name
}
