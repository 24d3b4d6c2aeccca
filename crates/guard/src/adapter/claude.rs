//! Claude Code.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::form::{NESTED, have_same_form};
use crate::answer::{GuardAnswer, HookOutput, Loss, Reply};
use crate::event::{ClientEvent, ClientTool, EventKind};

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    NESTED.parse(told, payload)
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    match &event.kind {
        EventKind::ToolPre(_) => tool_pre(answer),
        EventKind::Prompt { .. } => prompt(answer),
        EventKind::ToolPost { tool, result, success, .. } => tool_post(event, tool, result, *success, answer),
        EventKind::SessionStart { .. } => {
            let context = answer.joined_context().filter(|_| answer.denial.is_none());
            let fields = with_context(Map::new(), &event.name, context);
            let output = HookOutput::success(with_messages(fields, answer));
            Reply::new(output).lose(Loss::LATER, answer.denial.is_some())
        }
        _ => observed(answer),
    }
}

fn tool_pre(answer: &GuardAnswer) -> Reply {
    let mut specific = Map::from_iter([("hookEventName".to_owned(), json!("PreToolUse"))]);
    if let Some(reason) = answer.reason() {
        specific.insert("permissionDecision".to_owned(), json!("deny"));
        specific.insert("permissionDecisionReason".to_owned(), json!(reason));
        let fields = with_messages(Map::from_iter([("hookSpecificOutput".to_owned(), specific.into())]), answer);
        return Reply::new(HookOutput::denial(&fields.into(), &reason));
    }
    if let Some(question) = answer.dialog_text() {
        specific.insert("permissionDecision".to_owned(), json!("ask"));
        specific.insert("permissionDecisionReason".to_owned(), json!(question));
    }
    // Never `allow`: it would skip the permission prompt of the client.
    if let Some(input) = answer.input() {
        specific.insert("updatedInput".to_owned(), input.clone());
    }
    if let Some(context) = answer.joined_context() {
        specific.insert("additionalContext".to_owned(), context.into());
    }
    let mut fields = Map::new();
    if specific.len() > 1 {
        fields.insert("hookSpecificOutput".to_owned(), specific.into());
    }
    Reply::new(HookOutput::success(with_messages(fields, answer)))
}

fn prompt(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        let fields = with_messages(blocked(&reason), answer);
        return Reply::new(HookOutput::denial(&fields.into(), &reason));
    }
    if answer.change.is_some() {
        return deny_change("a hook changed the prompt, which this client cannot apply", prompt);
    }
    let fields = with_context(Map::new(), "UserPromptSubmit", answer.joined_context());
    Reply::new(HookOutput::success(with_messages(fields, answer)))
}

fn tool_post(event: &ClientEvent, tool: &ClientTool, result: &Value, success: bool, answer: &GuardAnswer) -> Reply {
    let reason = answer.reason();
    let changed = answer.result().filter(|changed| have_same_form(result, changed));
    let misfit = answer.change.is_some() && changed.is_none();
    let reason = reason.or_else(|| {
        (misfit || (!success && answer.change.is_some()))
            .then(|| "a hook changed the result, which this client cannot apply".to_owned())
    });
    let replacement = match &reason {
        Some(reason) => withheld(tool, result, reason),
        None => changed.cloned(),
    };
    let mut fields = Map::new();
    if let Some(reason) = &reason {
        fields.extend(blocked(reason));
    }
    let mut specific = Map::from_iter([("hookEventName".to_owned(), json!(event.name))]);
    let replacement = replacement.filter(|_| success);
    let stays = reason.is_some() && replacement.is_none();
    if let Some(replacement) = replacement {
        specific.insert("updatedToolOutput".to_owned(), replacement);
    }
    if let Some(context) = answer.joined_context() {
        specific.insert("additionalContext".to_owned(), context.into());
    }
    if specific.len() > 1 {
        fields.insert("hookSpecificOutput".to_owned(), specific.into());
    }
    Reply::new(HookOutput::success(with_messages(fields, answer))).lose(Loss::RESULT, stays)
}

/// Returns a result of the tool's own form that says only the reason; none if the client accepts no such result.
fn withheld(tool: &ClientTool, result: &Value, reason: &str) -> Option<Value> {
    match (tool.name.as_str(), result) {
        ("Bash", Value::Object(fields)) => {
            let fields = fields.iter().map(|(key, value)| match (key.as_str(), value) {
                ("stdout", _) => (key.clone(), json!(reason)),
                (_, Value::String(_)) => (key.clone(), json!("")),
                _ => (key.clone(), value.clone()),
            });
            Some(Value::Object(fields.collect()))
        }
        (name, _) if name.starts_with("mcp__") => Some(json!([{ "type": "text", "text": reason }])),
        _ => None,
    }
}

/// Answers an event whose decision has no effect.
pub(super) fn observed(answer: &GuardAnswer) -> Reply {
    Reply::new(HookOutput::success(with_messages(Map::new(), answer)))
}

/// Denies instead of a change that a client cannot apply.
pub(super) fn deny_change(reason: &str, express: impl FnOnce(&GuardAnswer) -> Reply) -> Reply {
    express(&GuardAnswer::deny(reason)).lose(Loss::MODIFY, true)
}

pub(super) fn blocked(reason: &str) -> Map {
    Map::from_iter([("decision".to_owned(), json!("block")), ("reason".to_owned(), json!(reason))])
}

pub(super) fn with_context(mut fields: Map, event: &str, context: Option<String>) -> Map {
    if let Some(context) = context {
        let specific = json!({ "hookEventName": event, "additionalContext": context });
        fields.insert("hookSpecificOutput".to_owned(), specific);
    }
    fields
}

pub(super) fn with_messages(mut fields: Map, answer: &GuardAnswer) -> Map {
    if let Some(messages) = answer.joined_messages() {
        fields.insert("systemMessage".to_owned(), messages.into());
    }
    fields
}
