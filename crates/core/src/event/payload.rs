//! Typed views of event data.

use serde_json::{Value, json};

use super::{EventData, Map};

/// A typed view of the data of an event.
///
/// JSON is what travels and what hooks change; a payload reads it with names and types. It shares the data, so making
/// one copies nothing, and fields that the view does not name are kept.
///
/// An event of your own can have a payload of your own. Where copying does not matter, serde will do:
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
#[non_exhaustive]
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
    /// Something else, for payloads of your own.
    #[error("the data cannot be read: {0}")]
    Other(String),
}

impl From<serde_json::Error> for InvalidPayload {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.to_string())
    }
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
    pub effects: EventEffects,
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
pub enum EventEffects {
    /// All of them: a hook can block the operation, change it, and ask a person.
    All,
    /// A hook can block, change and inject, but nobody is asked.
    NoApprovals,
    /// A hook can block and change. Nobody is asked, and nothing is injected.
    DenyOrModify,
    /// What happened, happened: hooks see it, may inject and show messages, but block and change nothing.
    Observed,
}

impl EventEffects {
    /// `true` if an injection at the event reaches the conversation.
    pub(crate) fn can_inject(self) -> bool {
        self != Self::DenyOrModify
    }
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

/// Defines the known events: a constant, a payload view and an entry of the reference for each.
///
/// Fields before `optional` are in every such event; those after it may be missing.
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
