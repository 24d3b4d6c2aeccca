//! Conversion of Python values to JSON, for digests, records, and events that the kernel emits.
//!
//! Tuples and sets become lists; keys become text, made unique (`1` and `1 (int)`); dates and times become ISO 8601; bytes become Base64;
//! enums become their values; dataclasses and models become dicts. Numbers without a JSON form become text, as do all other values, including
//! recursive ones.

use std::collections::HashSet;

use amplifier_agent::MAX_STORED_DEPTH;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};
use serde_json::{Map, Number, Value};

/// Slightly more than a digest accepts, so that the kernel reports data that is too deep.
const DEEPEST: usize = 130;

/// Converts a dict to JSON.
///
/// # Errors
/// If the data is too deep.
pub(crate) fn to_map(data: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    map(data, &mut Ancestors::of(data.as_any()))
}

/// Converts a dict to JSON without values that are too deep. The kernel reports them, because such data has no digest.
pub(crate) fn to_cut_map(data: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    map(data, &mut Ancestors { is_cut: true, ..Ancestors::of(data.as_any()) })
}

/// Converts a dict to JSON for a conversation, which is stored.
///
/// # Errors
/// If the data is too deep.
pub(crate) fn to_kept_map(data: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    map(data, &mut Ancestors { deepest: MAX_STORED_DEPTH, ..Ancestors::of(data.as_any()) })
}

/// Converts a value to JSON-compatible Python values, preserving the order of keys.
///
/// # Errors
/// If the data is too deep.
pub(crate) fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    plain_at(value, &mut Ancestors::default())
}

/// The containers around a value.
struct Ancestors {
    /// The addresses of the containers.
    inside: Vec<usize>,
    deepest: usize,
    /// `true` if values that are too deep are omitted.
    is_cut: bool,
}

impl Default for Ancestors {
    fn default() -> Self {
        Self { inside: Vec::new(), deepest: DEEPEST, is_cut: false }
    }
}

impl Ancestors {
    fn of(value: &Bound<'_, PyAny>) -> Self {
        Self { inside: vec![value.as_ptr() as usize], ..Self::default() }
    }

    /// Enters a container, unless it contains itself or is too deep.
    fn enter<T>(
        &mut self,
        value: &Bound<'_, PyAny>,
        go: impl FnOnce(&mut Self) -> PyResult<T>,
    ) -> PyResult<Descent<T>> {
        let place = value.as_ptr() as usize;
        if self.inside.contains(&place) {
            return Ok(Descent::HoldsItself);
        }
        if self.inside.len() >= self.deepest {
            return Ok(Descent::TooDeep);
        }
        self.inside.push(place);
        let result = go(self);
        self.inside.pop();
        result.map(Descent::Done)
    }

    fn too_deep(&self) -> PyErr {
        PyValueError::new_err(format!("the data is more than {} levels deep", self.deepest))
    }
}

enum Descent<T> {
    Done(T),
    HoldsItself,
    TooDeep,
}

fn map(data: &Bound<'_, PyDict>, ancestors: &mut Ancestors) -> PyResult<Map<String, Value>> {
    entries(data)?.into_iter().map(|(text, (_, value))| Ok((text, json(&value, ancestors)?))).collect()
}

type Entry<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Returns the entries of a dict, each with its key as JSON text.
///
/// Collected first, because the text form of an object may change the dict.
pub(crate) fn entries<'py>(data: &Bound<'py, PyDict>) -> PyResult<Vec<(String, Entry<'py>)>> {
    let entries: Vec<Entry<'py>> = data.iter().collect();
    let texts = key_texts(entries.iter().map(|(key, _)| key))?;
    Ok(texts.into_iter().zip(entries).collect())
}

/// Returns the key if it is text that JSON can represent.
fn exact(key: &Bound<'_, PyAny>) -> Option<String> {
    key.cast::<PyString>().ok()?.to_str().ok().map(str::to_owned)
}

/// Returns the keys as unique texts. A key that is already text keeps it.
fn key_texts<'a, 'py: 'a>(keys: impl Iterator<Item = &'a Bound<'py, PyAny>> + Clone) -> PyResult<Vec<String>> {
    let exact_texts: Vec<_> = keys.clone().map(exact).collect();
    if exact_texts.iter().all(Option::is_some) {
        return Ok(exact_texts.into_iter().flatten().collect());
    }
    let mut taken: HashSet<String> = exact_texts.iter().flatten().cloned().collect();
    let differs = |(key, exact): (&Bound<'py, PyAny>, Option<String>)| {
        if let Some(text) = exact {
            return Ok(text);
        }
        let (text, kind) = (key_text(key)?, key.get_type().name()?);
        let others = std::iter::once(format!("{text} ({kind})"));
        let mut others = others.chain((2_u64..).map(|number| format!("{text} ({kind} {number})")));
        let free = Some(text.clone()).filter(|text| !taken.contains(text));
        let free = free.or_else(|| others.find(|other| !taken.contains(other))).unwrap_or(text);
        taken.insert(free.clone());
        Ok(free)
    };
    keys.zip(exact_texts).map(differs).collect()
}

fn key_text(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = match key.cast::<PyString>() {
        Ok(text) => text.clone(),
        Err(_) => match member_value(key)? {
            Some(value) => text_of(&value)?,
            None => text_of(key)?,
        },
    };
    Ok(text.to_string_lossy().into_owned())
}

fn json(value: &Bound<'_, PyAny>, ancestors: &mut Ancestors) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_string_lossy().into_owned()));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    let as_text = || Ok(Value::String(text_of(value)?.to_string_lossy().into_owned()));
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>().map(Number::from).or_else(|_| value.extract::<u64>().map(Number::from));
        return number.map_or_else(|_| as_text(), |number| Ok(Value::Number(number)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Number::from_f64(value.extract()?).map_or_else(as_text, |number| Ok(Value::Number(number)));
    }
    let entered = ancestors.enter(value, |ancestors| {
        if let Ok(data) = value.cast::<PyDict>() {
            return Ok(Value::Object(map(data, ancestors)?));
        }
        if is_sequence(value) {
            let items = value.try_iter()?.map(|item| json(&item?, ancestors));
            return Ok(Value::Array(items.collect::<PyResult<_>>()?));
        }
        match replaced(value)? {
            Some(other) => json(&other, ancestors),
            None => as_text(),
        }
    })?;
    Ok(match entered {
        Descent::Done(value) => value,
        Descent::HoldsItself => Value::String(again(value).to_owned()),
        Descent::TooDeep if ancestors.is_cut => Value::Null,
        Descent::TooDeep => return Err(ancestors.too_deep()),
    })
}

fn plain_at<'py>(value: &Bound<'py, PyAny>, ancestors: &mut Ancestors) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let is_plain = value.is_none() || value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>();
    if is_plain || value.extract::<f64>().is_ok_and(f64::is_finite) && value.is_instance_of::<PyFloat>() {
        return Ok(value.clone());
    }
    let entered = ancestors.enter(value, |ancestors| {
        if let Ok(data) = value.cast::<PyDict>() {
            let plain = PyDict::new(py);
            for (key, (_, value)) in entries(data)? {
                plain.set_item(key, plain_at(&value, ancestors)?)?;
            }
            return Ok(plain.into_any());
        }
        if is_sequence(value) {
            let list = PyList::empty(py);
            for item in value.try_iter()? {
                list.append(plain_at(&item?, ancestors)?)?;
            }
            return Ok(list.into_any());
        }
        match replaced(value)? {
            Some(other) => plain_at(&other, ancestors),
            None => Ok(text_of(value)?.into_any()),
        }
    })?;
    match entered {
        Descent::Done(value) => Ok(value),
        Descent::HoldsItself => Ok(PyString::new(py, again(value)).into_any()),
        Descent::TooDeep => Err(ancestors.too_deep()),
    }
}

/// Returns Python's placeholder for a recursive value.
fn again(value: &Bound<'_, PyAny>) -> &'static str {
    if is_sequence(value) { "[...]" } else { "{...}" }
}

fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
}

/// Returns the value that represents this one in JSON.
fn replaced<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        let encoded = py.import("base64")?.call_method1("b64encode", (value,))?;
        return encoded.call_method1("decode", ("ascii",)).map(Some);
    }
    // Checked on the type: an object may claim to have every attribute, and a class is not its instance.
    let kind = value.get_type();
    for method in [intern!(py, "isoformat"), intern!(py, "model_dump")] {
        if kind.getattr_opt(method)?.is_some() {
            return unless_failed(value.call_method0(method));
        }
    }
    if let Some(fields) = kind.getattr_opt(intern!(py, "__dataclass_fields__"))? {
        return unless_failed(shown(value, &fields));
    }
    member_value(value)
}

fn member_value<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let members = value.get_type().getattr_opt(intern!(py, "__members__"))?;
    if members.is_some() { value.getattr_opt(intern!(py, "value")) } else { Ok(None) }
}

/// Returns the fields of a dataclass. `dataclasses.asdict` copies the values, which not all values support.
fn shown<'py>(value: &Bound<'py, PyAny>, fields: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(value.py());
    for name in fields.try_iter()? {
        let name = name?.cast_into::<PyString>()?;
        // Init-only fields are missing.
        if let Some(field) = value.getattr_opt(&name)? {
            dict.set_item(name, field)?;
        }
    }
    Ok(dict.into_any())
}

/// Returns `None` if an object fails to describe itself.
fn unless_failed(said: PyResult<Bound<'_, PyAny>>) -> PyResult<Option<Bound<'_, PyAny>>> {
    match said {
        Err(error) if said_by_object(&error) => Ok(None),
        said => said.map(Some),
    }
}

/// Returns a value as text, or its type if that fails.
fn text_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match value.str() {
        Err(error) if said_by_object(&error) => {
            Ok(PyString::new(value.py(), &format!("<{}>", value.get_type().fully_qualified_name()?)))
        }
        text => text,
    }
}

/// Returns `true` for an error of the object itself, which is not an interrupt.
fn said_by_object(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyException>(py))
}

pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(to_python(py, item)?))?;
            list.into_any()
        }
        Value::Object(fields) => to_dict(py, fields.iter().map(|(key, value)| (key.as_str(), value)))?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => number.into_pyobject(py)?.into_any(),
            (_, Some(number), _) => number.into_pyobject(py)?.into_any(),
            (.., number) => PyFloat::new(py, number.unwrap_or(f64::NAN)).into_any(),
        },
    })
}

pub(crate) fn to_dict<'a, 'py>(
    py: Python<'py>,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in fields {
        dict.set_item(key, to_python(py, value)?)?;
    }
    Ok(dict)
}
