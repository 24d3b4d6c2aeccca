//! Calls of hooks without a tuple for the arguments, coroutines that are resumed without the iterator of `__await__`, and results that are
//! returned without an exception.
//!
//! The only module of the workspace with `unsafe` code: three calls without a safe form in pyo3, which creates a tuple for every call and
//! every exception while versions before 3.12 are supported, and does not treat a coroutine as an iterator.

use pyo3::exceptions::{PyBaseException, PyStopIteration};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::step;

/// Calls a hook.
///
/// # Errors
/// The exception of the call.
#[inline]
#[allow(unsafe_code, reason = "pyo3 has no form of this call without a tuple")]
pub(crate) fn call<'py>(
    handler: &Bound<'py, PyAny>,
    event: &Bound<'py, PyString>,
    data: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let end = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY:
    // - This thread is attached to the interpreter, and holds its lock where there is one: no `Bound<'py, _>` exists otherwise.
    // - All three objects are alive throughout, because what is borrowed here owns a reference to each. The call takes over none.
    // - The function takes any number of pointers to objects, and reads them up to the first that is null: `end`, the last. All are of
    //   the type that it reads.
    // - It raises if the first cannot be called.
    // - The function belongs to the stable ABI in every version that this crate is built for.
    // - No exception is set before the call: pyo3 takes each over as a `PyErr` as soon as a call has failed.
    let result = unsafe { ffi::PyObject_CallFunctionObjArgs(handler.as_ptr(), event.as_ptr(), data.as_ptr(), end) };
    // SAFETY: it is a new reference, which is ours from here on, or null. If it is null, an exception is set, and this takes it over.
    unsafe { Bound::from_owned_ptr_or_err(handler.py(), result) }
}

/// Returns a result to the code that awaits an iterator. The iterator's `__next__` must return immediately after this.
///
/// # Errors
/// The exception that carries the result, if one is needed.
#[inline]
#[allow(unsafe_code, reason = "pyo3 has no form of this without an exception that is made")]
pub(crate) fn stop(value: Bound<'_, PyAny>) -> PyResult<()> {
    // A tuple would be taken for the arguments of an exception, and an exception for itself.
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyBaseException>() {
        return Err(step::stop(value)?);
    }
    let kind = value.py().get_type::<PyStopIteration>();
    // SAFETY:
    // - This thread is attached to the interpreter, and holds its lock where there is one: no `Bound<'py, _>` exists otherwise.
    // - Both objects are alive throughout, because what is borrowed here owns a reference to each. The call takes over none.
    // - The first is a class of exceptions. No exception is set before the call.
    // - The function belongs to the stable ABI in every version that this crate is built for.
    unsafe { ffi::PyErr_SetObject(kind.as_ptr(), value.as_ptr()) };
    Ok(())
}

/// The return value of an `async def`.
// INVARIANT: the type of the object is exactly `types.CoroutineType`. An object of that type never changes its type.
pub(crate) struct Coroutine(Py<PyAny>);

/// The output of a coroutine: its result, or a value for the event loop.
pub(crate) enum SendResult<'py> {
    Return(Bound<'py, PyAny>),
    Yield(Bound<'py, PyAny>),
}

impl Coroutine {
    /// Returns the object as a coroutine, or unchanged if it is not one.
    #[inline]
    pub(crate) fn of(object: Bound<'_, PyAny>) -> PyResult<Result<Self, Bound<'_, PyAny>>> {
        static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let coroutine = COROUTINE.import(object.py(), "types", "CoroutineType")?;
        let is_one = std::ptr::eq(object.get_type_ptr(), coroutine.as_type_ptr());
        Ok(if is_one { Ok(Self(object.unbind())) } else { Err(object) })
    }

    /// Returns the coroutine as an object.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.0.bind(py)
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }

    /// Resumes the coroutine with a value, like `await`.
    ///
    /// # Errors
    /// The exception of the coroutine.
    #[inline]
    #[allow(unsafe_code, reason = "pyo3 has no safe form of this call for a coroutine")]
    pub(crate) fn send<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<SendResult<'py>> {
        let py = value.py();
        let mut result = std::ptr::null_mut();
        // SAFETY:
        // - This thread is attached to the interpreter, and holds its lock where there is one: no `Bound<'py, _>` exists otherwise.
        // - Both objects are alive throughout, because `self` and `value`, which are borrowed, own a reference to each. The call
        //   takes over neither.
        // - `result` is a local variable that nothing else points to. The call writes it before it returns and does not keep the
        //   address.
        // - The function calls the slot `am_send` of the object's type. The type is exactly that of coroutines, by the invariant
        //   above; it cannot be subclassed, and has the slot in every version that has the function.
        // - The function belongs to the stable ABI since 3.10, the oldest version that this crate is built for.
        // - No exception is set before the call: pyo3 takes each over as a `PyErr` as soon as a call has failed.
        // - A coroutine that runs already, or has ended, raises. Python code that runs inside may come here again: nothing of ours is
        //   borrowed but the references.
        let how = unsafe { ffi::PyIter_Send(self.0.as_ptr(), value.as_ptr(), &mut result) };
        // SAFETY: what was written is a new reference, which is ours from here on, or null. If it is null, an exception is set, and
        // this takes it over.
        let result = unsafe { Bound::from_owned_ptr_or_err(py, result) };
        match how {
            ffi::PySendResult::PYGEN_NEXT => result.map(SendResult::Yield),
            // After an error the result is null, and so an `Err` here.
            ffi::PySendResult::PYGEN_RETURN | ffi::PySendResult::PYGEN_ERROR => result.map(SendResult::Return),
        }
    }
}
