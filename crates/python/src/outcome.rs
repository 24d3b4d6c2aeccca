//! Everything that the hooks of one emission said, for Python.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyList};

use crate::data::NativeData;
use crate::result::HookResult;

/// The outcome of an emission. Nothing that a hook said is lost.
#[pyclass(module = "amplifier_core.hooks", frozen)]
pub(crate) struct Outcome {
    pub(crate) kernel: amplifier_core::Outcome<NativeData>,
    /// The data as emitted.
    pub(crate) emitted: Py<PyDict>,
}

impl Outcome {
    /// The flat view.
    pub(crate) fn flat(&self, py: Python<'_>) -> PyResult<HookResult> {
        HookResult::from_flat(py, self.kernel.flat())
    }
}

/// Whether anybody asks for outcomes of emissions that somebody else begins.
static IS_ASKED_FOR: AtomicBool = AtomicBool::new(false);

/// Where outcomes of emissions that somebody else begins are collected: a list that holds another, which they are appended to, or nothing, in the
/// context of whoever asks for them. Tasks that begin meanwhile share the context, so whoever has asked takes the inner list away.
pub(crate) fn collector(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static COLLECTOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    IS_ASKED_FOR.store(true, Ordering::Relaxed);
    let made = COLLECTOR.get_or_try_init(py, || -> PyResult<_> {
        let name = ("amplifier_core.outcomes",);
        let options = [("default", py.None())].into_py_dict(py)?;
        Ok(py.import("contextvars")?.getattr("ContextVar")?.call(name, Some(&options))?.unbind())
    });
    made.map(|made| made.bind(py))
}

/// Whether outcomes may be collected.
#[inline]
pub(crate) fn may_be_collected() -> bool {
    IS_ASKED_FOR.load(Ordering::Relaxed)
}

/// Collects an outcome, with what its emission gives, and a copy of that: whoever gets it may change it.
pub(crate) fn collect(outcome: Bound<'_, Outcome>, flat: &Bound<'_, HookResult>) -> PyResult<()> {
    let asked = collector(outcome.py())?.call_method0("get")?;
    if let Ok(asked) = asked.cast::<PyList>()
        && let Ok(collected) = asked.get_item(0)
    {
        let copy = HookResult::model_copy(flat, None, false)?;
        collected.cast::<PyList>()?.append((outcome, flat, copy))?;
    }
    Ok(())
}

/// A list of dicts.
macro_rules! list {
    ($py:expr, $items:expr, $one:ident => { $($key:literal: $value:expr),+ $(,)? }) => {{
        let list = PyList::empty($py);
        for $one in $items {
            let dict = PyDict::new($py);
            $(dict.set_item($key, $value)?;)+
            list.append(dict)?;
        }
        Ok(list)
    }};
}

#[pymethods]
impl Outcome {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.emitted)?;
        visit.call(&self.kernel.data.current)
    }

    /// The event as it was emitted.
    #[getter]
    fn event(&self) -> &str {
        self.kernel.event().as_str()
    }

    /// What is to happen: `deny`, `ask_user`, `inject_context`, `modify` or `continue`.
    #[getter]
    fn decision(&self) -> &'static str {
        self.kernel.decision.as_str()
    }

    /// The hook that denied.
    #[getter]
    fn denied_by(&self) -> Option<&str> {
        self.kernel.denial().map(|denial| &*denial.by)
    }

    /// Why it denied.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.kernel.denial().and_then(|denial| denial.reason.as_deref())
    }

    /// The data after every modification.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyDict> {
        self.kernel.data.current.clone_ref(py)
    }

    /// Every approval that was asked for.
    #[getter]
    fn approvals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list!(py, self.kernel.approvals(), one => { "hook": &*one.hook, "prompt": &one.prompt })
    }

    /// Every injection.
    #[getter]
    fn injections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list!(py, self.kernel.injections(), one => {
            "hook": &*one.hook,
            "text": &one.text,
            "role": one.role.as_str(),
            "ephemeral": one.placement.is_ephemeral(),
            "append_to_last_tool_result": one.placement == amplifier_core::Placement::LastToolResult,
        })
    }

    /// Every message for the person.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list!(py, self.kernel.messages(), one => {
            "hook": &*one.hook, "text": &one.text, "level": one.level.as_str(),
        })
    }

    /// What hooks answered with `continue` and data.
    #[getter]
    fn responses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.kernel.responses().iter().map(|answer| answer.value.clone_ref(py)).collect::<Vec<_>>())
    }

    /// What each hook that ran answered or how it failed, and how long it took.
    #[getter]
    fn reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list!(py, self.kernel.reports(), report => {
            "hook": report.hook,
            "answer": report.answer_or_failure().as_str(),
            "seconds": report.took.as_secs_f64(),
            "reason": report.reason,
            "error": report.error.map(ToString::to_string),
        })
    }

    /// The outcome as one result, as `emit` gives it.
    fn result(&self, py: Python<'_>) -> PyResult<HookResult> {
        self.flat(py)
    }

    fn __repr__(&self) -> String {
        format!("<Outcome of {}: {}>", self.event(), self.decision())
    }
}
