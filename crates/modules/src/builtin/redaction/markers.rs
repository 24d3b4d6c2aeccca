//! The guard against markers in the inputs of tools: the value behind a marker is unknown to the model.

use amplifier_audit::has_marker;
use amplifier_core::{EventData, Hook, HookError, HookResult};
use serde_json::Value;

/// The reason for a denial.
pub(crate) const MARKER_IN_INPUT: &str = "the input has a redaction marker, and the tool would use the marker instead of the value behind it. \
Change only other parts of the file, or ask the user to make this change";

/// The fields of inputs that name what a tool changes or runs.
const TARGETS: [&str; 4] = ["file_path", "path", "notebook_path", "command"];

/// The fields of inputs that only find text.
const SEARCHED: [&str; 2] = ["old_string", "pattern"];

/// Denies writes and commands that have a marker.
pub(super) struct MarkerGuard;

impl Hook for MarkerGuard {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let input = data.get("tool_input");
        let is_change = |input: &&Value| TARGETS.iter().any(|field| input.get(field).is_some());
        Ok(match input.filter(is_change) {
            Some(input) if holds_marker(input) => HookResult::deny(MARKER_IN_INPUT),
            _ => HookResult::proceed(),
        })
    }
}

fn holds_marker(value: &Value) -> bool {
    match value {
        Value::String(text) => has_marker(text),
        Value::Array(items) => items.iter().any(holds_marker),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| !SEARCHED.contains(&name.as_str()) && holds_marker(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
