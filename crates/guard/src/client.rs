//! The guarded clients, and how their payloads are told apart.

use serde_json::{Map, Value};

amplifier_core::words! {
    /// A coding agent whose hooks call the guard.
    #[derive(PartialOrd, Ord)]
    pub enum Client ("client") {
        /// Claude Code.
        Claude = "claude",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// Copilot CLI.
        Copilot = "copilot",
        /// opencode, through a plugin.
        Opencode = "opencode",
        /// Cursor.
        Cursor = "cursor",
    }
}

impl Client {
    /// Returns the versions with which the behavior of the client was measured.
    pub fn measured_versions(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.325", "2.1.328"],
            Self::Codex => &["0.166.0", "0.169.0"],
            Self::Gemini => &["0.61.0"],
            Self::Copilot => &["1.0.102"],
            Self::Opencode => &["1.18.33"],
            Self::Cursor => &[],
        }
    }

    /// Returns `true` if a hook before a tool can open the client's own dialog.
    pub fn has_dialog(self) -> bool {
        matches!(self, Self::Claude | Self::Gemini | Self::Copilot)
    }

    /// Returns the client that sent a payload. Several clients run the hooks of others, so the payload decides, not the flag of the command line.
    /// Variables of the environment prove nothing: nested agents inherit them.
    pub fn recognize(self, payload: &Map<String, Value>) -> Self {
        let has = |key: &str| payload.contains_key(key);
        let event = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        match () {
            () if has("cursor_version") || has("conversation_id") => Self::Cursor,
            () if has("turn_id") && event != "MessageDisplay" => Self::Codex,
            () if has("sessionId") || has("hookName") => Self::Copilot,
            () if has("input") && has("output") => Self::Opencode,
            () if GEMINI_EVENTS.contains(&event) => Self::Gemini,
            () if has("prompt_id") => Self::Claude,
            // Copilot runs Claude's hooks with Claude's fields; only the time gives it away.
            () if self == Self::Claude && has("timestamp") => Self::Copilot,
            () => self,
        }
    }
}

/// Events that only Gemini has.
const GEMINI_EVENTS: [&str; 7] =
    ["BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "BeforeModel", "AfterModel", "BeforeToolSelection"];
