//! Limits of an event that is about to be decided: each operation passes all hooks, and is recorded.

use serde_json::Value;

use crate::event::{ClientEvent, EventKind};

/// The most operations of a call.
const MAX_OPERATIONS: usize = 1_000;
/// The most values in the input of a tool, at any depth.
const MAX_VALUES: usize = 10_000;
/// The most bytes of texts in the input of a tool, and of a prompt.
const MAX_BYTES: usize = 16 << 20;

/// Checks the size of an event.
///
/// # Errors
/// The reason to deny it.
pub(super) fn check(event: &ClientEvent) -> Result<(), String> {
    match &event.kind {
        EventKind::ToolPre(tool) => {
            let (mut values, mut bytes) = (0, 0);
            count(&tool.input, &mut values, &mut bytes);
            limit("operations", tool.operations.len(), MAX_OPERATIONS)?;
            limit("values", values, MAX_VALUES)?;
            limit("bytes", bytes, MAX_BYTES)
        }
        EventKind::Prompt { text } => limit("bytes", text.len(), MAX_BYTES),
        _ => Ok(()),
    }
}

fn limit(name: &str, count: usize, most: usize) -> Result<(), String> {
    match count > most {
        true => Err(format!("the call has {count} {name}, and at most {most} are checked; split it into several")),
        false => Ok(()),
    }
}

fn count(value: &Value, values: &mut usize, bytes: &mut usize) {
    *values += 1;
    match value {
        Value::String(text) => *bytes += text.len(),
        Value::Array(items) => items.iter().for_each(|item| count(item, values, bytes)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            *bytes += key.len();
            count(value, values, bytes);
        }),
        _ => {}
    }
}
