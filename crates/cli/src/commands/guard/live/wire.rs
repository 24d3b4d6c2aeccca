//! The wire forms of model providers, as far as one call needs them.

use serde_json::{Value, json};

use super::LiveCall;

/// The form of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Anthropic messages: Claude Code.
    Anthropic,
    /// OpenAI responses: Codex, Copilot.
    Responses,
    /// OpenAI chat completions: opencode.
    Chat,
    /// Gemini: Gemini CLI.
    Gemini,
}

/// The answer of the model.
pub(super) enum Turn<'a> {
    Text(&'static str),
    Call(&'a LiveCall),
}

impl Wire {
    /// Returns the form of a path.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            _ if path.ends_with("/messages") => Some(Self::Anthropic),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.ends_with("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Returns `true` if a request has the result of a call.
    pub(super) fn has_result(self, request: &str) -> bool {
        request.contains(match self {
            Self::Anthropic => r#""type":"tool_result""#,
            Self::Responses => r#""type":"function_call_output""#,
            Self::Chat => r#""role":"tool""#,
            Self::Gemini => r#""functionResponse":"#,
        })
    }

    /// Returns `true` if the client wants a stream.
    pub(super) fn is_stream(self, path: &str, request: &Value) -> bool {
        match self {
            Self::Gemini => path.ends_with("streamGenerateContent"),
            _ => request.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    /// Returns a response.
    pub(super) fn write(self, turn: &Turn<'_>, request: &Value, number: u64, is_stream: bool) -> String {
        let model = &request["model"];
        match self {
            Self::Anthropic => anthropic(turn, model, number, is_stream),
            Self::Responses => responses(turn, model, number, is_stream),
            Self::Chat => chat(turn, model, number, is_stream),
            Self::Gemini => gemini(turn, number, is_stream),
        }
    }
}

/// Returns the text of a stream of named events.
fn events(events: Vec<Value>) -> String {
    let text = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.into_iter().map(text).collect()
}

fn anthropic(turn: &Turn<'_>, model: &Value, number: u64, is_stream: bool) -> String {
    let (block, start, delta, reason) = match turn {
        Turn::Text(text) => (
            json!({ "type": "text", "text": text }),
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
        Turn::Call(LiveCall { tool, input, .. }) => {
            let call = |input: &Value| json!({ "type": "tool_use", "id": format!("toolu_{number:020}"), "name": tool, "input": input });
            let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
            (call(input), call(&json!({})), delta, "tool_use")
        }
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    let message = |content: Value, reason: Value| {
        json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": usage,
        })
    };
    if !is_stream {
        return message(json!([block]), reason.into()).to_string();
    }
    events(vec![
        json!({ "type": "message_start", "message": message(json!([]), Value::Null) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ])
}

fn responses(turn: &Turn<'_>, model: &Value, number: u64, is_stream: bool) -> String {
    let item = match turn {
        Turn::Text(text) => json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Turn::Call(LiveCall { tool, input, .. }) => json!({
            "type": "function_call", "id": format!("item_{number}"), "call_id": format!("call_{number}"),
            "status": "completed", "name": tool, "arguments": input.to_string(),
        }),
    };
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 5,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
    });
    let response = |status: &str, output: Value, usage: &Value| {
        json!({
            "id": format!("resp_{number}"), "object": "response", "created_at": 1_767_225_600, "model": model,
            "error": null, "status": status, "output": output, "usage": usage,
        })
    };
    let complete = response("completed", json!([item]), &usage);
    if !is_stream {
        return complete.to_string();
    }
    let started = response("in_progress", json!([]), &Value::Null);
    events(vec![
        json!({ "type": "response.created", "sequence_number": 0, "response": started }),
        json!({ "type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "sequence_number": 3, "response": complete }),
    ])
}

fn chat(turn: &Turn<'_>, model: &Value, number: u64, is_stream: bool) -> String {
    let (message, reason) = match turn {
        Turn::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Turn::Call(LiveCall { tool, input, .. }) => {
            let function = json!({ "name": tool, "arguments": input.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
    };
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let part = |object: &str, choice: Value| {
        json!({
            "id": format!("chat_{number}"), "object": object, "created": 1_767_225_600, "model": model,
            "choices": [choice], "usage": usage,
        })
    };
    if !is_stream {
        return part("chat.completion", json!({ "index": 0, "message": message, "finish_reason": reason })).to_string();
    }
    let chunk = |delta: Value, reason: Value| {
        part("chat.completion.chunk", json!({ "index": 0, "delta": delta, "finish_reason": reason }))
    };
    format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", chunk(message, Value::Null), chunk(json!({}), reason.into()))
}

fn gemini(turn: &Turn<'_>, number: u64, is_stream: bool) -> String {
    let part = match turn {
        Turn::Text(text) => json!({ "text": text }),
        Turn::Call(LiveCall { tool, input, .. }) => {
            json!({ "functionCall": { "id": format!("call_{number}"), "name": tool, "args": input } })
        }
    };
    let answer = json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 },
        "modelVersion": "scripted",
    });
    if is_stream { format!("data: {answer}\r\n\r\n") } else { answer.to_string() }
}
