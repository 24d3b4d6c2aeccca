//! Anthropic Messages, as it streams.

use serde_json::{Value, json};

pub(crate) fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

pub(crate) fn start() -> String {
    let usage = json!({ "input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage });
    event(json!({ "type": "message_start", "message": message }))
}

pub(crate) fn ping() -> String {
    event(json!({ "type": "ping" }))
}

/// A block: how it begins, and what is added to it.
pub(crate) fn block(index: u32, begin: Value, deltas: &[Value]) -> Vec<String> {
    let mut events = vec![event(json!({ "type": "content_block_start", "index": index, "content_block": begin }))];
    events.extend(deltas.iter().map(|delta| delta_of(index, delta)));
    events.push(event(json!({ "type": "content_block_stop", "index": index })));
    events
}

fn delta_of(index: u32, delta: &Value) -> String {
    event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

pub(crate) fn text(index: u32, pieces: &[&str]) -> Vec<String> {
    let deltas: Vec<_> = pieces.iter().map(|text| json!({ "type": "text_delta", "text": text })).collect();
    block(index, json!({ "type": "text", "text": "" }), &deltas)
}

pub(crate) fn tool(index: u32, id: &str, name: &str, pieces: &[&str]) -> Vec<String> {
    let deltas: Vec<_> =
        pieces.iter().map(|text| json!({ "type": "input_json_delta", "partial_json": text })).collect();
    block(index, json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), &deltas)
}

pub(crate) fn end(stop_reason: &str) -> Vec<String> {
    let delta = json!({ "stop_reason": stop_reason, "stop_sequence": null });
    let usage = json!({ "output_tokens": 7 });
    vec![
        event(json!({ "type": "message_delta", "delta": delta, "usage": usage })),
        event(json!({ "type": "message_stop" })),
    ]
}
