//! Summaries of event data.

use serde_json::{Map, Value};

use crate::session::{describe_input, excerpt};

/// Summarizes event data: the tool and its target, or the most informative other field. The text is untrusted and unescaped.
pub(super) fn summarize_event(data: &Map<String, Value>) -> String {
    let Some(tool) = data.get("tool_name").and_then(Value::as_str) else {
        let telling = ["selected_tool", "prompt", "message", "error", "reason", "model"];
        return telling.iter().find_map(|field| data.get(*field)?.as_str()).map(excerpt).unwrap_or_default();
    };
    let input = data.get("tool_input").unwrap_or(&Value::Null);
    match describe_input(input) {
        Some(about) => format!("{tool} {about}"),
        None if input.as_object().is_none_or(Map::is_empty) => tool.to_owned(),
        None => format!("{tool} {}", excerpt(&input.to_string())),
    }
}
