//! One call of a hook: what it gave, and how far it came.

use amplifier_core::HookError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::hook::failure;
use crate::result::HookResult;
use crate::send::{Coroutine, SendResult};
use crate::step::{AwaitedObject, Input, ResumeStep};
use crate::timer::{is_an_interrupt, is_being_cancelled};

/// What a hook that was called gave.
pub(super) enum CallResult<'py> {
    Answered(Bound<'py, PyAny>),
    Waits(AwaitedObject, Bound<'py, PyAny>),
}

/// How far a hook came.
pub(super) enum CallProgress<'py> {
    Waits(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Failed(HookError, Option<PyErr>),
}

/// Lets a hook run, from what its call gave until it waits or answers.
#[inline]
pub(super) fn begin(answer: Bound<'_, PyAny>) -> PyResult<CallResult<'_>> {
    let py = answer.py();
    // Most hooks are `async def`, and no other question is as cheap.
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

/// What a hook raised: its failure, or something that ends more than the hook.
pub(super) fn raised<'py>(py: Python<'py>, error: PyErr) -> PyResult<CallProgress<'py>> {
    raised_while(py, error, || is_being_cancelled(py))
}

pub(super) fn raised_while<'py>(
    py: Python<'py>,
    error: PyErr,
    caller_is_cancelled: impl FnOnce() -> bool,
) -> PyResult<CallProgress<'py>> {
    // A hook that awaits something which others cancelled has failed; one whose caller is cancelled has not.
    let is_its_own =
        !is_an_interrupt(py, &error)? && (error.is_instance_of::<PyException>(py) || !caller_is_cancelled());
    if is_its_own { Ok(CallProgress::Failed(failure(py, &error), Some(error))) } else { Err(error) }
}
