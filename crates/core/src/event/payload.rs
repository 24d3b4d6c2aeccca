//! Typed views of event data.

use serde_json::{Value, json};

use super::{EventData, Map};

/// A typed view of the data of an event.
///
/// Hooks exchange JSON; a payload gives typed access to it. It shares the data, so creating one copies nothing, and
/// fields that it does not name stay in the data.
///
/// A custom event can have a custom payload, for instance with serde if copies do not matter:
///
/// ```
/// use amplifier_core::{data, EventData, EventType, HookRegistry, InvalidPayload, Map, Payload};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct BuildDone { target: String, warnings: u32 }
///
/// impl Payload for BuildDone {
///     fn view(data: EventData) -> Result<Self, InvalidPayload> {
///         Ok(serde_json::from_value(data.into())?)
///     }
/// }
///
/// impl From<BuildDone> for EventData {
///     fn from(done: BuildDone) -> Self {
///         data! { "target": done.target, "warnings": done.warnings }
///     }
/// }
///
/// const BUILD_DONE: EventType<BuildDone> = EventType::new("build:done");
///
/// let hooks = HookRegistry::new();
/// hooks.on(BUILD_DONE, |event| println!("{} has {} warnings", event.target, event.warnings));
/// ```
pub trait Payload: Clone + Into<EventData> + Send + Sync + Sized + 'static {
    /// Creates the view, if all required fields are valid.
    ///
    /// # Errors
    /// If a required field is missing or of the wrong type; the error names the first one.
    fn view(data: EventData) -> Result<Self, InvalidPayload>;

    /// Creates a view of data that passed the check before and has not changed since.
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

/// Data that does not fit the payload type of a hook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPayload {
    /// A required field is missing.
    #[error("the data of `{event}` has no field `{field}`")]
    Missing {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field has another type than documented.
    #[error("the field `{field}` of `{event}` is not {expected}")]
    Mistyped {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
        /// The expected type, in words.
        expected: &'static str,
    },
    /// Another failure, for custom payloads.
    #[error("the data cannot be read: {0}")]
    Other(String),
}

impl From<serde_json::Error> for InvalidPayload {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// The documentation of one event.
#[derive(Debug)]
pub struct EventSpec {
    /// The canonical name.
    pub name: &'static str,
    /// The occasion of the event.
    pub when: &'static str,
    /// The fields, beside `session_id` and `timestamp`, which every event has.
    pub fields: &'static [FieldSpec],
    /// The actions that have an effect.
    pub effects: EventEffects,
}

/// The documentation of one field of an event's data.
#[derive(Debug)]
pub struct FieldSpec {
    /// The name.
    pub name: &'static str,
    /// `true` if every such event has the field.
    pub required: bool,
    /// The description.
    pub about: &'static str,
    pub(super) kind: fn() -> Value,
}

/// The actions of hooks that have an effect at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventEffects {
    /// All: a hook can deny the operation, change it, and request an approval.
    All,
    /// A hook can deny, change and inject, but not request an approval.
    NoApprovals,
    /// A hook can deny and change, but neither inject nor request an approval.
    DenyOrModify,
    /// The event has already happened: hooks can inject and show messages, but not deny or change.
    Observed,
}

impl EventEffects {
    pub(crate) fn can_inject(self) -> bool {
        self != Self::DenyOrModify
    }
}

impl EventSpec {
    /// Returns the JSON Schema of the event's data.
    pub fn schema(&self) -> Value {
        let field = |name: &str, about: &str, kind: Value| {
            let mut schema = kind;
            schema["description"] = about.trim().into();
            (name.to_owned(), schema)
        };
        let text = || json!({ "type": "string" });
        let common = [
            field("session_id", "The session of the event.", text()),
            field(
                "timestamp",
                "The time of the event: UTC, RFC 3339.",
                json!({ "type": "string", "format": "date-time" }),
            ),
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

/// Defines the known events: a constant, a payload view and an entry of the reference for each.
///
/// Fields before `optional` are required.
macro_rules! events {
    ($(
        $(#[doc = $when:literal])+
        $constant:ident = $name:literal, $effects:ident, $payload:ident {
            $( $(#[doc = $about:literal])+ $field:ident: $kind:ident, )*
            $( optional $( $(#[doc = $maybe_about:literal])+ $maybe:ident: $maybe_kind:ident, )+ )?
        }
    )+) => {
        $(
            #[doc = concat!("`", $name, "`: ")]
            $(#[doc = $when])+
            #[doc = concat!("\n\nAnswers that count: [`", stringify!($effects), "`](EventEffects::", stringify!($effects), ").")]
            pub const $constant: EventType<$payload> = EventType::new($name);

            #[doc = concat!("The data of [`", stringify!($constant), "`], `", $name, "`:")]
            $(#[doc = $when])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $payload(EventData);

            impl $payload {
                /// Creates the data of such an event, with the required fields.
                pub fn new($( $field: written!($kind) ),*) -> Self {
                    #[allow(unused_mut, reason = "an event may have no required field")]
                    let mut map = Map::new();
                    $( map.insert(stringify!($field).into(), value!($kind, $field)); )*
                    Self(map.into())
                }

                /// Adds an optional or custom field.
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
                    $( check::<$kind>($name, stringify!($field), &data)?; )*
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

            impl From<$payload> for DataChange {
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

        pub(crate) const CATALOG: &[EventSpec] = &[$(
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
                effects: EventEffects::$effects,
            },
        )+];
    };
}
pub(super) use events;
