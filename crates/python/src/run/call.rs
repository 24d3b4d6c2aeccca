//! Calls of hooks.

use amplifier_core::HookError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::hook::failure;
use crate::result::HookResult;
use crate::send::{Coroutine, SendResult};
use crate::step::{AwaitedObject, Input, ResumeStep};
use crate::timer::{is_an_interrupt, is_being_cancelled};

pub(super) enum CallResult<'py> {
    Answered(Bound<'py, PyAny>),
    Waits(AwaitedObject, Bound<'py, PyAny>),
}

pub(super) enum CallProgress<'py> {
    Waits(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Failed(HookError, Option<PyErr>),
}

/// Runs a hook from its return value until it waits or answers.
#[inline]
pub(super) fn begin(answer: Bound<'_, PyAny>) -> PyResult<CallResult<'_>> {
    let py = answer.py();
    // Checked first, because most hooks are `async def` and this check is the cheapest.
    let answer = match Coroutine::of(answer)? {
        Ok(coroutine) => {
            return Ok(match coroutine.send(py.None().bind(py))? {
                SendResult::Return(answer) => CallResult::Answered(answer),
                SendResult::Yield(yielded) => CallResult::Waits(AwaitedObject::Coroutine(coroutine), yielded),
            });
        }
        Err(answer) => answer,
    };
    if answer.is_none() || answer.is_instance_of::<HookResult>() {
        return Ok(CallResult::Answered(answer));
    }
    let Some(awaiting) = AwaitedObject::of(&answer)? else { return Ok(CallResult::Answered(answer)) };
    Ok(match awaiting.resume(py, Input::Send(py.None().into_bound(py)))? {
        ResumeStep::Return(answer) => CallResult::Answered(answer),
        ResumeStep::Yield(yielded) => CallResult::Waits(awaiting, yielded),
    })
}

/// Converts an exception to a failure of the hook, unless it ends more than the hook.
pub(super) fn raised<'py>(py: Python<'py>, error: PyErr) -> PyResult<CallProgress<'py>> {
    raised_while(py, error, || is_being_cancelled(py))
}

pub(super) fn raised_while<'py>(
    py: Python<'py>,
    error: PyErr,
    caller_is_cancelled: impl FnOnce() -> bool,
) -> PyResult<CallProgress<'py>> {
    // A hook that awaits something cancelled by others has failed; a hook whose caller is cancelled has not.
    let is_its_own =
        !is_an_interrupt(py, &error)? && (error.is_instance_of::<PyException>(py) || !caller_is_cancelled());
    if is_its_own { Ok(CallProgress::Failed(failure(py, &error), Some(error))) } else { Err(error) }
}
