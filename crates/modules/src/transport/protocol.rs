//! Requests to hooks, and parsing of their answers.

use std::fmt;

use amplifier_core::{EventData, FlatAction, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::map::Entry;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

pub(super) const MAX_ERROR_CHARS: usize = 1000;

/// A request to a hook: one JSON object. The answer has the form of `hook-result.schema.json`, or is empty for `continue`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "HookRequest")]
pub struct HookRequest<'a> {
    /// The version of the protocol: 1.
    #[schemars(extend("const" = PROTOCOL))]
    pub protocol: u32,
    /// Identifies the request to a worker, whose answer repeats it. Absent for commands and servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub id: Option<u64>,
    /// The name under which the hook is registered.
    pub hook: &'a str,
    /// The event: `tool:pre`.
    pub event: &'a str,
    /// The data of the event, as in `events.schema.json`.
    #[schemars(with = "Map")]
    pub data: &'a EventData,
}

impl HookRequest<'_> {
    /// Returns the request in one line, without the line break.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, HookError> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// Reads an answer; white space alone means `continue`.
pub(super) fn read(answer: &[u8]) -> Result<HookResult, HookError> {
    let answer = answer.trim_ascii();
    if answer.is_empty() {
        return Ok(HookResult::proceed());
    }
    // Errors never repeat the answer: errors are logged, and answers may contain secrets.
    let answer: CheckedAnswer = serde_json::from_slice(answer)
        .map_err(|error| HookError::Unreadable(format!("the answer is not JSON: {error}")))?;
    answer.result()
}

/// An answer as JSON, checked for duplicate keys.
#[derive(Default)]
struct CheckedAnswer {
    value: Value,
    /// `true` if a key occurs twice. Parsers differ in the one they use, so `{"action": "deny", "action": "continue"}` is ambiguous.
    has_duplicate_key: bool,
}

impl CheckedAnswer {
    fn result(self) -> Result<HookResult, HookError> {
        if self.has_duplicate_key {
            return Err(HookError::unreadable(&self.value, "the answer has a duplicate key"));
        }
        HookResult::from_json(self.value)
    }
}

impl<T: Into<Value>> From<T> for CheckedAnswer {
    fn from(value: T) -> Self {
        Self { value: value.into(), has_duplicate_key: false }
    }
}

impl<'de> Deserialize<'de> for CheckedAnswer {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(CheckedAnswerVisitor)
    }
}

struct CheckedAnswerVisitor;

impl<'de> Visitor<'de> for CheckedAnswerVisitor {
    type Value = CheckedAnswer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<CheckedAnswer, E> {
        Ok(CheckedAnswer::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<CheckedAnswer, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<CheckedAnswer, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<CheckedAnswer, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<CheckedAnswer, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<CheckedAnswer, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<CheckedAnswer, A::Error> {
        let (mut all, mut has_duplicate_key) = (Vec::new(), false);
        while let Some(item) = items.next_element::<CheckedAnswer>()? {
            has_duplicate_key |= item.has_duplicate_key;
            all.push(item.value);
        }
        Ok(CheckedAnswer { value: Value::Array(all), has_duplicate_key })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<CheckedAnswer, A::Error> {
        let (mut all, mut has_duplicate_key) = (Map::new(), false);
        while let Some((key, field)) = fields.next_entry::<String, CheckedAnswer>()? {
            has_duplicate_key |= field.has_duplicate_key;
            match all.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(field.value),
                Entry::Occupied(mut entry) => {
                    has_duplicate_key = true;
                    // Of two actions, the intervening one is kept: it decides the effect of the unreadable answer.
                    if entry.get() == FlatAction::Continue.as_str() {
                        entry.insert(field.value);
                    }
                }
            }
        }
        Ok(CheckedAnswer { value: Value::Object(all), has_duplicate_key })
    }
}

#[derive(Debug)]
pub(super) struct WorkerAnswer {
    pub(super) id: u64,
    pub(super) result: Result<HookResult, HookError>,
}

/// A line of a worker.
///
/// INVARIANT: an unknown field is an error. Otherwise a misspelt `result` would be a lost denial.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    id: u64,
    #[serde(default)]
    result: CheckedAnswer,
    error: Option<String>,
}

/// Reads a line of a worker. The error is a protocol error; an error in the result belongs to that answer.
pub(super) fn read_line(line: &[u8]) -> Result<WorkerAnswer, serde_json::Error> {
    let AnswerLine { id, result, error } = serde_json::from_slice(line)?;
    let result = match error {
        Some(error) => Err(HookError::Failed(super::head(error.as_bytes(), MAX_ERROR_CHARS))),
        None => result.result(),
    };
    Ok(WorkerAnswer { id, result })
}
