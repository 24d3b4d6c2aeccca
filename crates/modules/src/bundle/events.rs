//! Known events: those of the catalog, and those that a bundle declares.

use std::collections::BTreeSet;

use amplifier_core::{EventName, EventPattern, EventSpec, catalog};

use super::{BundleError, HookDefinition, LoadedBundle, MistakeCode, OneOrMany};
use crate::condition::{nearest_field, suggestion};

/// The events that hooks of a bundle can name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownEvents<'a> {
    /// Events of other programs.
    pub(crate) declared: &'a BTreeSet<String>,
}

impl KnownEvents<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        catalog().iter().map(|spec| spec.name).chain(self.declared.iter().map(String::as_str))
    }

    /// `true` if an event has this name.
    pub(crate) fn has(&self, name: &EventName) -> bool {
        self.names().any(|known| known == name.canonical())
    }

    /// Returns the message and the help for an event or a pattern that no known event has; `None` if one has, or if the name is invalid.
    pub(crate) fn mistake(&self, pattern: &str) -> Option<(String, String)> {
        let parsed = pattern.parse::<EventPattern>().ok()?;
        let help = "declare an event of another program in the bundle: `events: [NAME]`";
        if pattern.contains('*') {
            let matches = self.names().any(|known| parsed.matches(known));
            return (!matches).then(|| (format!("no known event matches `{pattern}`"), help.to_owned()));
        }
        let name = pattern.parse::<EventName>().ok().filter(|name| !self.has(name))?;
        let family = pattern.split(':').next().unwrap_or_default();
        let relatives: Vec<&str> =
            self.names().filter(|known| known.split(':').next() == Some(family)).take(6).collect();
        let help = match nearest_field(name.as_str(), self.names()) {
            Some(nearest) => suggestion(nearest),
            None if relatives.is_empty() => help.to_owned(),
            None => format!("known events are `{}`; {help}", relatives.join("`, `")),
        };
        Some((format!("unknown event `{pattern}`"), help))
    }

    /// Returns the events of the catalog that a pattern matches; `None` if it also matches events whose fields are unknown.
    pub(crate) fn specs(&self, pattern: &str) -> Option<Vec<&'static EventSpec>> {
        let parsed = pattern.parse::<EventPattern>().ok()?;
        let is_own = self.declared.iter().any(|declared| parsed.matches(declared));
        (!is_own).then(|| catalog().iter().filter(|spec| parsed.matches(spec.name)).collect())
    }
}

/// Returns the problem of a name under `events`.
pub(super) fn declaration_mistake(event: &str) -> Option<String> {
    match event.parse::<EventName>() {
        Err(error) => Some(error.to_string()),
        Ok(name) if name.spec().is_some() => Some(format!("`{event}` is a known event: remove it from `events`")),
        Ok(_) => None,
    }
}

impl LoadedBundle {
    pub(crate) fn known_events(&self) -> KnownEvents<'_> {
        KnownEvents { declared: &self.declared_events }
    }

    /// Returns the mistakes about events that nobody emits, of hooks.
    pub(super) fn unknown_events(&self) -> Vec<BundleError> {
        let known = self.known_events();
        let mistake = |definition: &HookDefinition, event: &str| {
            let (message, help) = known.mistake(event)?;
            Some(definition.problem_in("on", message).coded(MistakeCode::UnknownEvent).helped(Some(help)))
        };
        let on = |definition: &HookDefinition| -> Vec<BundleError> {
            let events = definition.entry.on.iter().flat_map(OneOrMany::all);
            events.filter_map(|event| mistake(definition, event)).collect()
        };
        let enabled = self.hooks.iter().filter(|definition| definition.entry.enabled != Some(false));
        enabled.flat_map(on).collect()
    }
}
