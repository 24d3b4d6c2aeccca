//! Awaitable emissions: the kernel's state machine, driven in the caller's task.

use std::ffi::CString;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::coordinator::Coordinator;
use crate::fields::wrong_type;
use crate::registry::HookRegistry;
use crate::run::Run;
use crate::step::{Input, ResumeStep, awaitable};

/// The awaitable returned by `emit`, which runs the hooks.
#[pyclass(name = "Emitting", module = "amplifier_core.hooks")]
pub(crate) struct EmitAwaitable {
    stage: EmitStage,
}

enum EmitStage {
    Ready(EmitRequest),
    Running(Box<Run>),
    Finished,
}

/// The arguments of an emission.
pub(crate) struct EmitRequest {
    pub(crate) registry: Py<HookRegistry>,
    pub(crate) event: Py<PyString>,
    pub(crate) data: Py<PyDict>,
    pub(crate) purpose: Purpose,
    pub(crate) session: Option<SessionRef>,
}

impl EmitRequest {
    /// # Errors
    /// If the event is not a str, or the data is neither a dict nor a model nor `None`.
    #[inline]
    pub(crate) fn new(
        registry: Py<HookRegistry>,
        event: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        purpose: Purpose,
        session: Option<SessionRef>,
    ) -> PyResult<Self> {
        let event = event.cast::<PyString>().map_err(|_| wrong_type("event", "a str", event))?;
        let data = match data.cast::<PyDict>() {
            Ok(data) => data.clone(),
            Err(_) => other_data(data)?,
        };
        // Handlers receive a plain str, not a member of an enum.
        let event = match event.is_exact_instance_of::<PyString>() {
            true => event.clone(),
            false => PyString::new(event.py(), &event.to_string_lossy()),
        };
        Ok(Self { registry, event: event.unbind(), data: data.unbind(), purpose, session })
    }
}

/// Reads data that is not a dict: none, or a pydantic model.
#[cold]
fn other_data<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = data.py();
    if data.is_none() {
        return Ok(PyDict::new(py));
    }
    let dump = data.getattr_opt(intern!(py, "model_dump"))?.map(|dump| dump.call0()).transpose()?;
    let dump = dump.and_then(|dump| dump.cast_into::<PyDict>().ok());
    dump.ok_or_else(|| wrong_type("data", "a dict, a model or None", data))
}

pub(crate) type SessionRef = Py<Coordinator>;

#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Flat,
    /// The complete outcome.
    Outcome,
    /// The results of the hooks, each within this time limit.
    Collect(Duration),
}

impl EmitAwaitable {
    pub(crate) fn new(request: EmitRequest) -> Self {
        Self { stage: EmitStage::Ready(request) }
    }

    fn resume<'py>(&mut self, py: Python<'py>, input: Input<'py>) -> PyResult<ResumeStep<'py>> {
        // Finished, even if a step fails.
        let request = match (std::mem::replace(&mut self.stage, EmitStage::Finished), input) {
            (EmitStage::Running(mut run), input) => {
                let waits = run.advance(py, Some(input));
                return match waits {
                    Ok(Some(yielded)) => {
                        self.stage = EmitStage::Running(run);
                        Ok(ResumeStep::Yield(yielded))
                    }
                    Ok(None) => run.finish(py).map(ResumeStep::Return),
                    Err(error) => Err(run.given_up(py, error)),
                };
            }
            (EmitStage::Ready(_), Input::Throw(error)) => return Err(error),
            (EmitStage::Ready(request), Input::Send(_)) => request,
            (EmitStage::Finished, _) => return Err(PyRuntimeError::new_err("cannot reuse already awaited emission")),
        };
        let (listeners, data) = Run::prepare(py, &request)?;
        let mut run = Run::new(py, request, listeners, data);
        match run.advance(py, None) {
            Ok(Some(yielded)) => {
                // Most emissions do not get here: their hooks answer immediately.
                self.stage = EmitStage::Running(Box::new(run));
                Ok(ResumeStep::Yield(yielded))
            }
            Ok(None) => run.finish_silent(py).unwrap_or_else(|| run.finish(py)).map(ResumeStep::Return),
            Err(error) => Err(run.given_up(py, error)),
        }
    }

    /// Ends the emission: the running hook is closed, and the others are not called.
    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        let EmitStage::Running(mut run) = std::mem::replace(&mut self.stage, EmitStage::Finished) else {
            return Ok(());
        };
        run.close(py)
    }
}

/// Warns, as for any coroutine that was never awaited: a guard that never ran is worse than one that failed.
impl Drop for EmitAwaitable {
    fn drop(&mut self) {
        let EmitStage::Ready(request) = &self.stage else { return };
        let method = match request.purpose {
            Purpose::Flat => "emit",
            Purpose::Outcome => "emit_with_outcome",
            Purpose::Collect(_) => "emit_and_collect",
        };
        let _ = Python::try_attach(|py| {
            // It may be dropped while an exception is propagating.
            let raised = PyErr::take(py);
            let text = format!("coroutine '{method}' was never awaited: no hook has run");
            let warned = CString::new(text)
                .map_err(PyErr::from)
                .and_then(|text| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1));
            if let Err(error) = warned {
                error.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

awaitable!(EmitAwaitable {
    /// Shown for a task that awaits nothing else. Also requested by the running hook, so nothing is borrowed.
    #[getter(__qualname__)]
    fn qualified_name(_slf: &Bound<'_, Self>) -> &'static str {
        "HookRegistry.emit"
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let event = |event: &Py<PyString>| event.bind(slf.py()).to_string_lossy().into_owned();
        // The running hook may also request this.
        match slf.try_borrow().as_deref().map(|emitting| &emitting.stage) {
            Ok(EmitStage::Ready(request)) => format!("<Emitting of '{}'>", event(&request.event)),
            Ok(EmitStage::Running(run)) => format!("<Emitting of '{}', waiting>", event(run.event())),
            Ok(EmitStage::Finished) => "<Emitting, finished>".to_owned(),
            Err(_) => "<Emitting, running>".to_owned(),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.stage {
            EmitStage::Ready(request) => {
                visit.call(&request.registry)?;
                visit.call(&request.data)?;
                visit.call(&request.session)
            }
            EmitStage::Running(run) => run.visit(&visit),
            EmitStage::Finished => Ok(()),
        }
    }

    fn __clear__(&mut self) {
        // The awaitable warns by itself when dropped.
        if matches!(self.stage, EmitStage::Running(_)) {
            self.stage = EmitStage::Finished;
        }
    }
});
