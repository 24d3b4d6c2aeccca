//! What goes to Python's `logging`.

use amplifier_core::HookError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

const LOGGER: &str = "amplifier_core.hooks";

/// Where failures of a session's parts go.
const COORDINATOR: &str = "amplifier_core.coordinator";

/// Where what concerns tools goes.
const SESSION: &str = "amplifier_core.session";

/// Where the kernel's own warnings and errors go.
const KERNEL: &str = "amplifier_core";

/// A hook failed: with the traceback, the hook's name and the event. Never with the event's data.
pub(crate) fn failed(py: Python<'_>, hook: &str, event: &str, error: &HookError, cause: Option<&PyErr>) {
    let log = || -> PyResult<()> {
        let options = with_traceback(py, cause)?;
        let extra = PyDict::new(py);
        extra.set_item("hook", hook)?;
        extra.set_item("event", event)?;
        options.set_item("extra", extra)?;
        let text = "Hook '%s' failed on event '%s': %s";
        logger(py, LOGGER)?.call_method("error", (text, hook, event, error.to_string()), Some(&options))?;
        Ok(())
    };
    report(py, log());
}

/// A part of a session failed, as the kernel calls it: with the traceback, if there is one.
pub(crate) fn part_failed(py: Python<'_>, part: &str, error: &HookError, cause: Option<&PyErr>) {
    let log = || -> PyResult<()> {
        let options = with_traceback(py, cause)?;
        let text = "A part of the session failed, its %s: %s";
        logger(py, COORDINATOR)?.call_method("error", (text, part, error.to_string()), Some(&options))?;
        Ok(())
    };
    report(py, log());
}

/// A contributor of a channel failed.
pub(crate) fn contributor_failed(py: Python<'_>, channel: &str, name: &str, error: &HookError, cause: &PyErr) {
    let log = || -> PyResult<()> {
        let options = with_traceback(py, Some(cause))?;
        let text = "Contributor '%s' of channel '%s' failed: %s";
        logger(py, COORDINATOR)?.call_method("warning", (text, name, channel, error.to_string()), Some(&options))?;
        Ok(())
    };
    report(py, log());
}

/// A tool raised an exception, which the model reads: the traceback is for whoever writes the tool.
pub(crate) fn tool_raised(py: Python<'_>, tool: &str, cause: &PyErr) {
    if is_loaded(py) {
        let log = || -> PyResult<()> {
            let options = with_traceback(py, Some(cause))?;
            logger(py, SESSION)?.call_method("debug", ("The tool '%s' raised an exception", tool), Some(&options))?;
            Ok(())
        };
        report(py, log());
    }
}

/// What a call of `logging` takes to show a traceback, if there is one.
fn with_traceback<'py>(py: Python<'py>, cause: Option<&PyErr>) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    if let Some(cause) = cause {
        options.set_item("exc_info", (cause.get_type(py), cause.value(py), cause.traceback(py)))?;
    }
    Ok(options)
}

/// Whether somebody can see what is logged for those who look for it: whoever has not imported `logging` has set up nothing that could show it,
/// and importing it takes long.
fn is_loaded(py: Python<'_>) -> bool {
    let is_loaded = || py.import("sys")?.getattr("modules")?.contains(PyString::new(py, "logging"));
    is_loaded().unwrap_or_default()
}

/// Something that only those see who look for it.
pub(crate) fn debug(py: Python<'_>, text: &str, hook: &str, event: &str) {
    if is_loaded(py) {
        let log = || logger(py, LOGGER)?.call_method1("debug", (text, hook, event)).map(drop);
        report(py, log());
    }
}

/// What the kernel has to say, with its level: `warning` or `error`.
pub(crate) fn line(py: Python<'_>, level: &str, text: &str) {
    let log = || logger(py, KERNEL)?.call_method1(level, ("%s", text)).map(drop);
    report(py, log());
}

fn logger<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logging")?.call_method1("getLogger", (name,))
}

/// A log that fails is no reason to stop, but not to be silent either.
fn report(py: Python<'_>, logged: PyResult<()>) {
    if let Err(error) = logged {
        error.write_unraisable(py, None);
    }
}
