//! Hooks that are written in Python.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::{CallFuture, awaited, interrupt, uninterrupted};
use crate::data::read_timestamp;
use crate::person_wait::MarkGuard;
use crate::run::in_strict;
use crate::{answer, encode, log, threads, trace};

pub(crate) struct PyHook {
    pub(crate) handler: Py<PyAny>,
    pub(crate) name: String,
    /// `true` in strict mode, which detects in-place changes of nested values.
    pub(crate) strict: Arc<AtomicBool>,
    /// `true` once the hook has waited.
    pub(crate) waits: AtomicBool,
}

/// The kernel's reference to a hook, shared with the registry, which shows the hooks to the garbage collector.
pub(crate) type SharedHook = Arc<PyHook>;

impl PyHook {
    pub(crate) fn new(handler: Py<PyAny>, name: String, strict: Arc<AtomicBool>) -> Self {
        Self { handler, name, strict, waits: AtomicBool::default() }
    }

    fn failed(&self, py: Python<'_>, event: &str, error: &HookError, cause: Option<&PyErr>) {
        log::failed(py, &self.name, event, error, cause);
        trace::is_logged(&self.name);
    }

    /// Raises if the hook has changed nested values in place, because the strict test has failed.
    async fn check(&self, kept: Py<PyAny>) {
        let checked = Python::attach(|py| in_strict(py, intern!(py, "check"))?.call1((&self.name, kept)).map(drop));
        if let Err(changed) = checked {
            interrupt(changed).await;
        }
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.handler)
    }
}

/// Returns the default name of a hook: that of its function or its type. A partial is named after its function.
pub(crate) fn default_name(handler: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = handler.py();
    let mut handler = handler.clone();
    // Partials of partials are usually flattened already.
    for _ in 0..10 {
        if let Some(name) = handler.getattr_opt(intern!(py, "__name__"))?
            && let Ok(name) = name.extract()
        {
            return Ok(name);
        }
        // Only for partials, because an object may claim to have every attribute.
        if !handler.is_instance(&py.import("functools")?.getattr("partial")?)? {
            break;
        }
        handler = handler.getattr(intern!(py, "func"))?;
    }
    Ok(handler.get_type().name()?.to_string())
}

pub(crate) fn failure(py: Python<'_>, error: &PyErr) -> HookError {
    let kind = error.get_type(py).name().map_or_else(|_| "error".to_owned(), |name| name.to_string());
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    HookError::Failed(if text.is_empty() { kind } else { format!("{kind}: {text}") })
}

/// Handles events from the kernel. Events from Python are driven in the caller's task.
impl Hook for PyHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        uninterrupted().await;
        let (mut kept, mut mark) = (None, None);
        let called = threads::call_python(|py| -> PyResult<_> {
            let data = encode::to_dict(py, data.iter())?;
            read_timestamp(&data)?;
            if self.strict.load(Ordering::Relaxed) {
                kept = Some(in_strict(py, intern!(py, "snapshot"))?.call1((&data,))?.unbind());
            }
            // Also around the call, which may create tasks.
            let call = || CallFuture::of(self.handler.bind(py).call1((PyString::new(py, event), data))?);
            mark.insert(MarkGuard::new(py)?).around(py, call)?
        });
        let (mut waiting, mut question) = (pin!(awaited(called)), None);
        let answered = poll_fn(|context| {
            let polled = waiting.as_mut().poll(context);
            if let (Poll::Pending, Some(mark)) = (&polled, &mark) {
                mark.tell(context, &mut question);
            }
            polled
        });
        let answered = answered.await;
        if let Some(kept) = kept {
            self.check(kept).await;
        }
        Python::attach(|py| match answered {
            Ok(answer) => answer::read_json(answer.bind(py)).inspect_err(|error| self.failed(py, event, error, None)),
            Err(cause) => {
                let error = failure(py, &cause);
                self.failed(py, event, &error, Some(&cause));
                Err(error)
            }
        })
    }
}
