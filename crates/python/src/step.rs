//! Single steps of awaited objects.

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PySendResult, PyType};

use crate::send::{self, Coroutine, SendResult};

/// The input of a resumed awaitable: a value or an exception.
pub(crate) enum Input<'py> {
    Send(Bound<'py, PyAny>),
    Throw(PyErr),
}

/// The output: a value for the event loop, or the result.
pub(crate) enum ResumeStep<'py> {
    Yield(Bound<'py, PyAny>),
    Return(Bound<'py, PyAny>),
}

/// An awaited object.
pub(crate) enum AwaitedObject {
    /// The return value of an `async def`.
    Coroutine(Coroutine),
    /// The return value of `__await__`.
    Iterator(Py<PyIterator>),
}

impl AwaitedObject {
    /// Returns the awaited object, if the object is awaitable.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(coroutine) = Coroutine::of(object.clone())? {
            return Ok(Some(Self::Coroutine(coroutine)));
        }
        let waiting = match object.getattr_opt(intern!(object.py(), "__await__"))? {
            Some(waiting) => waiting.call0()?,
            None if is_old_coroutine(object)? => object.clone(),
            None => return Ok(None),
        };
        Ok(Some(Self::Iterator(waiting.cast_into::<PyIterator>()?.unbind())))
    }

    pub(crate) fn resume<'py>(&self, py: Python<'py>, input: Input<'py>) -> PyResult<ResumeStep<'py>> {
        match input {
            Input::Send(value) => match self {
                Self::Coroutine(coroutine) => coroutine.send(&value).map(ResumeStep::from),
                Self::Iterator(iterator) => iterator.bind(py).send(&value).map(ResumeStep::from),
            },
            Input::Throw(error) => self.throw(py, error),
        }
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        match self {
            Self::Coroutine(coroutine) => coroutine.object(py),
            Self::Iterator(iterator) => iterator.bind(py).as_any(),
        }
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Coroutine(coroutine) => coroutine.visit(visit),
            Self::Iterator(iterator) => visit.call(iterator),
        }
    }

    fn throw<'py>(&self, py: Python<'py>, error: PyErr) -> PyResult<ResumeStep<'py>> {
        let Some(throw) = self.object(py).getattr_opt(intern!(py, "throw"))? else { return Err(error) };
        match throw.call1((error.into_value(py),)) {
            Ok(yielded) => Ok(ResumeStep::Yield(yielded)),
            Err(stop) if stop.is_instance_of::<PyStopIteration>(py) => {
                Ok(ResumeStep::Return(stop.value(py).getattr(intern!(py, "value"))?))
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the object, as the interpreter does with an abandoned coroutine.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(close) = self.object(py).getattr_opt(intern!(py, "close"))? {
            close.call0()?;
        }
        Ok(())
    }
}

pub(crate) fn is_awaitable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.getattr_opt(intern!(object.py(), "__await__"))?.is_some() || is_old_coroutine(object)?)
}

/// Returns `true` for a generator that may be awaited because of `types.coroutine`.
fn is_old_coroutine(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    const ITERABLE_COROUTINE: u32 = 0x100;
    let py = object.py();
    // Checked on the type, because an object may claim to have every attribute.
    if object.get_type().getattr_opt(intern!(py, "gi_code"))?.is_none() {
        return Ok(false);
    }
    let flags = object.getattr(intern!(py, "gi_code"))?.getattr(intern!(py, "co_flags"))?.extract::<u32>()?;
    Ok(flags & ITERABLE_COROUTINE != 0)
}

impl<'py> From<SendResult<'py>> for ResumeStep<'py> {
    fn from(sent: SendResult<'py>) -> Self {
        match sent {
            SendResult::Yield(yielded) => Self::Yield(yielded),
            SendResult::Return(value) => Self::Return(value),
        }
    }
}

impl<'py> From<PySendResult<'py>> for ResumeStep<'py> {
    fn from(result: PySendResult<'py>) -> Self {
        match result {
            PySendResult::Next(yielded) => Self::Yield(yielded),
            PySendResult::Return(value) => Self::Return(value),
        }
    }
}

/// Returns the step of an iterator to the interpreter: a value for the event loop, or `None` with the result set.
pub(crate) fn next<'py>(step: PyResult<ResumeStep<'py>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match step? {
        ResumeStep::Yield(yielded) => Ok(Some(yielded)),
        ResumeStep::Return(value) => send::stop(value).map(|()| None),
    }
}

/// Returns the step as the result of a method.
pub(crate) fn said<'py>(step: PyResult<ResumeStep<'py>>) -> PyResult<Bound<'py, PyAny>> {
    match step? {
        ResumeStep::Yield(yielded) => Ok(yielded),
        ResumeStep::Return(value) => Err(stop(value)?),
    }
}

/// Creates the exception that carries a result. Built from its type: a tuple would be taken for its arguments, and an exception for itself.
pub(crate) fn stop(value: Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(value.py().get_type::<PyStopIteration>().call1((value,))?))
}

/// Returns the exception that `throw` was called with: an exception, or a type with a value.
pub(crate) fn thrown(kind: Bound<'_, PyAny>, value: Option<Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let Ok(class) = kind.cast::<PyType>() else { return Ok(PyErr::from_value(kind)) };
    Ok(match value {
        Some(value) if value.is_instance(class)? => PyErr::from_value(value),
        Some(value) => PyErr::from_value(class.call1((value,))?),
        None => PyErr::from_value(class.call0()?),
    })
}

/// Implements Python's coroutine protocol for a class with the methods `resume` and `end`; other Python methods can be added.
macro_rules! awaitable {
    ($class:ident { $($more:tt)* }) => {
        #[pymethods]
        impl $class {
            fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
                slf
            }

            /// For `yield from`: the result of a coroutine's `__await__` is an iterator.
            fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
                slf
            }

            fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
                let none = py.None().into_bound(py);
                $crate::step::next(self.resume(py, $crate::step::Input::Send(none)))
            }

            /// Resumes the coroutine with a value.
            fn send<'py>(&mut self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::step::said(self.resume(value.py(), $crate::step::Input::Send(value)))
            }

            /// Resumes the coroutine with an exception.
            #[pyo3(signature = (typ, val=None, tb=None))]
            fn throw<'py>(
                &mut self,
                typ: Bound<'py, PyAny>,
                val: Option<Bound<'py, PyAny>>,
                tb: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = typ.py();
                // The exception carries its traceback.
                drop(tb);
                let error = $crate::step::thrown(typ, val)?;
                $crate::step::said(self.resume(py, $crate::step::Input::Throw(error)))
            }

            /// Closes the coroutine and cancels everything it waits for.
            fn close(&mut self, py: Python<'_>) -> PyResult<()> {
                self.end(py)
            }

            $($more)*
        }
    };
}

pub(crate) use awaitable;
