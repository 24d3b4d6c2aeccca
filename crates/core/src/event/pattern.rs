//! Patterns for event names.

use std::fmt;
use std::str::FromStr;

use super::name::{EventName, InvalidEventName, aliases_of, check, intern};
use crate::wildcard;

/// An event name, or a pattern in which `*` stands for any text: `tool:*`. It also matches the aliases of an event.
///
/// ```
/// use amplifier_core::EventPattern;
///
/// let pattern: EventPattern = "tool:*".parse()?;
/// assert!(pattern.matches("tool:pre"));
/// // An alias of `tool:error`.
/// assert!(pattern.matches("error:tool"));
/// assert!(!pattern.matches("prompt:submit"));
/// // No other character is a wildcard.
/// assert!(!"tool:{pre,post}".parse::<EventPattern>()?.matches("tool:pre"));
/// assert!(EventPattern::filter("tool:{pre,post}").is_err());
/// # Ok::<(), amplifier_core::InvalidEventName>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EventPattern(EventName);

impl EventPattern {
    /// Parses the pattern of a filter for recorded events.
    ///
    /// # Errors
    /// If the pattern is invalid, or has a character that is a wildcard in other programs and would match nothing here.
    pub fn filter(pattern: &str) -> Result<Self, InvalidEventName> {
        let problem = "the only wildcard of a filter is `*`, which stands for any text";
        match pattern.contains(['?', '[', ']', '{', '}', '\\']) {
            true => Err(InvalidEventName::new(pattern, problem)),
            false => pattern.parse(),
        }
    }

    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the only matching name, up to aliases; `None` if the pattern has a `*`.
    pub fn as_name(&self) -> Option<&EventName> {
        (!self.as_str().contains('*')).then_some(&self.0)
    }

    /// Returns `true` if the event or one of its aliases matches.
    pub fn matches(&self, event: &str) -> bool {
        self.matching_alias(event).is_some() || wildcard::matches(self.as_str(), event)
    }

    pub(crate) fn matching_name(&self, event: &EventName) -> Option<EventName> {
        if wildcard::matches(self.as_str(), event.as_str()) {
            return Some(event.clone());
        }
        self.matching_alias(event.as_str()).map(EventName::known)
    }

    fn matching_alias(&self, event: &str) -> Option<&'static str> {
        aliases_of(event)?.iter().copied().find(|alias| wildcard::matches(self.as_str(), alias))
    }
}

impl FromStr for EventPattern {
    type Err = InvalidEventName;

    fn from_str(pattern: &str) -> Result<Self, Self::Err> {
        check(pattern, true)?;
        Ok(Self(intern(pattern)))
    }
}

impl From<EventName> for EventPattern {
    fn from(name: EventName) -> Self {
        Self(name)
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
