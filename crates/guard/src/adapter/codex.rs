//! Codex CLI. It drops an answer with a field that it does not know, so each answer has only measured fields.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::claude::{blocked, deny_change, observed, with_context, with_messages};
use super::form::{NESTED, PayloadForm, result_text};
use crate::answer::{GuardAnswer, HookOutput, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, EventKind};

const FORM: PayloadForm = PayloadForm { client: Client::Codex, ..NESTED };

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    FORM.parse(told, payload)
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    match &event.kind {
        EventKind::ToolPre(tool) => tool_pre(tool, answer),
        EventKind::Prompt { .. } => prompt(answer),
        EventKind::ToolPost { .. } => tool_post(answer),
        EventKind::SessionStart { .. } => match answer.reason() {
            Some(reason) => {
                let stdout = json!({ "continue": false }).to_string();
                Reply::new(HookOutput { stdout, stderr: format!("{reason}\n"), code: 0 })
            }
            None => Reply::new(HookOutput::success(with_messages(
                with_context(Map::new(), &event.name, answer.joined_context()),
                answer,
            ))),
        },
        _ => observed(answer),
    }
}

fn tool_pre(tool: &ClientTool, answer: &GuardAnswer) -> Reply {
    let mut specific = Map::from_iter([("hookEventName".to_owned(), json!("PreToolUse"))]);
    if let Some(reason) = answer.reason() {
        specific.insert("permissionDecision".to_owned(), json!("deny"));
        specific.insert("permissionDecisionReason".to_owned(), json!(reason));
        let fields = Map::from_iter([("hookSpecificOutput".to_owned(), specific.into())]);
        return Reply::new(HookOutput::denial(&fields.into(), &reason));
    }
    if let Some(input) = answer.input() {
        let Some(command) = changed_command(tool, input) else {
            return deny_change("a hook changed the input, which this client can apply only to a command", |answer| {
                tool_pre(tool, answer)
            });
        };
        // The client takes another command only with `allow`.
        specific.insert("permissionDecision".to_owned(), json!("allow"));
        specific.insert("updatedInput".to_owned(), json!({ "command": command }));
    }
    // Only measured combinations: context alone, or with a denial.
    if let Some(context) = answer.joined_context().filter(|_| answer.change.is_none()) {
        specific.insert("additionalContext".to_owned(), context.into());
    }
    let mut fields = Map::new();
    if specific.len() > 1 {
        fields.insert("hookSpecificOutput".to_owned(), specific.into());
    }
    Reply::new(HookOutput::success(with_messages(fields, answer)))
}

/// Returns the changed command, if nothing else changed.
fn changed_command(tool: &ClientTool, input: &Value) -> Option<String> {
    let (before, after) = (tool.input.as_object()?, input.as_object()?);
    let others = |map: &Map| {
        map.iter().filter(|(key, _)| *key != "command").map(|(k, v)| (k.clone(), v.clone())).collect::<Map>()
    };
    let command = after.get("command").and_then(Value::as_str).filter(|_| before.contains_key("command"))?;
    (tool.name == "Bash" && others(before) == others(after)).then(|| command.to_owned())
}

fn prompt(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return Reply::new(HookOutput::denial(&blocked(&reason).into(), &reason));
    }
    if answer.change.is_some() {
        return deny_change("a hook changed the prompt, which this client cannot apply", prompt);
    }
    let fields = with_context(Map::new(), "UserPromptSubmit", answer.joined_context());
    Reply::new(HookOutput::success(with_messages(fields, answer)))
}

fn tool_post(answer: &GuardAnswer) -> Reply {
    // The reason replaces the result, so it carries another result, too.
    if let Some(reason) = answer.reason() {
        return Reply::new(HookOutput::denial(&blocked(&reason).into(), &reason));
    }
    if let Some(result) = answer.result() {
        let text = result_text(result);
        let text = if text.trim().is_empty() { "(a hook removed the result)".to_owned() } else { text };
        let output = HookOutput { stdout: Value::Object(blocked(&text)).to_string(), ..HookOutput::default() };
        return Reply::new(output);
    }
    let fields = with_context(Map::new(), "PostToolUse", answer.joined_context());
    Reply::new(HookOutput::success(with_messages(fields, answer)))
}
