//! Which events patterns hear.

use amplifier_core::{HookRegistry, InvalidEventName};

/// Patterns for events, as hooks are registered under.
pub(crate) struct Patterns {
    /// A registry in which nothing happens: it knows which patterns hear an event, aliases included.
    hooks: HookRegistry,
}

impl Patterns {
    /// These patterns.
    ///
    /// # Errors
    /// If one of them is none.
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = &'a String>) -> Result<Self, InvalidEventName> {
        let hooks = HookRegistry::new();
        for pattern in patterns {
            hooks.hook(pattern.as_str()).run(|_| ())?;
        }
        Ok(Self { hooks })
    }

    /// Whether one of them hears an event, by whatever name.
    pub(crate) fn hears(&self, event: &str) -> bool {
        self.hooks.list_handlers_of(event).is_ok_and(|hooks| !hooks.is_empty())
    }
}
