//! Cursor, from its documentation: nothing of it is measured. Its hooks fail closed, so an empty answer would block.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::claude::deny_change;
use super::form::{Meaning, NESTED, PayloadForm};
use crate::answer::{GuardAnswer, HookOutput, Loss, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, EventKind};

pub(super) const FORM: PayloadForm = PayloadForm {
    client: Client::Cursor,
    session: "conversation_id",
    result: "tool_output",
    events: &[
        ("sessionStart", Meaning::SessionStart),
        ("sessionEnd", Meaning::SessionEnd),
        ("beforeSubmitPrompt", Meaning::Prompt),
        ("preToolUse", Meaning::ToolPre),
        ("subagentStart", Meaning::Spawn),
        ("postToolUse", Meaning::ToolPost),
        ("postToolUseFailure", Meaning::ToolFailure),
        ("preCompact", Meaning::Compact),
        ("stop", Meaning::Complete),
        // Cursor runs hooks of Claude under these names, too.
        ("PreToolUse", Meaning::ToolPre),
        ("PostToolUse", Meaning::ToolPost),
        ("UserPromptSubmit", Meaning::Prompt),
        ("SessionStart", Meaning::SessionStart),
        ("SessionEnd", Meaning::SessionEnd),
        ("Stop", Meaning::Complete),
    ],
    ..NESTED
};

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    let mut event = FORM.parse(told, payload)?;
    event.version = payload.get("cursor_version").and_then(Value::as_str).map(str::to_owned);
    let roots = payload.get("workspace_roots").and_then(Value::as_array);
    let root = roots.and_then(|roots| roots.first()).and_then(Value::as_str);
    event.folder = event.folder.or_else(|| root.map(Into::into));
    let text = |key: &str| payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match event.kind {
        // A prompt has no id of a call, but one of its answer.
        EventKind::Prompt { .. } => event.call = text("generation_id").map(str::to_owned),
        EventKind::Spawn { .. } => {
            event.call = text("tool_call_id").map(str::to_owned);
            // The sub-agent belongs to the session that starts it.
            event.session = text("parent_conversation_id").map_or(event.session, str::to_owned);
        }
        _ => {}
    }
    Ok(event)
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    match &event.kind {
        EventKind::ToolPre(tool) => tool_pre(tool, answer),
        EventKind::Prompt { .. } => prompt(answer),
        EventKind::Spawn { .. } => spawn(answer),
        _ => {
            let is_result = matches!(event.kind, EventKind::ToolPost { .. });
            let is_start = matches!(event.kind, EventKind::SessionStart { .. });
            let takes_context = answer.denial.is_none() && (is_result || is_start);
            let mut fields = Map::new();
            if let Some(context) = answer.joined_context().filter(|_| takes_context) {
                fields.insert("additional_context".to_owned(), context.into());
            }
            let output = HookOutput { stdout: Value::Object(fields).to_string(), ..HookOutput::default() };
            Reply::new(output)
                .lose(Loss::RESULT, is_result && (answer.denial.is_some() || answer.change.is_some()))
                .lose(Loss::LATER, is_start && answer.denial.is_some())
                .lose(Loss::MESSAGE, answer.joined_messages().is_some())
        }
    }
}

fn tool_pre(tool: &ClientTool, answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&json!({ "permission": "deny", "user_message": reason }), &reason);
    }
    let mut fields = Map::from_iter([("permission".to_owned(), json!("allow"))]);
    if let Some(input) = answer.input() {
        if tool.name == "Write" {
            let reason = "a hook changed the input of `Write`, which this client is reported to lose";
            return deny_change(reason, |answer| tool_pre(tool, answer));
        }
        fields.insert("updated_input".to_owned(), input.clone());
    }
    Reply::new(HookOutput::success(fields)).lose(Loss::MESSAGE, answer.joined_messages().is_some())
}

fn spawn(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&json!({ "permission": "deny", "user_message": reason }), &reason);
    }
    if answer.change.is_some() {
        return deny_change("a hook changed the task of an agent, which this client cannot apply", spawn);
    }
    Reply::new(HookOutput::success(Map::from_iter([("permission".to_owned(), json!("allow"))])))
        .lose(Loss::MESSAGE, answer.joined_messages().is_some())
}

fn prompt(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&json!({ "continue": false, "user_message": reason }), &reason);
    }
    if answer.change.is_some() {
        return deny_change("a hook changed the prompt, which this client cannot apply", prompt);
    }
    Reply::new(HookOutput::success(Map::from_iter([("continue".to_owned(), json!(true))])))
        .lose(Loss::MESSAGE, answer.joined_messages().is_some())
}

/// Exit code 0: the client shows JSON beside exit code 2 raw.
fn denied(json: &Value, reason: &str) -> Reply {
    Reply::new(HookOutput { stdout: json.to_string(), stderr: format!("{reason}\n"), code: 0 })
}
