//! Concurrent observers.

use amplifier_core::HookError;
use amplifier_core::driving::PersonWaits;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::call::{CallProgress, raised};
use super::{CallTarget, Run, SuspendedCall};
use crate::hook::failure;
use crate::step::{AwaitedObject, Input, is_awaitable};

impl Run {
    /// Starts all observers from this one on concurrently.
    pub(super) fn begin_observers<'py>(
        &mut self,
        py: Python<'py>,
        first: usize,
    ) -> PyResult<(CallTarget, CallProgress<'py>)> {
        let rest: Vec<usize> = std::iter::once(first).chain(std::iter::from_fn(|| self.emission.next_hook())).collect();
        let (mut indexes, calls) = (Vec::new(), PyList::empty(py));
        for index in rest {
            let view = self.view(py, false)?;
            match self.call(index, view, Ok) {
                Ok(Ok(answer)) if is_awaitable(&answer)? => {
                    calls.append((answer, crate::timer::seconds(self.limit(index))))?;
                    indexes.push(index);
                }
                Ok(Ok(answer)) => self.take(py, index, &answer)?,
                Ok(Err(error)) => {
                    if let CallProgress::Failed(error, cause) = raised(py, error)? {
                        self.fail(py, index, error, cause)?;
                    }
                }
                Err(error) => self.fail(py, index, error, None)?,
            }
        }
        if indexes.is_empty() {
            return Ok((CallTarget::Observers(indexes), CallProgress::Returned(calls.into_any())));
        }
        let observe = py.import("amplifier_core._parallel")?.getattr("observe")?;
        let Some(awaiting) = AwaitedObject::of(&observe.call1((calls,))?)? else {
            return Err(PyRuntimeError::new_err("observers cannot be awaited"));
        };
        let (who, questions) = (CallTarget::Observers(indexes), PersonWaits::default());
        let waiting = SuspendedCall { awaiting, who, timer: None, questions, mark: None };
        self.proceed(py, Box::new(waiting), Input::Send(py.None().into_bound(py)))
    }

    /// Processes the results of observers: for each an answer, a timeout or a failure.
    pub(super) fn take_all(&mut self, py: Python<'_>, all: Vec<usize>, answers: &Bound<'_, PyAny>) -> PyResult<()> {
        for (index, answer) in all.into_iter().zip(answers.try_iter()?) {
            let answer = answer?.cast_into::<PyTuple>()?;
            let (how, what) = (answer.get_item(0)?.extract::<String>()?, answer.get_item(1)?);
            match how.as_str() {
                "answered" => self.take(py, index, &what)?,
                "timed_out" => self.fail(py, index, HookError::TimedOut(self.limit(index)), None)?,
                _ => {
                    let error = PyErr::from_value(what);
                    self.fail(py, index, failure(py, &error), Some(error))?;
                }
            }
        }
        Ok(())
    }
}
