//! The kinds of payload fields, with their reading, writing, checks and schema.

use serde_json::{Value, json};

use super::{EventData, InvalidPayload};

pub(super) trait FieldKind {
    type Read<'a>;
    const IN_WORDS: &'static str;

    fn read(value: &Value) -> Option<Self::Read<'_>>;
    /// Returns the value for a missing field. Views are checked when made, so it is rarely used.
    fn absent<'a>() -> Self::Read<'a>;
    fn schema() -> Value;
}

pub(super) struct Text;
pub(super) struct Object;
pub(super) struct AnyValue;
pub(super) struct Integer;
pub(super) struct Flag;
pub(super) struct Texts;

impl FieldKind for Text {
    type Read<'a> = &'a str;
    const IN_WORDS: &'static str = "text";

    fn read(value: &Value) -> Option<&str> {
        value.as_str()
    }

    fn absent<'a>() -> &'a str {
        ""
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl FieldKind for Object {
    type Read<'a> = &'a Value;
    const IN_WORDS: &'static str = "an object";

    // As a value, not as a map: indexing a missing field of a value gives `null`, of a map it panics.
    fn read(value: &Value) -> Option<&Value> {
        value.is_object().then_some(value)
    }

    fn absent<'a>() -> &'a Value {
        &Value::Null
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }
}

impl FieldKind for AnyValue {
    type Read<'a> = &'a Value;
    const IN_WORDS: &'static str = "a value";

    fn read(value: &Value) -> Option<&Value> {
        Some(value)
    }

    fn absent<'a>() -> &'a Value {
        &Value::Null
    }

    fn schema() -> Value {
        json!({})
    }
}

impl FieldKind for Integer {
    type Read<'a> = u64;
    const IN_WORDS: &'static str = "a whole number";

    fn read(value: &Value) -> Option<u64> {
        value.as_u64()
    }

    fn absent<'a>() -> Self::Read<'a> {
        0
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl FieldKind for Flag {
    type Read<'a> = bool;
    const IN_WORDS: &'static str = "true or false";

    fn read(value: &Value) -> Option<bool> {
        value.as_bool()
    }

    fn absent<'a>() -> Self::Read<'a> {
        false
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl FieldKind for Texts {
    type Read<'a> = Vec<&'a str>;
    const IN_WORDS: &'static str = "a list of texts";

    fn read(value: &Value) -> Option<Vec<&str>> {
        value.as_array()?.iter().map(Value::as_str).collect()
    }

    fn absent<'a>() -> Vec<&'a str> {
        Vec::new()
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": { "type": "string" } })
    }
}

/// Checks one required field. An optional field of another type counts as missing.
pub(super) fn check<K: FieldKind>(
    event: &'static str,
    field: &'static str,
    data: &EventData,
) -> Result<(), InvalidPayload> {
    match data.get(field) {
        None => Err(InvalidPayload::Missing { event, field }),
        Some(value) if K::read(value).is_some() => Ok(()),
        Some(_) => Err(InvalidPayload::Mistyped { event, field, expected: K::IN_WORDS }),
    }
}

macro_rules! read {
    (Text) => { &str };
    (Object) => { &Value };
    (AnyValue) => { &Value };
    (Integer) => { u64 };
    (Flag) => { bool };
    (Texts) => { Vec<&str> };
}
pub(super) use read;

macro_rules! written {
    (Text) => { impl Into<String> };
    (Object) => { impl Into<Value> };
    (AnyValue) => { impl Into<Value> };
    (Integer) => { u64 };
    (Flag) => { bool };
    (Texts) => { impl IntoIterator<Item = impl Into<String>> };
}
pub(super) use written;

macro_rules! value {
    (Text, $value:ident) => {
        Value::String($value.into())
    };
    (Object, $value:ident) => {
        $value.into()
    };
    (AnyValue, $value:ident) => {
        $value.into()
    };
    (Integer, $value:ident) => {
        Value::from($value)
    };
    (Flag, $value:ident) => {
        Value::Bool($value)
    };
    (Texts, $value:ident) => {
        $value.into_iter().map(|text| Value::String(text.into())).collect()
    };
}
pub(super) use value;
