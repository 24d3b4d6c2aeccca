//! Time limits on trio, by its cancel scopes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::log;
use crate::timer::seconds;

/// Returns `true` if the caller has imported trio. Checked for each emission, so it costs no more than a lookup.
fn is_imported(py: Python<'_>) -> PyResult<bool> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let modules = MODULES
        .get_or_try_init(py, || PyResult::Ok(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind()))?;
    modules.bind(py).contains(intern!(py, "trio"))
}

fn support(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "amplifier_core._trio"))
}

/// Returns `true` within a task of trio.
pub(crate) fn is_running(py: Python<'_>) -> PyResult<bool> {
    Ok(is_imported(py)? && support(py)?.call_method0(intern!(py, "is_running"))?.extract::<bool>()?)
}

/// Returns an awaitable that awaits a hook within its time limit. The hook must not have begun: its scopes are within that of the limit.
pub(crate) fn limited<'py>(awaitable: &Bound<'py, PyAny>, limit: Duration) -> PyResult<Bound<'py, PyAny>> {
    let py = awaitable.py();
    support(py)?.call_method1(intern!(py, "limited"), (awaitable, seconds(limit)))
}

/// Returns `true` for the error of a hook whose time limit on trio has passed.
pub(crate) fn is_time_limit(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    Ok(is_imported(py)? && error.is_instance(py, &support(py)?.getattr(intern!(py, "TimeLimitError"))?))
}

/// Warns once that a hook waits where its time limit cannot be enforced.
pub(crate) fn warn_unlimited(py: Python<'_>, hook: &str) {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    if !HAS_WARNED.swap(true, Ordering::Relaxed) {
        let text = format!(
            "no time limit for hook `{hook}`: it waits outside asyncio and trio, where limits cannot be enforced"
        );
        log::line(py, "warning", &text);
    }
}
