//! Constants for the names of all known events: those of the kernel's catalog, and those of Amplifier.

use amplifier_core::catalog;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::registry::HookRegistry;

/// The constant of the registry that is an alias. Events of both names are the same.
const WRITTEN_AS_ALIAS: (&str, &str) = ("CONTEXT_PRE_COMPACT", "context:pre-compact");

/// Aliases with their own constants.
const ALIASES: [&str; 3] = ["execution:end", "tool:error", "provider:error"];

/// Events that modules of Amplifier emit. They have no meaning for the kernel.
const OF_AMPLIFIER: [&str; 10] = [
    "plan:start",
    "plan:end",
    "llm:request",
    "llm:response",
    "provider:resolve",
    "provider:tool_sequence_repaired",
    "context:include",
    "context:compaction",
    "module:load_failed",
    "module:on_session_ready_failed",
];

/// Returns the names of all events with a constant, without aliases.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    catalog().iter().map(|spec| spec.name).chain(OF_AMPLIFIER)
}

/// Returns the name of a constant: `TOOL_PRE` for `tool:pre`.
fn constant(event: &str) -> String {
    event.replace(':', "_").to_uppercase()
}

/// Adds the constants to the module and, as class attributes, to the registry.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let registry = py.get_type::<HookRegistry>();
    let constants = PyDict::new(py);
    for event in names().chain(ALIASES) {
        constants.set_item(constant(event), event)?;
        registry.setattr(constant(event).as_str(), event)?;
    }
    registry.setattr(WRITTEN_AS_ALIAS.0, WRITTEN_AS_ALIAS.1)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("EVENTS", constants)?;
    module.add("ALL_EVENTS", PyList::new(py, names().collect::<Vec<_>>())?)
}
