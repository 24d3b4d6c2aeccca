//! The canary: a tool call that is always denied, to test that a hook reaches the daemon.

use serde_json::{Value, json};

use crate::client::Client;
use crate::event::{ClientEvent, EventKind};

/// The tool of the call.
pub const CANARY_TOOL: &str = "AmplifierCanary";
/// The hook that denies it.
pub const CANARY_HOOK: &str = "canary";
/// The beginning of the id of its session, which has no other call.
pub const CANARY_SESSION: &str = "canary-";

/// Returns `true` for a canary in a session of its own.
pub(crate) fn is_canary(event: &ClientEvent) -> bool {
    let is_tool = matches!(&event.kind, EventKind::ToolPre(tool) if tool.name == CANARY_TOOL);
    is_tool && event.session.starts_with(CANARY_SESSION)
}

/// Returns the payload of the canary for a client.
pub fn canary_payload(client: Client, tool: &str, nonce: &str, folder: &str) -> Value {
    let session = format!("{CANARY_SESSION}{nonce}");
    let input = json!({ "nonce": nonce });
    match client {
        Client::Claude => json!({
            "session_id": session, "prompt_id": nonce, "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": input, "tool_use_id": nonce,
        }),
        Client::Codex => json!({
            "session_id": session, "turn_id": nonce, "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": input, "tool_use_id": nonce,
        }),
        Client::Gemini => json!({
            "session_id": session, "cwd": folder, "hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": input,
        }),
        Client::Copilot => json!({ "sessionId": session, "cwd": folder, "toolName": tool, "toolArgs": input }),
        Client::Opencode => json!({
            "cwd": folder, "input": { "tool": tool, "sessionID": session, "callID": nonce }, "output": { "args": input },
        }),
        Client::Cursor => json!({
            "conversation_id": session, "cursor_version": "", "cwd": folder, "hook_event_name": "preToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": nonce,
        }),
    }
}
