//! Requests to hooks, and parsing of their answers.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use amplifier_core::{EventData, FlatAction, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::map::Entry;

use crate::condition::resolve_path;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The variable with the workspace, in the environment of every program of a hook.
pub(super) const WORKSPACE: &str = "AMPLIFIER_WORKSPACE";

/// Maximum size of a variable in bytes; more than the longest path.
const MAX_VARIABLE: usize = 16 * 1024;

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
    /// The workspace, absolute. Absent if the agent has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub workspace: Option<Cow<'a, str>>,
    /// The folder in which the agent's commands run, absolute. Relative paths in `data` begin there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub cwd: Option<Cow<'a, str>>,
    /// The file or folder of a call of `Read`, `Write`, `Edit`, `MultiEdit`, `Glob` or `Grep`, or of an artifact: absolute, without `..` and links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub path: Option<String>,
    /// The data of the event, as in `events.schema.json`.
    #[schemars(with = "Map")]
    pub data: &'a EventData,
}

impl<'a> HookRequest<'a> {
    /// Creates a request about an event of an agent with this workspace, if it has one.
    pub fn new(hook: &'a str, event: &'a str, data: &'a EventData, workspace: Option<&'a Path>) -> Self {
        let folder = workspace.map(Path::to_string_lossy);
        let path = workspace.and_then(|workspace| named_path(event, data, workspace));
        Self { protocol: PROTOCOL, id: None, hook, event, workspace: folder.clone(), cwd: folder, path, data }
    }

    /// Returns the environment variables of a program that is started for this request.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let of_data = |value: Option<&str>| value.map(str::to_owned);
        let variables = [
            (WORKSPACE, of_data(self.workspace.as_deref())),
            ("AMPLIFIER_SESSION", of_data(self.data.text("session_id"))),
            ("AMPLIFIER_EVENT", Some(self.event.to_owned())),
            ("AMPLIFIER_PATH", self.path.clone()),
        ];
        // The model must not be able to prevent the start of a program, with a zero byte or too much text in its environment.
        let is_valid = |value: &String| value.len() <= MAX_VARIABLE && !value.contains('\0');
        let value = |value: Option<String>| value.filter(is_valid).unwrap_or_default();
        variables.into_iter().map(|(name, given)| (name, value(given))).collect()
    }

    /// Returns the request in one line, without the line break.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, HookError> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// Returns the path that the data names, absolute and resolved. The paths of other tools may mean anything.
fn named_path(event: &str, data: &EventData, workspace: &Path) -> Option<String> {
    let fields: &[&str] = match data.text("tool_name") {
        Some("Read" | "Write" | "Edit" | "MultiEdit") => &["/tool_input/file_path"],
        Some("Glob" | "Grep") => &["/tool_input/path"],
        None if event.starts_with("artifact:") => &["/path"],
        _ => &[],
    };
    let named = fields.iter().find_map(|field| data.text_at(field))?;
    // The tools refuse a path that cannot be resolved, such as a cycle of links.
    let resolved = resolve_path(workspace, named).ok()?;
    Some(resolved.to_string_lossy().into_owned())
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
