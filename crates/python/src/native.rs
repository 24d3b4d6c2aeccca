//! Native hooks, such as those of a bundle, in an emission from Python.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use amplifier_core::{Action, DataChange, EventData, HookError, HookResult, ListedHook, Map};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::Value;

use crate::answer::DictResult;
use crate::bridge::KernelFuture;
use crate::event_words::EventWords;
use crate::{encode, threads};

/// The result of a native hook, passed through Python's task.
#[pyclass(frozen)]
pub(crate) struct NativeAnswer(Mutex<Option<Result<HookResult, HookError>>>);

/// Calls the hook when awaited. Returns a [`NativeAnswer`].
pub(crate) fn call(hook: ListedHook, data: EventData) -> KernelFuture {
    KernelFuture::new(async move {
        let answer = match threads::is_forked() {
            true => Err(HookError::failed("the hook belongs to another process; after a fork, mount its bundle again")),
            false => hook.call(&data).await,
        };
        Python::attach(|py| Ok(Py::new(py, NativeAnswer(Mutex::new(Some(answer))))?.into_any()))
    })
}

impl NativeAnswer {
    /// Returns the result over dicts; `None` for a plain "continue". `before` is the data in the words of the event; the hook received it in
    /// ours.
    pub(crate) fn read(
        &self,
        current: &Bound<'_, PyDict>,
        before: Option<&EventData>,
        words: Option<&EventWords>,
    ) -> Result<Option<DictResult>, HookError> {
        let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let answer = answer.unwrap_or_else(|| Err(HookError::failed("the answer was already read")))?;
        if answer == HookResult::proceed() {
            return Ok(None);
        }
        let unreadable = |error: PyErr| HookError::Unreadable(error.to_string());
        let in_event_words = |change| match words {
            Some(words) => words.to_theirs(change),
            None => change,
        };
        let action = match answer.action {
            Action::Modify(change) => Action::Modify(in_event_words(change)),
            other => other,
        };
        let action = match action {
            Action::Continue => Action::Continue,
            Action::Respond(said) => {
                let said = encode::to_dict(current.py(), said.iter().map(|(key, value)| (key.as_str(), value)));
                Action::Respond(said.map_err(unreadable)?.unbind())
            }
            Action::Deny => Action::Deny,
            Action::Modify(DataChange::Replace(data)) => {
                Action::Modify(DataChange::Replace(replaced(current, before, &data).map_err(unreadable)?))
            }
            Action::Modify(DataChange::Set(field, value)) => {
                Action::Modify(DataChange::Replace(with_field(current, before, &field, &value).map_err(unreadable)?))
            }
            Action::InjectContext(injection) => Action::InjectContext(injection),
            Action::AskUser(approval) => Action::AskUser(approval),
        };
        let HookResult { reason, message, output, suppress_output, .. } = answer;
        Ok(Some(DictResult { action, reason, message, output, suppress_output }))
    }
}

/// Returns the new data. Unchanged values keep their Python form at any depth: a tuple, a date, a number without a JSON form.
fn replaced(current: &Bound<'_, PyDict>, before: Option<&EventData>, data: &Map) -> PyResult<Py<PyDict>> {
    merged_dict(current, |key| before?.get(key), data).map(Bound::unbind)
}

/// Returns the data with another value for a field.
fn with_field(current: &Bound<'_, PyDict>, before: Option<&EventData>, key: &str, now: &Value) -> PyResult<Py<PyDict>> {
    let changed = current.copy()?;
    changed.set_item(key, field(current, before, key, now)?)?;
    Ok(changed.unbind())
}

fn field<'py>(
    current: &Bound<'py, PyDict>,
    before: Option<&EventData>,
    key: &str,
    now: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    match (current.get_item(key)?, before.and_then(|before| before.get(key))) {
        (Some(current), Some(before)) => merged(&current, before, now),
        _ => encode::to_python(current.py(), now),
    }
}

/// Returns the Python value for a change from `before` to `now` in JSON. Unchanged parts keep their Python form.
fn merged<'py>(current: &Bound<'py, PyAny>, before: &Value, now: &Value) -> PyResult<Bound<'py, PyAny>> {
    let py = current.py();
    if before == now {
        return Ok(current.clone());
    }
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            if let Ok(current) = current.cast::<PyDict>() {
                return merged_dict(current, |key| before.get(key), now).map(Bound::into_any);
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            let is_ordered = current.is_instance_of::<PyList>() || current.is_instance_of::<PyTuple>();
            if is_ordered && current.len()? == before.len() {
                return merged_items(current, before, now);
            }
        }
        _ => {}
    }
    encode::to_python(py, now)
}

/// Merges lists. Items before and after an insertion or removal are matched.
fn merged_items<'py>(current: &Bound<'py, PyAny>, before: &[Value], now: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let py = current.py();
    let items: Vec<_> = current.try_iter()?.collect::<PyResult<_>>()?;
    let same = |pairs: &mut dyn Iterator<Item = (&Value, &Value)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut before.iter().zip(now));
    let tail = same(&mut before[head..].iter().rev().zip(now[head..].iter().rev()));
    let was = head..before.len() - tail;
    let is = head..now.len() - tail;
    let mut merged_items = items[..head].to_vec();
    for (place, now) in now[is.clone()].iter().enumerate() {
        let known = (was.len() == is.len()).then(|| (&items[head + place], &before[head + place]));
        merged_items.push(match known {
            Some((item, before)) => merged(item, before, now)?,
            None => encode::to_python(py, now)?,
        });
    }
    merged_items.extend_from_slice(&items[was.end..]);
    if current.is_exact_instance_of::<PyTuple>() {
        return Ok(PyTuple::new(py, merged_items)?.into_any());
    }
    Ok(PyList::new(py, merged_items)?.into_any())
}

fn merged_dict<'py, 'a>(
    current: &Bound<'py, PyDict>,
    before: impl Fn(&str) -> Option<&'a Value>,
    now: &Map,
) -> PyResult<Bound<'py, PyDict>> {
    let py = current.py();
    // In JSON, keys are text.
    let mut own: HashMap<_, _> = encode::entries(current)?.into_iter().collect();
    let changed = PyDict::new(py);
    for (text, now) in now {
        match (own.remove(text), before(text)) {
            (Some((key, current)), Some(before)) => changed.set_item(key, merged(&current, before, now)?)?,
            _ => changed.set_item(text, encode::to_python(py, now)?)?,
        }
    }
    Ok(changed)
}
