//! JSON Pointers into an event's data.

use std::fmt;

use amplifier_core::HookError;
use serde_json::{Map, Value};

use super::error::RuleError;

/// Maximum depth of a pointer, so that data created by it stays readable JSON.
const MAX_DEPTH: usize = 32;

/// A JSON Pointer (RFC 6901) into an event's data.
#[derive(Debug)]
pub(super) struct Pointer {
    pub(super) field: String,
    pub(super) path: Vec<String>,
}

impl Pointer {
    pub(super) fn new(option: &str, pointer: &str) -> Result<Self, RuleError> {
        let parts = pointer.strip_prefix('/').map(|rest| rest.split('/').map(unescape));
        let Some(mut parts) = parts else {
            return Err(RuleError::field(option, format!("has the invalid pointer `{pointer}`: begin with `/`")));
        };
        let field = parts.next().unwrap_or_default();
        let path: Vec<_> = parts.collect();
        if path.len() > MAX_DEPTH {
            return Err(RuleError::field(option, format!("points deeper than {MAX_DEPTH} levels")));
        }
        if matches!(field.as_str(), "" | "session_id" | "timestamp") {
            return Err(RuleError::field(option, format!("cannot change `{pointer}`")));
        }
        Ok(Self { field, path })
    }

    /// Returns the value at this position, creating objects on the way.
    pub(super) fn make<'a>(&self, mut value: &'a mut Value) -> Result<&'a mut Value, HookError> {
        for part in &self.path {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            value = match value {
                Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
                Value::Array(items) => {
                    let at = if part == "-" { Some(items.len()) } else { index(part) };
                    if part == "-" {
                        items.push(Value::Null);
                    }
                    at.and_then(|at| items.get_mut(at)).ok_or_else(|| self.unreachable_error())?
                }
                _ => return Err(self.unreachable_error()),
            };
        }
        Ok(value)
    }

    pub(super) fn find<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.path.iter().try_fold(value, |value, part| child(value, part))
    }

    pub(super) fn remove(&self, slot: &mut Option<Value>) {
        let Some((last, path)) = self.path.split_last() else {
            *slot = None;
            return;
        };
        let parent = slot.as_mut().and_then(|value| path.iter().try_fold(value, |value, part| child(value, part)));
        match parent {
            Some(Value::Object(fields)) => drop(fields.remove(last)),
            Some(Value::Array(items)) => {
                if let Some(at) = index(last).filter(|at| *at < items.len()) {
                    items.remove(at);
                }
            }
            _ => {}
        }
    }

    fn unreachable_error(&self) -> HookError {
        HookError::failed(format!("invalid position `{self}` in the event's data: a value on the way is not an object"))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.field)?;
        self.path.iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

fn child<'a>(value: &'a mut Value, part: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(part),
        Value::Array(items) => items.get_mut(index(part)?),
        _ => None,
    }
}

fn index(part: &str) -> Option<usize> {
    let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    if plain { part.parse().ok() } else { None }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
