//! Copilot CLI. It has two dialects, and ignores an answer in the wrong one: its own, and Claude's for hooks of Claude.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::claude::{self, blocked};
use super::form::{Meaning, NESTED, NESTED_EVENTS, PayloadForm, result_text};
use crate::answer::{Change, GuardAnswer, HookOutput, Loss, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, Dialect, EventKind};

pub(super) const FORM: PayloadForm = PayloadForm {
    client: Client::Copilot,
    dialect: Dialect::Own,
    session: "sessionId",
    agent: "agentId",
    parent: "parentAgentId",
    tool: "toolName",
    input: "toolArgs",
    result: "toolResult",
    call: "toolCallId",
    events: &[
        ("sessionStart", Meaning::SessionStart),
        ("sessionEnd", Meaning::SessionEnd),
        ("userPromptSubmitted", Meaning::Prompt),
        ("preToolUse", Meaning::ToolPre),
        ("postToolUse", Meaning::ToolPost),
        ("postToolUseFailure", Meaning::ToolFailure),
        ("preCompact", Meaning::Compact),
        ("agentStop", Meaning::Complete),
        // `preToolUse` has decided already.
        ("permissionRequest", Meaning::Other),
        ("preMcpToolCall", Meaning::Other),
        ("userPromptTransformed", Meaning::Other),
    ],
};

const NESTED_FORM: PayloadForm = PayloadForm {
    client: Client::Copilot,
    dialect: Dialect::Nested,
    result: "tool_result",
    events: NESTED_EVENTS,
    ..NESTED
};

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    if payload.contains_key("session_id") {
        return NESTED_FORM.parse(told, payload);
    }
    FORM.parse(told, payload)
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    let reply = match (&event.kind, event.dialect) {
        (EventKind::ToolPost { success, .. }, dialect) => tool_post(*success, dialect, answer),
        (EventKind::ToolPre(_), Dialect::Own) => tool_pre(answer),
        (EventKind::Prompt { .. }, Dialect::Own) => prompt(answer),
        (EventKind::SessionStart { .. }, Dialect::Own) => {
            Reply::new(HookOutput::success(context(answer))).lose(Loss::LATER, answer.denial.is_some())
        }
        (_, Dialect::Own) => Reply::new(HookOutput::default()),
        (_, Dialect::Nested) => claude::answer(event, answer),
    };
    // The client shows no messages of hooks.
    reply.lose(Loss::MESSAGE, answer.joined_messages().is_some())
}

fn tool_pre(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        let fields = json!({ "permissionDecision": "deny", "permissionDecisionReason": reason });
        return Reply::new(HookOutput::denial(&fields, &reason));
    }
    let mut fields = context(answer);
    if let Some(question) = answer.dialog_text() {
        fields.insert("permissionDecision".to_owned(), json!("ask"));
        fields.insert("permissionDecisionReason".to_owned(), json!(question));
    }
    if let Some(input) = answer.input() {
        fields.insert("modifiedArgs".to_owned(), input.clone());
    }
    Reply::new(HookOutput::success(fields))
}

fn prompt(answer: &GuardAnswer) -> Reply {
    if let Some(reason) = answer.reason() {
        return Reply::new(HookOutput::denial(&blocked(&reason).into(), &reason));
    }
    let mut fields = context(answer);
    if let Some(Change::Prompt(text)) = &answer.change {
        fields.insert("modifiedPrompt".to_owned(), json!(text));
    }
    Reply::new(HookOutput::success(fields))
}

fn tool_post(success: bool, dialect: Dialect, answer: &GuardAnswer) -> Reply {
    if dialect == Dialect::Nested
        && let Some(result) = answer.result().filter(|_| answer.denial.is_none())
    {
        // The reason of a block replaces the result in both dialects; another result is measured only in the own one.
        return tool_post(success, dialect, &GuardAnswer::deny(result_text(result)));
    }
    if let Some(reason) = answer.reason() {
        return Reply::new(HookOutput::denial(&blocked(&reason).into(), &reason)).lose(Loss::RESULT, !success);
    }
    let mut fields = match dialect {
        Dialect::Own => context(answer),
        Dialect::Nested => claude::with_context(Map::new(), "PostToolUse", answer.joined_context()),
    };
    if let Some(result) = answer.result() {
        let kind = ["resultType", "result_type"].iter().find_map(|key| result.get(*key)).and_then(Value::as_str);
        let kind = kind.unwrap_or("success");
        fields.insert(
            "modifiedResult".to_owned(),
            json!({ "resultType": kind, "textResultForLlm": result_text(result) }),
        );
    }
    Reply::new(HookOutput::success(fields)).lose(Loss::RESULT, !success && answer.change.is_some())
}

fn context(answer: &GuardAnswer) -> Map {
    let context = answer.joined_context().filter(|_| answer.denial.is_none());
    context.map(|context| ("additionalContext".to_owned(), context.into())).into_iter().collect()
}
