//! Contribution channels of the kernel, for Python functions. Awaitables run on the caller's loop.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use amplifier_core::driving::{self, ContributorResult};
use amplifier_core::{HookError, PortError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyList};

use crate::bridge::{CallFuture, KernelFuture, ask};
use crate::clock::LoopClock;
use crate::hook::failure;
use crate::ports::Port;
use crate::step::is_awaitable;
use crate::timer::{is_a_cancellation, is_an_interrupt};
use crate::{log, trace};

#[pyclass(module = "amplifier_core.coordinator", frozen)]
#[derive(Default)]
pub(crate) struct Channels {
    kernel: driving::Channels<Py<PyAny>>,
    // Std locks: nothing calls Python while they are held.
    /// The contributors, for the garbage collector.
    functions: Mutex<Vec<Weak<Port>>>,
    /// An interrupt raised by a contributor, such as `KeyboardInterrupt`.
    interrupt: Arc<Mutex<Option<PyErr>>>,
}

#[pymethods]
impl Channels {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Registers a function. Returns a function that unregisters it.
    fn register<'py>(
        &self,
        py: Python<'py>,
        channel: String,
        name: String,
        function: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyCFunction>> {
        trace::to_logging();
        let port = Port::new(function, false);
        {
            let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
            functions.retain(|function| function.strong_count() > 0);
            functions.push(Arc::downgrade(&port));
        }
        let (who, interrupt) = ([channel.clone(), name.clone()], self.interrupt.clone());
        let registration = self.kernel.register(&channel, &name, move || contribute(&port, &who, &interrupt));
        PyCFunction::new_closure(py, None, None, move |_, _| registration.unregister())
    }

    /// Calls every contributor of a channel, in order of registration.
    fn collect(&self, channel: &str) -> PyResult<ContributionCollector> {
        let collecting = self.kernel.collect(channel);
        match self.interrupt.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(interrupt) => Err(interrupt),
            None => Ok(ContributionCollector(Arc::new(tokio::sync::Mutex::new(collecting)))),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Skipped if in use.
        let Ok(functions) = self.functions.try_lock() else { return Ok(()) };
        functions.iter().filter_map(Weak::upgrade).try_for_each(|function| function.visit(&visit))
    }

    fn __clear__(&self) {
        let functions = std::mem::take(&mut *self.functions.lock().unwrap_or_else(PoisonError::into_inner));
        functions.iter().filter_map(Weak::upgrade).for_each(|function| function.clear());
    }
}

fn contribute(function: &Port, who: &[String; 2], interrupt: &Mutex<Option<PyErr>>) -> ContributorResult<Py<PyAny>> {
    Python::attach(|py| {
        let called = function.object(py).and_then(|function| function.call0());
        match called.and_then(|given| Ok((is_awaitable(&given)?, given.unbind()))) {
            Ok((false, given)) => ContributorResult::Ready(Ok(some(py, given))),
            Ok((true, given)) => {
                let who = who.clone();
                ContributorResult::Pending(Box::pin(async move {
                    let given = ask(|py| CallFuture::of(given.into_bound(py))).await;
                    Python::attach(|py| given.map(|given| some(py, given)).map_err(|error| failed(py, &who, &error)))
                }))
            }
            Err(error) => {
                let failed = failed(py, who, &error);
                if is_an_interrupt(py, &error).unwrap_or_default() {
                    interrupt.lock().unwrap_or_else(PoisonError::into_inner).replace(error);
                }
                ContributorResult::Ready(Err(failed))
            }
        }
    })
}

fn some(py: Python<'_>, given: Py<PyAny>) -> Option<Py<PyAny>> {
    (!given.is_none(py)).then_some(given)
}

/// Logs a failure with its traceback, which the kernel does not have.
fn failed(py: Python<'_>, [channel, name]: &[String; 2], error: &PyErr) -> PortError {
    let text = match is_a_cancellation(py, error) {
        Ok(true) => HookError::failed("cancelled"),
        _ => failure(py, error),
    };
    log::contributor_failed(py, channel, name, &text, error);
    trace::is_logged(name);
    text.to_string().into()
}

/// The contributions of a channel.
#[pyclass(name = "Collecting", module = "amplifier_core.coordinator", frozen)]
pub(crate) struct ContributionCollector(Arc<tokio::sync::Mutex<driving::ContributionCollector<Py<PyAny>>>>);

#[pymethods]
impl ContributionCollector {
    /// Returns the contributions that are available immediately.
    fn at_once<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        if let Ok(collecting) = self.0.try_lock() {
            collecting.at_once().try_for_each(|value| list.append(value))?;
        }
        Ok(list)
    }

    /// Waits for the other contributions and returns all of them. Can be awaited repeatedly.
    fn finish(&self) -> KernelFuture {
        let collecting = self.0.clone();
        KernelFuture::new(async move {
            let mut collecting = collecting.lock().await;
            let given = collecting.finish(&LoopClock::new()).await;
            Python::attach(|py| {
                let values = given.values.iter().map(|contribution| &contribution.value);
                Ok(PyList::new(py, values)?.into_any().unbind())
            })
        })
    }
}
