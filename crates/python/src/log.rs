//! Output to Python's `logging`.

use amplifier_core::HookError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

const LOGGER: &str = "amplifier_core.hooks";

const COORDINATOR: &str = "amplifier_core.coordinator";

const SESSION: &str = "amplifier_core.session";

const KERNEL: &str = "amplifier_core";

/// Logs the failure of a hook with the traceback, the hook's name and the event, but never with the event's data.
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

/// Logs the failure of a session's part with the traceback, if available.
pub(crate) fn part_failed(py: Python<'_>, part: &str, error: &HookError, cause: Option<&PyErr>) {
    let log = || -> PyResult<()> {
        let options = with_traceback(py, cause)?;
        let text = "A part of the session failed, its %s: %s";
        logger(py, COORDINATOR)?.call_method("error", (text, part, error.to_string()), Some(&options))?;
        Ok(())
    };
    report(py, log());
}

pub(crate) fn contributor_failed(py: Python<'_>, channel: &str, name: &str, error: &HookError, cause: &PyErr) {
    let log = || -> PyResult<()> {
        let options = with_traceback(py, Some(cause))?;
        let text = "Contributor '%s' of channel '%s' failed: %s";
        logger(py, COORDINATOR)?.call_method("warning", (text, name, channel, error.to_string()), Some(&options))?;
        Ok(())
    };
    report(py, log());
}

/// Logs an exception of a tool. The model reads the error; the traceback is for the tool's author.
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

/// Returns the arguments of `logging` for a traceback, if available.
fn with_traceback<'py>(py: Python<'py>, cause: Option<&PyErr>) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    if let Some(cause) = cause {
        options.set_item("exc_info", (cause.get_type(py), cause.value(py), cause.traceback(py)))?;
    }
    Ok(options)
}

/// Returns `true` if debug output could be visible. Without an import of `logging`, no handler is configured, and importing it is slow.
fn is_loaded(py: Python<'_>) -> bool {
    let is_loaded = || py.import("sys")?.getattr("modules")?.contains(PyString::new(py, "logging"));
    is_loaded().unwrap_or_default()
}

pub(crate) fn debug(py: Python<'_>, text: &str, hook: &str, event: &str) {
    if is_loaded(py) {
        let log = || logger(py, LOGGER)?.call_method1("debug", (text, hook, event)).map(drop);
        report(py, log());
    }
}

/// Logs a message of the kernel, with the level `warning` or `error`.
pub(crate) fn line(py: Python<'_>, level: &str, text: &str) {
    let log = || logger(py, KERNEL)?.call_method1(level, ("%s", text)).map(drop);
    report(py, log());
}

fn logger<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logging")?.call_method1("getLogger", (name,))
}

/// Reports a failure of `logging` itself without raising it.
fn report(py: Python<'_>, logged: PyResult<()>) {
    if let Err(error) = logged {
        error.write_unraisable(py, None);
    }
}
