//! What is sent to a hook, and how its answer is read.

use std::fmt;

use amplifier_core::{EventData, FlatAction, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::map::Entry;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// How much of an error's text is kept.
pub(super) const MAX_ERROR_CHARS: usize = 1000;

/// What a hook is asked: one JSON object. The answer is as in `hook-result.schema.json`, or nothing to go on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "HookRequest")]
pub struct HookRequest<'a> {
    /// The version of the protocol: 1.
    #[schemars(extend("const" = PROTOCOL))]
    pub protocol: u32,
    /// Tells the requests to a worker apart; its answer repeats it. Commands and servers get none.
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
    /// The request in one line, without the line break.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, HookError> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// Reads an answer; nothing but white space is "go on".
pub(super) fn read(answer: &[u8]) -> Result<HookResult, HookError> {
    let answer = answer.trim_ascii();
    if answer.is_empty() {
        return Ok(HookResult::proceed());
    }
    // Neither text repeats what the answer says: errors are logged, and answers may hold secrets.
    let answer: CheckedAnswer = serde_json::from_slice(answer)
        .map_err(|error| HookError::Unreadable(format!("the answer is no JSON: {error}")))?;
    answer.result()
}

/// An answer as JSON.
#[derive(Default)]
struct CheckedAnswer {
    value: Value,
    /// Whether a key stands in it twice. Readers differ in which one counts, so that `{"action": "deny", "action": "continue"}` says neither.
    has_duplicate_key: bool,
}

impl CheckedAnswer {
    fn result(self) -> Result<HookResult, HookError> {
        if self.has_duplicate_key {
            return Err(HookError::unreadable(&self.value, "the answer cannot be read: it has a key twice"));
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
                    // Of two actions, the one that intervenes is kept: it decides what the unreadable answer does.
                    if entry.get() == FlatAction::Continue.as_str() {
                        entry.insert(field.value);
                    }
                }
            }
        }
        Ok(CheckedAnswer { value: Value::Object(all), has_duplicate_key })
    }
}

/// The answer of a worker to one of its requests.
#[derive(Debug)]
pub(super) struct WorkerAnswer {
    pub(super) id: u64,
    pub(super) result: Result<HookResult, HookError>,
}

/// The line of it.
///
/// INVARIANT: a field that is not known is an error. A misspelt `result` would otherwise be a denial that nobody hears.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    id: u64,
    #[serde(default)]
    result: CheckedAnswer,
    error: Option<String>,
}

/// Reads a line of a worker. The error is the worker's; one in the result is that answer's.
pub(super) fn read_line(line: &[u8]) -> Result<WorkerAnswer, serde_json::Error> {
    let AnswerLine { id, result, error } = serde_json::from_slice(line)?;
    let result = match error {
        Some(error) => Err(HookError::Failed(super::head(error.as_bytes(), MAX_ERROR_CHARS))),
        None => result.result(),
    };
    Ok(WorkerAnswer { id, result })
}
