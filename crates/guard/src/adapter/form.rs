//! The common form of payloads: clients differ in the names of fields and events.

use amplifier_core::Map;
use amplifier_modules::tool_words;
use serde_json::Value;

use super::PayloadError;
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, Dialect, EventKind, ToolOperation};
use crate::{patch, tools};

/// The meaning of an event name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    SessionStart,
    SessionEnd,
    Prompt,
    ToolPre,
    ToolPost,
    ToolFailure,
    Spawn,
    Compact,
    Complete,
    Other,
}

impl Meaning {
    /// Returns our event.
    pub(super) fn our_event(self) -> Option<&'static str> {
        Some(match self {
            Self::SessionStart => "session:start",
            Self::SessionEnd => "session:end",
            Self::Prompt => "prompt:submit",
            Self::ToolPre => "tool:pre",
            Self::ToolPost | Self::ToolFailure => "tool:post",
            Self::Spawn => "agent:spawn",
            Self::Compact => "context:pre_compact",
            Self::Complete => "orchestrator:complete",
            Self::Other => return None,
        })
    }
}

/// The names of fields and events in the payloads of one client.
pub(super) struct PayloadForm {
    pub(super) client: Client,
    pub(super) dialect: Dialect,
    pub(super) session: &'static str,
    pub(super) agent: &'static str,
    pub(super) parent: &'static str,
    pub(super) tool: &'static str,
    pub(super) input: &'static str,
    pub(super) result: &'static str,
    pub(super) call: &'static str,
    pub(super) events: &'static [(&'static str, Meaning)],
}

/// Events with the names that Claude gave them.
pub(super) const NESTED_EVENTS: &[(&str, Meaning)] = &[
    ("SessionStart", Meaning::SessionStart),
    ("SessionEnd", Meaning::SessionEnd),
    ("UserPromptSubmit", Meaning::Prompt),
    ("PreToolUse", Meaning::ToolPre),
    ("PostToolUse", Meaning::ToolPost),
    ("PostToolUseFailure", Meaning::ToolFailure),
    ("PreCompact", Meaning::Compact),
    ("Stop", Meaning::Complete),
    // The client is about to ask the user itself: `PreToolUse` has decided already.
    ("PermissionRequest", Meaning::Other),
];

/// The form of Claude, which others follow.
pub(super) const NESTED: PayloadForm = PayloadForm {
    client: Client::Claude,
    dialect: Dialect::Own,
    session: "session_id",
    agent: "agent_id",
    parent: "parent_agent_id",
    tool: "tool_name",
    input: "tool_input",
    result: "tool_response",
    call: "tool_use_id",
    events: NESTED_EVENTS,
};

impl PayloadForm {
    /// Parses a payload. The event is that of the payload, else that of the command line.
    pub(super) fn parse(&self, told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let owned = |key: &str| text(key).map(str::to_owned);
        let name = text("hook_event_name").or(told).unwrap_or_default().to_owned();
        let kind = self.kind(&name, payload)?;
        // An event without effect is no reason to deny, whatever it lacks.
        let session = match (owned(self.session), &kind) {
            (Some(session), _) => session,
            (None, EventKind::Other) => String::new(),
            (None, _) => return Err(self.missing(self.session)),
        };
        Ok(ClientEvent {
            client: self.client,
            name,
            session,
            agent: owned(self.agent),
            parent: owned(self.parent),
            call: owned(self.call),
            folder: text("cwd").map(Into::into),
            model: owned("model"),
            version: None,
            mode: owned("permission_mode"),
            dialect: self.dialect,
            kind,
        })
    }

    fn kind(&self, name: &str, payload: &Map) -> Result<EventKind, PayloadError> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let known = self.events.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning);
        let has = |key: &str| payload.contains_key(key);
        let looks_like_gate = || has(self.tool) && has(self.input) && !has(self.result) && !has("error");
        Ok(match known {
            Some(Meaning::SessionStart) => EventKind::SessionStart { source: source(&text("source")).to_owned() },
            Some(Meaning::SessionEnd) => EventKind::SessionEnd { reason: text("reason") },
            Some(Meaning::Prompt) => {
                let prompt = payload.get("prompt").and_then(Value::as_str).ok_or_else(|| self.missing("prompt"))?;
                EventKind::Prompt { text: prompt.to_owned() }
            }
            Some(Meaning::ToolPre) => EventKind::ToolPre(self.tool(payload)?),
            // A new event that may decide about a tool is a gate.
            None if looks_like_gate() => EventKind::ToolPre(self.tool(payload)?),
            Some(Meaning::ToolPost) => EventKind::ToolPost {
                tool: self.tool(payload)?,
                result: payload.get(self.result).cloned().ok_or_else(|| self.missing(self.result))?,
                success: true,
                milliseconds: payload.get("duration_ms").and_then(Value::as_u64).unwrap_or_default(),
            },
            Some(Meaning::ToolFailure) => EventKind::ToolPost {
                tool: self.tool(payload)?,
                result: Map::from_iter([("error".to_owned(), payload.get("error").cloned().unwrap_or_default())])
                    .into(),
                success: false,
                milliseconds: payload.get("duration_ms").and_then(Value::as_u64).unwrap_or_default(),
            },
            Some(Meaning::Spawn) => {
                let task = payload.get("task").and_then(Value::as_str).ok_or_else(|| self.missing("task"))?;
                EventKind::Spawn { agent: text("subagent_type"), task: task.to_owned() }
            }
            Some(Meaning::Compact) => {
                let trigger = text("trigger");
                EventKind::Compact { trigger: if trigger == "manual" { trigger } else { "auto".to_owned() } }
            }
            Some(Meaning::Complete) => {
                let message = text("last_assistant_message");
                EventKind::Complete { message: (!message.is_empty()).then_some(message) }
            }
            Some(Meaning::Other) | None => EventKind::Other,
        })
    }

    fn tool(&self, payload: &Map) -> Result<ClientTool, PayloadError> {
        let name = payload.get(self.tool).and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.missing(self.tool))?;
        let input = payload.get(self.input).ok_or_else(|| self.missing(self.input))?;
        self.operations(name, input)
    }

    /// Translates a tool call.
    pub(super) fn operations(&self, name: &str, input: &Value) -> Result<ClientTool, PayloadError> {
        let tool = |input: Value, operations| ClientTool { name: name.to_owned(), input, operations };
        // Older versions send the input as JSON text; a patch is a text in any version.
        let parsed = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let input = parsed.filter(Value::is_object).unwrap_or_else(|| input.clone());
        if name == "apply_patch" {
            let text = match &input {
                Value::String(text) => Some(text),
                Value::Object(fields) => {
                    ["command", "input", "patch", "patchText"].iter().find_map(|key| match fields.get(*key) {
                        Some(Value::String(text)) => Some(text),
                        _ => None,
                    })
                }
                _ => None,
            };
            let operations = patch::operations(text.ok_or_else(|| self.missing(self.input))?)?;
            return Ok(tool(input, operations));
        }
        let Value::Object(fields) = &input else { return Err(self.missing(self.input)) };
        let ours = tool_words::to_ours(self.client.into(), name, fields).map_err(PayloadError::Input)?;
        let names = tools::names(self.client, name).map_err(PayloadError::Input)?;
        let operations = names.into_iter().map(|tool| ToolOperation { tool, input: ours.clone() });
        Ok(tool(input, operations.collect()))
    }

    pub(super) fn missing(&self, field: &'static str) -> PayloadError {
        PayloadError::Field { client: self.client, field }
    }
}

/// Returns the reason of a start in our words.
fn source(theirs: &str) -> &str {
    match theirs {
        "resume" | "compact" => theirs,
        _ => "startup",
    }
}

/// Returns `true` if two values have the same fields with values of the same types, as clients require of another result.
pub(super) fn have_same_form(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| have_same_form(value, other)))
        }
        (Value::Array(_), Value::Array(_))
        | (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Returns the text of a result for a client that replaces results by text.
pub(super) fn result_text(result: &Value) -> String {
    let field = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    match result {
        Value::String(text) => text.clone(),
        _ => ["textResultForLlm", "text_result_for_llm", "llmContent", "output"]
            .into_iter()
            .find_map(field)
            .unwrap_or_else(|| result.to_string()),
    }
}
