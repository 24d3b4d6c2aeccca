//! The reference of all known events.

use super::events::CATALOG;
use super::{EventEffects, EventName, EventSpec};
use crate::wildcard;

/// Returns the reference of all known events, in the order of an agent's lifecycle.
///
/// ```
/// let spec = amplifier_core::catalog().iter().find(|spec| spec.name == "tool:post").unwrap();
/// assert!(spec.fields.iter().any(|field| field.name == "duration_ms" && field.required));
/// ```
pub fn catalog() -> &'static [EventSpec] {
    CATALOG
}

impl EventName {
    /// Returns the reference of the event; `None` if a module defines it.
    pub fn spec(&self) -> Option<&'static EventSpec> {
        let canonical = self.canonical();
        catalog().iter().find(|spec| spec.name == canonical)
    }

    /// Returns the actions that have an effect at this event; all of them at events that a module defines.
    pub fn effects(&self) -> EventEffects {
        self.spec().map_or(EventEffects::All, |spec| spec.effects)
    }

    /// Returns `true` if an operation waits for the hooks of this event: `session:start`, `prompt:submit`, `provider:request`,
    /// `decision:*_resolution`, `tool:pre` and `agent:spawn`. There, a failing hook of a bundle denies by default.
    pub fn is_gating(&self) -> bool {
        let name = self.as_str();
        matches!(name, "session:start" | "prompt:submit" | "provider:request" | "tool:pre" | "agent:spawn")
            || wildcard::matches("decision:*_resolution", name)
    }
}
