//! Event names, their aliases, and the keys for registering and emitting.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::events::CATALOG;
use super::{EventData, EventPattern, Payload, catalog};

const LONGEST: usize = 128;

/// Names of the same event, the canonical one first.
const ALIASES: [[&str; 2]; 4] = [
    ["context:pre_compact", "context:pre-compact"],
    ["execution:complete", "execution:end"],
    ["error:tool", "tool:error"],
    ["error:provider", "provider:error"],
];

/// The name of an event: two words joined by one colon, such as `tool:pre`.
///
/// ```
/// use amplifier_core::EventName;
///
/// let name: EventName = "my-module:thing_happened".parse()?;
/// assert_eq!(name, "my-module:thing_happened");
/// assert!("no colon".parse::<EventName>().is_err());
/// # Ok::<(), amplifier_core::InvalidEventName>(())
/// ```
#[derive(Clone)]
pub struct EventName(NameText);

#[derive(Clone)]
enum NameText {
    Known(&'static str),
    Custom(Arc<str>),
}

impl EventName {
    pub(crate) const fn known(name: &'static str) -> Self {
        Self(NameText::Known(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            NameText::Known(name) => name,
            NameText::Custom(name) => name,
        }
    }

    /// Returns the canonical name of the event and its aliases.
    ///
    /// ```
    /// # use amplifier_core::EventName;
    /// let name: EventName = "tool:error".parse()?;
    /// assert_eq!(name.canonical(), "error:tool");
    /// # Ok::<(), amplifier_core::InvalidEventName>(())
    /// ```
    pub fn canonical(&self) -> &str {
        let name = self.as_str();
        aliases_of(name).map_or(name, |names| names[0])
    }
}

pub(super) fn aliases_of(name: &str) -> Option<&'static [&'static str; 2]> {
    ALIASES.iter().find(|names| names.contains(&name))
}

/// An invalid event name or pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid event name `{name}`: {problem}; expected the form `tool:pre`")]
pub struct InvalidEventName {
    name: String,
    problem: &'static str,
}

pub(super) fn check(name: &str, stars: bool) -> Result<(), InvalidEventName> {
    let problem = if name.len() > LONGEST {
        "longer than 128 bytes"
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "contains a space or a control character"
    } else if name.contains('*') && !stars {
        "only hooks are registered by pattern, an event has one name"
    } else if stars && name == "*" {
        return Ok(());
    } else {
        match name.split_once(':') {
            None => "no colon",
            Some((_, rest)) if rest.contains(':') => "more than one colon",
            Some(("", _) | (_, "")) => "one side of the colon is empty",
            Some(_) => return Ok(()),
        }
    };
    Err(InvalidEventName::new(name, problem))
}

impl InvalidEventName {
    pub(super) fn new(name: &str, problem: &'static str) -> Self {
        Self { name: name.chars().take(LONGEST).collect(), problem }
    }
}

/// [`check`] for constants: printable ASCII without `*`, one colon, neither side empty.
const fn is_plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (mut at, mut colons) = (0, 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_graphic() || bytes[at] == b'*' {
            return false;
        }
        if bytes[at] == b':' {
            colons += 1;
            if at == 0 || at + 1 == bytes.len() {
                return false;
            }
        }
        at += 1;
    }
    colons == 1 && bytes.len() <= LONGEST
}

const fn catalog_index_of(name: &str) -> Option<usize> {
    let mut catalog_index = 0;
    while catalog_index < CATALOG.len() {
        if is_same(CATALOG[catalog_index].name.as_bytes(), name.as_bytes()) {
            return Some(catalog_index);
        }
        catalog_index += 1;
    }
    None
}

// `==` of strings is not `const`.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

impl std::str::FromStr for EventName {
    type Err = InvalidEventName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        check(name, false)?;
        Ok(intern(name))
    }
}

/// Returns the name, without an allocation if it is a known one.
pub(super) fn intern(name: &str) -> EventName {
    let known = catalog().iter().map(|spec| spec.name).chain(ALIASES.into_iter().flatten());
    EventName(match known.into_iter().find(|known| *known == name) {
        Some(known) => NameText::Known(known),
        None => NameText::Custom(name.into()),
    })
}

impl Borrow<str> for EventName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for EventName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // `Borrow<str>` asks for the hash of the text.
        self.as_str().hash(state);
    }
}

impl PartialEq for EventName {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.as_str(), other.as_str());
        // Most names are clones, which share their text.
        std::ptr::eq(one, other) || one == other
    }
}

impl Eq for EventName {}

impl PartialEq<str> for EventName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for EventName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A typed event name: a constant with the type of the event's data.
///
/// The constants of all known events are at the top of this crate: [`TOOL_PRE`](crate::TOOL_PRE) and so on.
/// A module can define constants for its own events, with a payload view or with plain [`EventData`].
pub struct EventType<P> {
    name: &'static str,
    catalog_index: Option<usize>,
    payload: PhantomData<fn() -> P>,
}

impl<P> Clone for EventType<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for EventType<P> {}

impl<P> EventType<P> {
    /// Creates the constant for a custom event. In a `const`, an invalid name does not compile.
    ///
    /// ```
    /// use amplifier_core::{EventData, EventType};
    ///
    /// const BUILD_DONE: EventType<EventData> = EventType::new("build:done");
    /// ```
    ///
    /// ```compile_fail
    /// # use amplifier_core::{EventData, EventType};
    /// const BUILD_DONE: EventType<EventData> = EventType::new("build done");
    /// ```
    ///
    /// # Panics
    /// If the name is invalid and the constant is made at run time.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_plain(name), "an event name is two words joined by one colon, like `tool:pre`");
        Self { name, catalog_index: catalog_index_of(name), payload: PhantomData }
    }

    /// Returns the name as text.
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// Returns the name.
    pub const fn name(self) -> EventName {
        EventName::known(self.name)
    }
}

impl<P> fmt::Display for EventType<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<P> fmt::Debug for EventType<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

/// A key for registering and emitting: a typed constant, a parsed [`EventName`], or text.
///
/// A constant is always valid, so methods called with it return their value directly. Text may be invalid, so the same
/// methods called with text return a `Result`: see [`EventKey::Checked`].
pub trait EventKey: Send + Sync {
    /// The view of the data for closure hooks.
    type Payload: Payload;
    /// `T` for keys that are always valid, `Result<T, InvalidEventName>` for text.
    type Checked<T>;
    /// The error of [`event_name`](EventKey::event_name).
    type Error: Into<InvalidEventName> + Send;

    /// Returns the name as text.
    fn event_text(&self) -> &str;
    /// Returns the event's index in the [`catalog`], if the key stores it.
    #[doc(hidden)]
    fn catalog_index(&self) -> Option<usize> {
        None
    }
    /// Returns the name, if it is valid.
    fn event_name(&self) -> Result<EventName, Self::Error>;
    /// Returns the pattern, if it is valid.
    #[doc(hidden)]
    fn event_pattern(&self) -> Result<EventPattern, Self::Error>;
    /// Wraps a value for callers with this kind of key.
    fn valid<T>(value: T) -> Self::Checked<T>;
    /// Wraps an error for callers with this kind of key.
    fn invalid<T>(error: Self::Error) -> Self::Checked<T>;
    /// Wraps a result for callers with this kind of key.
    fn checked<T>(result: Result<T, Self::Error>) -> Self::Checked<T> {
        match result {
            Ok(value) => Self::valid(value),
            Err(error) => Self::invalid(error),
        }
    }
}

impl From<Infallible> for InvalidEventName {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl<P: Payload> EventKey for EventType<P> {
    type Payload = P;
    type Checked<T> = T;
    type Error = Infallible;

    fn event_text(&self) -> &str {
        self.name
    }

    #[inline(always)]
    fn catalog_index(&self) -> Option<usize> {
        self.catalog_index
    }

    fn event_name(&self) -> Result<EventName, Infallible> {
        Ok(EventName::known(self.name))
    }

    fn event_pattern(&self) -> Result<EventPattern, Infallible> {
        self.event_name().map(EventPattern::from)
    }

    #[inline(always)]
    fn valid<T>(value: T) -> T {
        value
    }

    fn invalid<T>(never: Infallible) -> T {
        match never {}
    }
}

/// Implements the keys that are parsed names, and those that are text.
macro_rules! keys {
    (names: $($name:ty),+; texts: $($text:ty),+) => {
        $(impl EventKey for $name {
            type Payload = EventData;
            type Checked<T> = T;
            type Error = Infallible;

            fn event_text(&self) -> &str {
                self.as_str()
            }

            fn event_name(&self) -> Result<EventName, Infallible> {
                Ok(Clone::clone(self).into())
            }

            fn event_pattern(&self) -> Result<EventPattern, Infallible> {
                self.event_name().map(EventPattern::from)
            }

            #[inline(always)]
            fn valid<T>(value: T) -> T {
                value
            }

            fn invalid<T>(never: Infallible) -> T {
                match never {}
            }
        })+
        $(impl EventKey for $text {
            type Payload = EventData;
            type Checked<T> = Result<T, InvalidEventName>;
            type Error = InvalidEventName;

            fn event_text(&self) -> &str {
                self
            }

            fn event_name(&self) -> Result<EventName, InvalidEventName> {
                str::parse(self)
            }

            fn event_pattern(&self) -> Result<EventPattern, InvalidEventName> {
                str::parse(self)
            }

            fn valid<T>(value: T) -> Result<T, InvalidEventName> {
                Ok(value)
            }

            fn invalid<T>(error: InvalidEventName) -> Result<T, InvalidEventName> {
                Err(error)
            }
        })+
    };
}

keys! { names: EventName, &EventName; texts: &str, String, &String }

impl From<&EventName> for EventName {
    fn from(name: &EventName) -> Self {
        name.clone()
    }
}
