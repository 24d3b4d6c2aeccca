//! The reference of the known events.

use super::events::CATALOG;
use super::{Answers, EventName, EventSpec};

/// The reference of all known events, in the order of an agent's life.
///
/// ```
/// let spec = amplifier_core::catalog().iter().find(|spec| spec.name == "tool:post").unwrap();
/// assert!(spec.fields.iter().any(|field| field.name == "duration_ms" && field.required));
/// ```
pub fn catalog() -> &'static [EventSpec] {
    CATALOG
}

impl EventName {
    /// Which answers of hooks have an effect at this event. At events that a module defines, all have.
    pub fn answers(&self) -> Answers {
        let canonical = self.canonical();
        catalog().iter().find(|spec| spec.name == canonical).map_or(Answers::All, |spec| spec.answers)
    }
}
