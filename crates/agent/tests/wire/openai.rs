//! OpenAI Chat Completions, as it streams.

use serde_json::{Value, json};

pub(crate) const DONE: &str = "data: [DONE]\n\n";

pub(crate) fn event(data: Value) -> String {
    format!("data: {data}\n\n")
}

pub(crate) fn delta(delta: Value) -> String {
    choice(delta, Value::Null)
}

pub(crate) fn text(text: &str) -> String {
    delta(json!({ "content": text }))
}

/// The beginning of a tool call.
pub(crate) fn call(index: u32, id: &str, name: &str) -> String {
    let function = json!({ "name": name, "arguments": "" });
    delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }))
}

/// More of the arguments of a tool call.
pub(crate) fn arguments(index: u32, piece: &str) -> String {
    delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }))
}

pub(crate) fn finish(reason: &str) -> String {
    choice(json!({}), reason.into())
}

fn choice(delta: Value, finish_reason: Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    event(json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": null }))
}

pub(crate) fn usage() -> String {
    let usage = json!({ "prompt_tokens": 25, "completion_tokens": 7, "total_tokens": 32 });
    event(json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage }))
}

pub(crate) fn end(reason: &str) -> Vec<String> {
    vec![finish(reason), usage(), DONE.to_owned()]
}
