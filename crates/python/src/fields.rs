//! Readers for the fields of a result.

use std::str::FromStr;

use amplifier_core::{DefaultDecision, FlatAction, Level, Role, UnknownWord};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// A field whose values are the words of an enum.
macro_rules! words {
    ($name:ident, $read:ident: $type:ident { $($variant:ident),+ }) => {
        pub(crate) fn $name(py: Python<'_>, value: $type) -> &Bound<'_, PyString> {
            match value {
                $($type::$variant => intern!(py, $type::$variant.as_str()),)+
            }
        }

        pub(crate) fn $read(field: &str, value: &Bound<'_, PyAny>) -> PyResult<$type> {
            // A literal in a program is the same object as the interned word.
            $(if value.is(intern!(value.py(), $type::$variant.as_str())) {
                return Ok($type::$variant);
            })+
            let word = value.cast::<PyString>().ok().and_then(|text| text.to_str().ok()?.parse().ok());
            word.ok_or_else(|| invalid_word(field, &$type::ALL.map(|one| format!("`{one}`")).join(", "), value))
        }
    };
}

words! { action_word, read_action: FlatAction { Continue, Deny, Modify, InjectContext, AskUser } }
words! { role_word, read_role: Role { System, User, Assistant } }
words! { default_word, read_default: DefaultDecision { Allow, Deny } }
words! { level_word, read_level: Level { Info, Warning, Error } }

/// Reads an argument that must be one of the words of an enum.
pub(crate) fn read_word<T: FromStr<Err = UnknownWord>>(argument: &str, word: &str) -> PyResult<T> {
    word.parse().map_err(|unknown| PyValueError::new_err(format!("`{argument}`: {unknown}")))
}

/// Describes an invalid argument by its type, not its value: errors are logged, and values may be secrets.
pub(crate) fn invalid(field: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    PyValueError::new_err(must_be(field, expected, found))
}

/// Describes an invalid word by its value, because a typing error is hardly a secret.
fn invalid_word(field: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let Ok(text) = found.cast::<PyString>() else { return invalid(field, expected, found) };
    let text = text.to_string_lossy();
    let is_word = text.len() <= 20 && text.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let found = if is_word { format!("`{text}`") } else { "another text".to_owned() };
    PyValueError::new_err(format!("`{field}` must be {expected}; found {found}"))
}

pub(crate) fn wrong_type(argument: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(must_be(argument, expected, found))
}

fn must_be(what: &str, expected: &str, found: &Bound<'_, PyAny>) -> String {
    format!("`{what}` must be {expected}; found {}", type_name(found))
}

pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    if object.is_none() {
        return "None".to_owned();
    }
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| format!("`{name}`"))
}

pub(crate) fn read_text(field: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyString>>> {
    if value.is_none() {
        return Ok(None);
    }
    let text = value.cast::<PyString>().map_err(|_| invalid(field, "a str or None", value))?;
    Ok(Some(text.clone().unbind()))
}

pub(crate) fn read_flag(field: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| invalid(field, "True or False", value))
}

pub(crate) fn read_seconds(field: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    const EXPECTED: &str = "a finite number of seconds, 0 or more";
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !is_number || value.is_instance_of::<PyBool>() {
        return Err(invalid(field, EXPECTED, value));
    }
    // An integer beyond the range of a float is treated like any other time limit that never ends.
    let seconds = value.extract::<f64>().map_err(|_| invalid(field, EXPECTED, value))?;
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err(PyValueError::new_err(format!("`{field}` must be {EXPECTED}; found {seconds}")))
    }
}

pub(crate) fn read_data(field: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyDict>>> {
    if value.is_none() {
        return Ok(None);
    }
    let data = value.cast::<PyDict>().map_err(|_| invalid(field, "a dict or None", value))?;
    Ok(Some(data.clone().unbind()))
}

/// Reads a list of labels, or of `{"label": …, "effect": …}`.
pub(crate) fn read_options(field: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyList>>> {
    const EXPECTED: &str = "None or a list of labels, or of dicts with `label` and `effect`";
    if value.is_none() {
        return Ok(None);
    }
    let options = match value.cast::<PyTuple>() {
        Ok(options) => options.to_list(),
        Err(_) => value.cast::<PyList>().map_err(|_| invalid(field, EXPECTED, value))?.clone(),
    };
    for option in &options {
        if !option.is_instance_of::<PyString>() {
            crate::answer::read_option(&option).ok_or_else(|| invalid(field, EXPECTED, &option))?;
        }
    }
    Ok(Some(options.unbind()))
}
