//! Gemini `streamGenerateContent`, as it streams with `alt=sse`.

use serde_json::{Value, json};

pub(crate) fn event(data: Value) -> String {
    // Gemini ends lines so.
    format!("data: {data}\r\n\r\n")
}

pub(crate) fn parts(parts: Value) -> String {
    event(json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] }))
}

pub(crate) fn text(text: &str) -> String {
    parts(json!([{ "text": text }]))
}

pub(crate) fn end(finish_reason: &str) -> String {
    let content = json!({ "role": "model", "parts": [{ "text": "" }] });
    event(json!({
        "candidates": [{ "content": content, "finishReason": finish_reason, "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": 25, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "totalTokenCount": 32
        },
    }))
}
