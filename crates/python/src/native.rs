//! Hooks that are not written in Python, such as those of a bundle, in an emission of Python's.

use std::sync::{Mutex, PoisonError};

use amplifier_core::{Action, Change, EventData, HookError, HookResult, ListedHook, Map};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answer::NativeResult;
use crate::bridge::Driven;
use crate::encode;

/// What such a hook said, on its way through Python's task.
#[pyclass(frozen)]
pub(crate) struct NativeAnswer(Mutex<Option<Result<HookResult, HookError>>>);

/// Calls the hook when it is awaited; gives a [`NativeAnswer`].
pub(crate) fn call(hook: ListedHook, data: EventData) -> Driven {
    Driven::new(async move {
        let answer = hook.call(&data).await;
        Python::attach(|py| Ok(Py::new(py, NativeAnswer(Mutex::new(Some(answer))))?.into_any()))
    })
}

impl NativeAnswer {
    /// The answer over dicts; nothing if it is "go on" with nothing else said. `before` is what the hook was shown of the data.
    pub(crate) fn read(
        &self,
        current: &Bound<'_, PyDict>,
        before: Option<&EventData>,
    ) -> Result<Option<NativeResult>, HookError> {
        let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let answer = answer.unwrap_or_else(|| Err(HookError::failed("the answer was read already")))?;
        if answer == HookResult::proceed() {
            return Ok(None);
        }
        let unreadable = |error: PyErr| HookError::Unreadable(error.to_string());
        let action = match answer.action {
            Action::Continue => Action::Continue,
            Action::Respond(said) => {
                let said = encode::to_dict(current.py(), said.iter().map(|(key, value)| (key.as_str(), value)));
                Action::Respond(said.map_err(unreadable)?.unbind())
            }
            Action::Deny => Action::Deny,
            Action::Modify(Change::Replace(data)) => {
                Action::Modify(Change::Replace(replaced(current, before, &data).map_err(unreadable)?))
            }
            Action::Modify(Change::Set(field, value)) => Action::Modify(Change::Set(field, value)),
            Action::InjectContext(injection) => Action::InjectContext(injection),
            Action::AskUser(approval) => Action::AskUser(approval),
        };
        let HookResult { reason, message, output, suppress_output, .. } = answer;
        Ok(Some(NativeResult { action, reason, message, output, suppress_output }))
    }
}

/// The new data. What the hook left as it was stays what it is in Python, too: a tuple, a date, a number that JSON does not have.
fn replaced(current: &Bound<'_, PyDict>, before: Option<&EventData>, data: &Map) -> PyResult<Py<PyDict>> {
    let py = current.py();
    let changed = PyDict::new(py);
    for (key, value) in data {
        let is_same = before.and_then(|before| before.get(key)).is_some_and(|before| before == value);
        let kept = if is_same { current.get_item(key)? } else { None };
        match kept {
            Some(kept) => changed.set_item(key, kept)?,
            None => changed.set_item(key, encode::to_python(py, value)?)?,
        }
    }
    Ok(changed.unbind())
}
