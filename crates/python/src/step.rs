//! One step of something that Python awaits.

use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PySendResult, PyTuple, PyType};

/// What goes into an awaitable that is resumed: a value, or an exception.
pub(crate) enum Input<'py> {
    Send(Bound<'py, PyAny>),
    Throw(PyErr),
}

/// What comes out of it: something for the event loop, or its result.
pub(crate) enum Step<'py> {
    Yield(Bound<'py, PyAny>),
    Return(Bound<'py, PyAny>),
}

/// Something that is awaited: what its `__await__` gave.
pub(crate) struct Awaiting(Py<PyIterator>);

impl Awaiting {
    /// What is to be awaited, if the object is awaitable.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let iterator = if is_coroutine(object)? {
            object.call_method0(intern!(py, "__await__"))?
        } else {
            let Some(waiting) = object.getattr_opt(intern!(py, "__await__"))? else { return Ok(None) };
            waiting.call0()?
        };
        Ok(Some(Self(iterator.cast_into::<PyIterator>()?.unbind())))
    }

    /// Resumes it.
    pub(crate) fn resume<'py>(&self, py: Python<'py>, input: Input<'py>) -> PyResult<Step<'py>> {
        match input {
            Input::Send(value) => self.0.bind(py).send(&value).map(Step::from),
            Input::Throw(error) => self.throw(py, error),
        }
    }

    fn throw<'py>(&self, py: Python<'py>, error: PyErr) -> PyResult<Step<'py>> {
        let Some(throw) = self.0.bind(py).getattr_opt(intern!(py, "throw"))? else { return Err(error) };
        match throw.call1((error.into_value(py),)) {
            Ok(yielded) => Ok(Step::Yield(yielded)),
            Err(stop) if stop.is_instance_of::<PyStopIteration>(py) => {
                Ok(Step::Return(stop.value(py).getattr(intern!(py, "value"))?))
            }
            Err(error) => Err(error),
        }
    }

    /// Ends it, as the interpreter does with a coroutine that nobody awaits any more.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(close) = self.0.bind(py).getattr_opt(intern!(py, "close"))? {
            close.call0()?;
        }
        Ok(())
    }
}

/// Whether it is what an `async def` gives.
fn is_coroutine(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let coroutine = COROUTINE.import(object.py(), "types", "CoroutineType")?;
    Ok(std::ptr::eq(object.get_type_ptr(), coroutine.as_type_ptr()))
}

/// Whether it can be awaited.
pub(crate) fn is_awaitable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.getattr_opt(intern!(object.py(), "__await__"))?.is_some())
}

impl<'py> From<PySendResult<'py>> for Step<'py> {
    fn from(result: PySendResult<'py>) -> Self {
        match result {
            PySendResult::Next(yielded) => Self::Yield(yielded),
            PySendResult::Return(value) => Self::Return(value),
        }
    }
}

/// What an iterator that is awaited says to the interpreter.
pub(crate) fn said<'py>(step: PyResult<Step<'py>>) -> PyResult<Bound<'py, PyAny>> {
    match step? {
        Step::Yield(yielded) => Ok(yielded),
        // A tuple would be taken for the arguments of the exception. Anything else travels without one being made.
        Step::Return(value) if value.is_instance_of::<PyTuple>() => Err(PyStopIteration::new_err((value.unbind(),))),
        Step::Return(value) => Err(PyStopIteration::new_err(value.unbind())),
    }
}

/// The exception that `throw` was called with: an exception, or a type with a value.
pub(crate) fn thrown(kind: Bound<'_, PyAny>, value: Option<Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let Ok(class) = kind.cast::<PyType>() else { return Ok(PyErr::from_value(kind)) };
    Ok(match value {
        Some(value) if value.is_instance(class)? => PyErr::from_value(value),
        Some(value) => PyErr::from_value(class.call1((value,))?),
        None => PyErr::from_value(class.call0()?),
    })
}
