//! Time limits without an event loop of asyncio: on trio, by its cancel scopes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::log;
use crate::timer::seconds;

/// Returns the Python part, if the caller has imported trio.
fn support(py: Python<'_>) -> PyResult<Option<Bound<'_, PyModule>>> {
    let loaded = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.contains("trio")?;
    loaded.then(|| py.import("amplifier_core._trio")).transpose()
}

/// Returns an awaitable that continues a waiting hook within its time limit; `None` outside trio.
pub(crate) fn limited<'py>(
    awaiting: &Bound<'py, PyAny>,
    yielded: &Bound<'py, PyAny>,
    limit: Duration,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = awaiting.py();
    let Some(support) = support(py)? else { return Ok(None) };
    if !support.call_method0(intern!(py, "is_running"))?.extract::<bool>()? {
        return Ok(None);
    }
    support.call_method1(intern!(py, "limited"), (awaiting, yielded, seconds(limit))).map(Some)
}

/// Returns `true` for the error of a hook whose time limit on trio has passed.
pub(crate) fn is_time_limit(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let Some(support) = support(py)? else { return Ok(false) };
    Ok(error.is_instance(py, &support.getattr(intern!(py, "TimeLimitError"))?))
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
