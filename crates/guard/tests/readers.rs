//! The effect of a hook's output in each client. The readers follow the measured behavior of the clients, not the code of the adapters.

use amplifier_guard::{Client, Dialect, HookOutput};
use serde_json::{Map, Value, json};

/// The moment at which a client waits for a decision.
#[allow(dead_code, reason = "some test programs ask only about tools")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Tool,
    Prompt,
}

/// Returns `true` if the client runs the tool, or processes the prompt, after this output of its hook.
pub(crate) fn proceeds(client: Client, dialect: Dialect, gate: Gate, output: &HookOutput) -> bool {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text.trim()).ok();
    let stdout = object(&output.stdout);
    let field = |key: &str| stdout.as_ref().and_then(|fields| fields.get(key)).and_then(Value::as_str);
    let nested = |key: &str| stdout.as_ref()?.get("hookSpecificOutput")?.get(key)?.as_str();
    let is_tool = gate == Gate::Tool;
    let has_reason = |reason: Option<&str>| reason.is_some_and(|reason| !reason.trim().is_empty());
    match client {
        Client::Claude => {
            let denied =
                if is_tool { nested("permissionDecision") == Some("deny") } else { field("decision") == Some("block") };
            !denied && output.code != 2
        }
        Client::Codex if output.code == 2 => output.stderr.trim().is_empty(),
        Client::Codex if output.code != 0 => true,
        Client::Codex => {
            let known = ["hookSpecificOutput", "systemMessage", "decision", "reason"];
            let is_known = stdout.iter().flat_map(Map::keys).all(|key| known.contains(&key.as_str()));
            let nested_deny =
                nested("permissionDecision") == Some("deny") && has_reason(nested("permissionDecisionReason"));
            !(is_known && (nested_deny || field("decision") == Some("block") && has_reason(field("reason"))))
        }
        Client::Gemini => {
            let text = if output.stdout.trim().is_empty() { &output.stderr } else { &output.stdout };
            match object(text) {
                Some(fields) => !matches!(fields.get("decision").and_then(Value::as_str), Some("deny" | "block")),
                None => output.code < 2 || text.trim().is_empty(),
            }
        }
        Client::Copilot if is_tool => {
            let decision = match dialect {
                Dialect::Own => field("permissionDecision"),
                Dialect::Nested => nested("permissionDecision"),
            };
            decision != Some("deny") && output.code == 0
        }
        Client::Copilot => field("decision") != Some("block"),
        Client::Opencode => output.code == 0 && field("decision") == Some("proceed"),
        Client::Cursor => match &stdout {
            _ if output.code == 2 => false,
            None => false,
            Some(fields) if is_tool => fields.get("permission").and_then(Value::as_str) != Some("deny"),
            Some(fields) => fields.get("continue") != Some(&json!(false)),
        },
    }
}
