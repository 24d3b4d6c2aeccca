//! Outcomes of emissions, for Python.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyList};
use serde_json::json;

use crate::data::DictData;
use crate::encode;
use crate::result::HookResult;

/// The outcome of an emission, with everything that the hooks returned.
#[pyclass(module = "amplifier_core.hooks", frozen)]
pub(crate) struct Outcome {
    pub(crate) kernel: amplifier_core::Outcome<DictData>,
    /// The data as emitted.
    pub(crate) emitted: Py<PyDict>,
}

impl Outcome {
    pub(crate) fn flat(&self, py: Python<'_>) -> PyResult<HookResult> {
        HookResult::from_flat(py, self.kernel.flat())
    }

    fn part<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Bound<'py, PyAny>> {
        encode::to_python(py, &json!(self.kernel.report_with(None))[field])
    }
}

/// `true` once outcomes of nested emissions are collected.
static IS_ASKED_FOR: AtomicBool = AtomicBool::new(false);

/// The context variable that collects outcomes of nested emissions: a list that contains the list to append to. Tasks created meanwhile share
/// the context, so the collector removes the inner list when it is done.
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

#[inline]
pub(crate) fn may_be_collected() -> bool {
    IS_ASKED_FOR.load(Ordering::Relaxed)
}

/// Collects an outcome with a copy of its result, which the collector may change.
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

#[pymethods]
impl Outcome {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.emitted)?;
        visit.call(&self.kernel.data.current)
    }

    /// The event as emitted.
    #[getter]
    fn event(&self) -> &str {
        self.kernel.event().as_str()
    }

    /// The decision: `deny`, `ask_user`, `inject_context`, `modify` or `continue`.
    #[getter]
    fn decision(&self) -> &'static str {
        self.kernel.decision.as_str()
    }

    /// The hook that denied.
    #[getter]
    fn denied_by(&self) -> Option<&str> {
        self.kernel.denial().map(|denial| &*denial.by)
    }

    /// The reason for the denial.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.kernel.denial().and_then(|denial| denial.reason.as_deref())
    }

    /// The data after all modifications.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyDict> {
        self.kernel.data.current.clone_ref(py)
    }

    /// The requested approvals, as in the report.
    #[getter]
    fn approvals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "approvals")
    }

    /// The injected texts, as in the report.
    #[getter]
    fn injections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "injections")
    }

    /// The messages for the user, as in the report.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "messages")
    }

    /// The data of hooks that returned `continue` with data.
    #[getter]
    fn responses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.kernel.responses().iter().map(|answer| answer.value.clone_ref(py)).collect::<Vec<_>>())
    }

    /// The result or failure of each called hook, as `hooks` in the report.
    #[getter]
    fn reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "hooks")
    }

    /// Returns the outcome as JSON, as printed by `amplifier hooks try --json` and stored in the log.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // Data that is too deep for JSON is withheld, as its status shows.
        let data = encode::to_map(self.kernel.data.current.bind(py)).ok();
        encode::to_python(py, &json!(self.kernel.report_with(data)))
    }

    /// Returns the outcome as a single result, as returned by `emit`.
    fn result(&self, py: Python<'_>) -> PyResult<HookResult> {
        self.flat(py)
    }

    fn __repr__(&self) -> String {
        format!("<Outcome of {}: {}>", self.event(), self.decision())
    }
}
