//! Typed views of event data.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{EventData, Map};

/// A typed view of the data of an event.
///
/// JSON is what travels and what hooks change; a payload reads it with names and types. It shares the data, so making
/// one copies nothing, and fields that the view does not name are kept.
pub trait Payload: Clone + Into<EventData> + Send + Sync + Sized + 'static {
    /// Views the data, if the fields that the payload cannot do without are there.
    ///
    /// # Errors
    /// Names the first field that is missing or of the wrong type.
    fn view(data: EventData) -> Result<Self, InvalidPayload>;

    /// Views data that was viewed so before and has not changed since.
    #[doc(hidden)]
    fn view_checked(data: EventData) -> Result<Self, InvalidPayload> {
        Self::view(data)
    }
}

impl Payload for EventData {
    fn view(data: EventData) -> Result<Self, InvalidPayload> {
        Ok(data)
    }
}

/// Data that cannot be viewed as the payload that a hook asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    /// A field that the payload cannot do without.
    #[error("the data of `{event}` has no field `{field}`")]
    Missing {
        /// The event whose data was read.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field of another type than documented.
    #[error("the field `{field}` of `{event}` is not {expected}")]
    Mistyped {
        /// The event whose data was read.
        event: &'static str,
        /// The field.
        field: &'static str,
        /// What it should be, in words.
        expected: &'static str,
    },
}

/// What is documented about one event: when it happens, what it carries, and what an answer means there.
#[derive(Debug)]
pub struct EventSpec {
    /// The canonical name.
    pub name: &'static str,
    /// When it is emitted.
    pub when: &'static str,
    /// What it carries, beside `session_id` and `timestamp`, which every event has.
    pub fields: &'static [FieldSpec],
    /// Which answers of hooks have an effect.
    pub answers: Answers,
}

/// One documented field of an event's data.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name.
    pub name: &'static str,
    /// Whether every such event carries it.
    pub required: bool,
    /// What it holds.
    pub about: &'static str,
    pub(super) kind: fn() -> Value,
}

/// Which answers of hooks have an effect at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// All of them: a hook can block the operation, change it, and ask a person.
    All,
    /// A hook can block and change, but nobody is asked.
    NoQuestions,
    /// What happened, happened: hooks see it, may inject and show messages, but block and change nothing.
    Observed,
}

impl EventSpec {
    /// The JSON Schema of the event's data.
    pub fn schema(&self) -> Value {
        let field = |name: &str, about: &str, kind: Value| {
            let mut schema = kind;
            schema["description"] = about.trim().into();
            (name.to_owned(), schema)
        };
        let text = || json!({ "type": "string" });
        let common = [
            field("session_id", "The session this event belongs to.", text()),
            field("timestamp", "When it happened: UTC, RFC 3339.", json!({ "type": "string", "format": "date-time" })),
        ];
        let own = self.fields.iter().map(|spec| field(spec.name, spec.about, (spec.kind)()));
        let properties: Map = common.into_iter().chain(own).collect();
        let required: Vec<_> = self.fields.iter().filter(|spec| spec.required).map(|spec| spec.name).collect();
        json!({
            "title": self.name,
            "description": self.when.trim(),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": true,
        })
    }
}

/// A type of field: how it is written, read and described.
pub(super) trait Kind {
    type Read<'a>;
    const IN_WORDS: &'static str;

    fn read(value: &Value) -> Option<Self::Read<'_>>;
    /// What a view shows for a field that is not there. Views are checked when made, so it is seldom seen.
    fn absent<'a>() -> Self::Read<'a>;
    fn schema() -> Value;
}

pub(super) struct Text;
pub(super) struct Object;
pub(super) struct Any;
pub(super) struct Integer;
pub(super) struct Flag;
pub(super) struct Texts;

impl Kind for Text {
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

impl Kind for Object {
    type Read<'a> = &'a Map;
    const IN_WORDS: &'static str = "an object";

    fn read(value: &Value) -> Option<&Map> {
        value.as_object()
    }

    fn absent<'a>() -> &'a Map {
        static EMPTY: LazyLock<Map> = LazyLock::new(Map::new);
        &EMPTY
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }
}

impl Kind for Any {
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

impl Kind for Integer {
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

impl Kind for Flag {
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

impl Kind for Texts {
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

/// Checks one field when a view is made.
pub(super) fn check<K: Kind>(
    event: &'static str,
    field: &'static str,
    required: bool,
    data: &EventData,
) -> Result<(), InvalidPayload> {
    match data.get(field) {
        None | Some(Value::Null) if !required => Ok(()),
        None => Err(InvalidPayload::Missing { event, field }),
        Some(value) if K::read(value).is_some() => Ok(()),
        Some(_) => Err(InvalidPayload::Mistyped { event, field, expected: K::IN_WORDS }),
    }
}

/// The type by which a field of that kind is read.
macro_rules! read {
    (Text) => { &str };
    (Object) => { &Map };
    (Any) => { &Value };
    (Integer) => { u64 };
    (Flag) => { bool };
    (Texts) => { Vec<&str> };
}
pub(super) use read;

/// What a constructor takes for a field of that kind.
macro_rules! written {
    (Text) => { impl Into<String> };
    (Object) => { impl Into<Map> };
    (Any) => { impl Into<Value> };
    (Integer) => { u64 };
    (Flag) => { bool };
    (Texts) => { impl IntoIterator<Item = impl Into<String>> };
}
pub(super) use written;

/// What a constructor makes of it.
macro_rules! value {
    (Text, $value:ident) => {
        Value::String($value.into())
    };
    (Object, $value:ident) => {
        Value::Object($value.into())
    };
    (Any, $value:ident) => {
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

/// Defines the known events: a constant, a payload view and an entry of the reference for each.
///
/// Fields before `optional` are in every such event; those after it may be missing.
macro_rules! events {
    ($(
        $(#[doc = $when:literal])+
        $constant:ident = $name:literal, $answers:ident, $payload:ident {
            $( $(#[doc = $about:literal])+ $field:ident: $kind:ident, )*
            $( optional $( $(#[doc = $maybe_about:literal])+ $maybe:ident: $maybe_kind:ident, )+ )?
        }
    )+) => {
        $(
            #[doc = concat!("`", $name, "`: ")]
            $(#[doc = $when])+
            pub const $constant: EventType<$payload> = EventType::new($name);

            #[doc = concat!("The data of [`", stringify!($constant), "`], `", $name, "`:")]
            $(#[doc = $when])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $payload(EventData);

            impl $payload {
                /// The data of such an event, with the fields that it cannot do without.
                pub fn new($( $field: written!($kind) ),*) -> Self {
                    #[allow(unused_mut, reason = "an event may have no required field")]
                    let mut map = Map::new();
                    $( map.insert(stringify!($field).into(), value!($kind, $field)); )*
                    Self(map.into())
                }

                /// Adds an optional field, or one of your own.
                #[must_use]
                pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
                    self.0.insert(field, value);
                    self
                }

                $(
                    $(#[doc = $about])+
                    pub fn $field(&self) -> read!($kind) {
                        self.0.get(stringify!($field)).and_then($kind::read).unwrap_or_else($kind::absent)
                    }
                )*
                $($(
                    $(#[doc = $maybe_about])+
                    pub fn $maybe(&self) -> Option<read!($maybe_kind)> {
                        self.0.get(stringify!($maybe)).and_then($maybe_kind::read)
                    }
                )+)?
            }

            impl Payload for $payload {
                fn view(data: EventData) -> Result<Self, InvalidPayload> {
                    $( check::<$kind>($name, stringify!($field), true, &data)?; )*
                    $($( check::<$maybe_kind>($name, stringify!($maybe), false, &data)?; )+)?
                    Ok(Self(data))
                }

                fn view_checked(data: EventData) -> Result<Self, InvalidPayload> {
                    Ok(Self(data))
                }
            }

            impl From<$payload> for EventData {
                fn from(payload: $payload) -> Self {
                    payload.0
                }
            }

            impl From<$payload> for Change {
                fn from(payload: $payload) -> Self {
                    payload.0.into()
                }
            }

            impl Deref for $payload {
                type Target = EventData;

                fn deref(&self) -> &EventData {
                    &self.0
                }
            }
        )+

        static CATALOG: &[EventSpec] = &[$(
            EventSpec {
                name: $name,
                when: concat!($($when),+),
                fields: &[
                    $( FieldSpec {
                        name: stringify!($field),
                        required: true,
                        about: concat!($($about),+),
                        kind: $kind::schema,
                    }, )*
                    $($( FieldSpec {
                        name: stringify!($maybe),
                        required: false,
                        about: concat!($($maybe_about),+),
                        kind: $maybe_kind::schema,
                    }, )+)?
                ],
                answers: Answers::$answers,
            },
        )+];
    };
}
pub(super) use events;
