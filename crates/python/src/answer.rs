//! Conversion of hook results between Python and the kernel.

use amplifier_core::{ApprovalOption, FlatAction, FlatOption, FlatResult, HookError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::encode;
use crate::fields::{read_options, type_name};
use crate::result::HookResult;

/// The kernel's result, with dicts as data.
pub(crate) type DictResult = amplifier_core::HookResult<Py<PyDict>>;

/// The flat form of a result, with dicts as data.
pub(crate) type NativeFlat = FlatResult<Py<PyDict>>;

/// Returns `true` for a plain "continue" in one of its two most common forms.
#[inline]
pub(crate) fn is_silent(answer: &Bound<'_, PyAny>) -> bool {
    answer.is_none()
        || answer.cast::<HookResult>().is_ok_and(|result| result.try_borrow().is_ok_and(|result| result.is_silent()))
}

/// Reads the return value of a hook; `None` means a plain "continue".
pub(crate) fn read(answer: &Bound<'_, PyAny>) -> Result<Option<DictResult>, HookError> {
    flat(answer)?.map(amplifier_core::HookResult::from_flat).transpose()
}

/// Reads the return value of a hook for an event with JSON data.
pub(crate) fn read_json(answer: &Bound<'_, PyAny>) -> Result<amplifier_core::HookResult, HookError> {
    flat(answer)?.map_or_else(|| Ok(amplifier_core::HookResult::proceed()), |flat| in_json(answer.py(), flat))
}

/// The kernel's result, with JSON as data.
pub(crate) fn in_json(py: Python<'_>, flat: NativeFlat) -> Result<amplifier_core::HookResult, HookError> {
    let action = flat.action;
    let flat = flat.try_map_data(|data| encode::to_map(data.bind(py))).map_err(|error| match action {
        FlatAction::Continue => unreadable(py, &error),
        _ => HookError::InvalidAnswer(unreadable_text(py, &error)),
    });
    amplifier_core::HookResult::from_flat(flat?)
}

fn flat(answer: &Bound<'_, PyAny>) -> Result<Option<NativeFlat>, HookError> {
    if answer.is_none() {
        return Ok(None);
    }
    let py = answer.py();
    if let Ok(result) = answer.cast::<HookResult>() {
        let result = result.try_borrow().map_err(|error| HookError::Unreadable(error.to_string()))?;
        return if result.is_silent() { Ok(None) } else { result.to_flat(py).map(Some) };
    }
    if let Ok(fields) = answer.cast::<PyDict>() {
        let result = HookResult::from_dict(fields).map_err(|error| match intervenes(fields) {
            true => HookError::InvalidAnswer(unreadable_text(py, &error)),
            false => unreadable(py, &error),
        });
        return result?.to_flat(py).map(Some);
    }
    let found = type_name(answer);
    let expected = "expected a HookResult, a dict or None";
    Err(HookError::Unreadable(format!("the answer cannot be read: {expected}, found {found}")))
}

fn unreadable(py: Python<'_>, error: &PyErr) -> HookError {
    HookError::Unreadable(unreadable_text(py, error))
}

fn unreadable_text(py: Python<'_>, error: &PyErr) -> String {
    format!("the answer cannot be read: {}", error.value(py))
}

/// Returns `true` if a dict has an action other than `continue`.
fn intervenes(fields: &Bound<'_, PyDict>) -> bool {
    let action = fields.get_item("action").ok().flatten();
    action
        .is_some_and(|action| action.extract::<String>().map_or(true, |action| action != FlatAction::Continue.as_str()))
}

pub(crate) fn read_option(option: &Bound<'_, PyAny>) -> Option<ApprovalOption> {
    let option = option.cast::<PyDict>().ok().filter(|option| option.len() == 2)?;
    let field = |name| option.get_item(name).ok().flatten();
    let label = field("label")?.extract::<String>().ok()?;
    let effect = field("effect")?.extract::<String>().ok()?.parse().ok()?;
    Some(ApprovalOption { label, effect })
}

impl HookResult {
    fn is_silent(&self) -> bool {
        self.action == FlatAction::Continue
            && self.data.is_none()
            && self.reason.is_none()
            && self.user_message.is_none()
            && !self.suppress_output
    }

    pub(crate) fn to_flat(&self, py: Python<'_>) -> Result<NativeFlat, HookError> {
        let text = |text: &Option<Py<PyString>>| text.as_ref().map(|text| text.bind(py).to_string_lossy().into_owned());
        // Checked again, because the list may have been changed since.
        let options = self.approval_options.as_ref().map(|options| read_options("approval_options", options.bind(py)));
        let invalid = |error: &PyErr| match self.action {
            FlatAction::Continue => unreadable(py, error),
            _ => HookError::InvalidAnswer(unreadable_text(py, error)),
        };
        let options = options.transpose().map_err(|error| invalid(&error))?.flatten();
        let options = options.map(|options| {
            let option = |option: Bound<'_, PyAny>| match option.cast::<PyString>() {
                Ok(label) => Some(FlatOption::Label(label.to_string_lossy().into_owned())),
                Err(_) => read_option(&option).map(FlatOption::Stated),
            };
            options.bind(py).iter().filter_map(option).collect()
        });
        // Copied, because the hook may keep and change the dict.
        let data = self.data.as_ref().map(|data| data.bind(py).copy().map(Bound::unbind)).transpose();
        Ok(FlatResult {
            action: self.action,
            data: data.map_err(|error| invalid(&error))?,
            reason: text(&self.reason),
            context_injection: text(&self.context_injection),
            context_injection_role: self.context_injection_role,
            ephemeral: self.ephemeral,
            append_to_last_tool_result: self.append_to_last_tool_result,
            approval_prompt: text(&self.approval_prompt),
            approval_options: options,
            approval_timeout: self.approval_timeout,
            approval_default: self.approval_default,
            approval_fallback: self.approval_fallback,
            suppress_output: self.suppress_output,
            user_message: text(&self.user_message),
            user_message_level: self.user_message_level,
            user_message_source: text(&self.user_message_source),
        })
    }

    /// Converts a result of the kernel for Python.
    pub(crate) fn from_flat(py: Python<'_>, flat: FlatResult<Py<PyDict>>) -> PyResult<Self> {
        let text = |text: Option<String>| text.map(|text| PyString::new(py, &text).unbind());
        let options = flat.approval_options.map(|options| {
            let list = PyList::empty(py);
            for option in options {
                match option {
                    FlatOption::Label(label) => list.append(label)?,
                    FlatOption::Stated(ApprovalOption { label, effect }) => {
                        let stated = PyDict::new(py);
                        stated.set_item("label", label)?;
                        stated.set_item("effect", effect.as_str())?;
                        list.append(stated)?;
                    }
                }
            }
            PyResult::Ok(list.unbind())
        });
        Ok(Self {
            action: flat.action,
            data: flat.data,
            reason: text(flat.reason),
            context_injection: text(flat.context_injection),
            context_injection_role: flat.context_injection_role,
            ephemeral: flat.ephemeral,
            append_to_last_tool_result: flat.append_to_last_tool_result,
            approval_prompt: text(flat.approval_prompt),
            approval_options: options.transpose()?,
            approval_timeout: flat.approval_timeout,
            approval_default: flat.approval_default,
            approval_fallback: flat.approval_fallback,
            suppress_output: flat.suppress_output,
            user_message: text(flat.user_message),
            user_message_level: flat.user_message_level,
            user_message_source: text(flat.user_message_source),
            given: 0,
        })
    }
}
