//! Gemini CLI. JSON decides there whatever the exit code is, at the top level.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::claude::{deny_change, observed, with_messages};
use super::form::{Meaning, NESTED, PayloadForm, result_text};
use crate::answer::{GuardAnswer, HookOutput, Loss, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, EventKind};
use crate::tools;

pub(super) const FORM: PayloadForm = PayloadForm {
    client: Client::Gemini,
    events: &[
        ("SessionStart", Meaning::SessionStart),
        ("SessionEnd", Meaning::SessionEnd),
        ("BeforeAgent", Meaning::Prompt),
        ("BeforeTool", Meaning::ToolPre),
        ("AfterTool", Meaning::ToolPost),
        ("PreCompress", Meaning::Compact),
        ("AfterAgent", Meaning::Complete),
    ],
    ..NESTED
};

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    let mut event = FORM.parse(told, payload)?;
    // The payload names the server of a tool, which the name of the tool does not show exactly.
    let context = |key: &str| payload.get("mcp_context")?.get(key)?.as_str();
    if let (Some(server), Some(tool)) = (context("server_name"), context("tool_name"))
        && let EventKind::ToolPre(call) | EventKind::ToolPost { tool: call, .. } = &mut event.kind
    {
        call.operations.truncate(1);
        call.operations.iter_mut().for_each(|operation| operation.tool = tools::mcp_name(server, tool));
    }
    Ok(event)
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    match &event.kind {
        EventKind::ToolPre(tool) => tool_pre(tool, answer),
        EventKind::Prompt { .. } => prompt(answer),
        EventKind::ToolPost { .. } => tool_post(answer),
        EventKind::SessionStart { .. } => {
            let output = HookOutput::success(with_messages(context(answer), answer));
            Reply::new(output).lose(Loss::LATER, answer.denial.is_some())
        }
        _ => observed(answer),
    }
}

fn tool_pre(tool: &ClientTool, answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&reason, answer);
    }
    if let Some(question) = answer.dialog_text() {
        // The dialog shows the message, not the reason.
        let messages = [vec![question.clone()], answer.messages.clone()].concat();
        let shown = GuardAnswer { messages, ..answer.clone() };
        let fields = Map::from_iter([("decision".to_owned(), json!("ask")), ("reason".to_owned(), json!(question))]);
        let reply = Reply::new(HookOutput::success(with_messages(fields, &shown)));
        return Reply { deferred: answer.context.clone(), ..reply };
    }
    let mut fields = Map::new();
    if let Some(input) = answer.input() {
        // The client merges the fields, so none can be removed.
        let (before, after) = (tool.input.as_object(), input.as_object());
        let removes = before.into_iter().flatten().any(|(key, _)| after.is_none_or(|after| !after.contains_key(key)));
        if removes {
            return deny_change("a hook removed a field of the input, which this client cannot apply", |answer| {
                tool_pre(tool, answer)
            });
        }
        fields.insert("hookSpecificOutput".to_owned(), json!({ "tool_input": input }));
    }
    let reply = Reply::new(HookOutput::success(with_messages(fields, answer)));
    Reply { deferred: answer.context.clone(), ..reply }
}

fn prompt(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&reason, answer);
    }
    if answer.change.is_some() {
        return deny_change("a hook changed the prompt, which this client cannot apply", prompt);
    }
    Reply::new(HookOutput::success(with_messages(context(answer), answer)))
}

fn tool_post(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return denied(&reason, answer);
    }
    if let Some(result) = answer.result() {
        let text = result_text(result);
        let text = if text.trim().is_empty() { "(a hook removed the result)".to_owned() } else { text };
        let stdout = json!({ "decision": "deny", "reason": text }).to_string();
        let output = HookOutput { stdout, ..HookOutput::default() };
        return Reply::new(output);
    }
    Reply::new(HookOutput::success(with_messages(context(answer), answer)))
}

fn denied(reason: &str, answer: &GuardAnswer) -> Reply {
    let fields = Map::from_iter([("decision".to_owned(), json!("deny")), ("reason".to_owned(), json!(reason))]);
    Reply::new(HookOutput::denial(&Value::Object(with_messages(fields, answer)), reason))
}

fn context(answer: &GuardAnswer) -> Map {
    let context = answer.joined_context().filter(|_| answer.denial.is_none());
    let fields = context.map(|context| ("hookSpecificOutput".to_owned(), json!({ "additionalContext": context })));
    fields.into_iter().collect()
}
