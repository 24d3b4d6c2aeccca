//! Python's values as JSON, where JSON is needed: for digests, the record, and events that the kernel itself emits.
//!
//! Tuples and sets become lists, keys become text, dates and times ISO 8601, bytes Base64, enums their values, dataclasses and models
//! dicts; numbers that JSON does not have become text, and so does everything else.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};
use serde_json::{Map, Number, Value};

/// A little more than a digest accepts, so that the kernel says what is too deep. What holds itself ends here.
const DEEPEST: usize = 130;

/// The dict as JSON.
pub(crate) fn to_map(data: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    map(data, DEEPEST)
}

/// The value as Python's `json` writes it: the same as JSON, with the order of keys kept.
pub(crate) fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    plain_at(value, DEEPEST)
}

fn map(data: &Bound<'_, PyDict>, depth: usize) -> PyResult<Map<String, Value>> {
    data.iter().map(|(key, value)| Ok((key_text(&key)?, json(&value, depth)?))).collect()
}

fn key_text(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = match key.cast::<PyString>() {
        Ok(text) => text.clone(),
        Err(_) => key.str()?,
    };
    Ok(text.to_string_lossy().into_owned())
}

fn json(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let Some(deeper) = depth.checked_sub(1) else { return Ok(Value::Null) };
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_string_lossy().into_owned()));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>().map(Number::from).or_else(|_| value.extract::<u64>().map(Number::from));
        return number.map_or_else(|_| text_of(value), |number| Ok(Value::Number(number)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Number::from_f64(value.extract()?).map_or_else(|| text_of(value), |number| Ok(Value::Number(number)));
    }
    if let Ok(data) = value.cast::<PyDict>() {
        return Ok(Value::Object(map(data, deeper)?));
    }
    if is_sequence(value) {
        let items = value.try_iter()?.map(|item| json(&item?, deeper));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    match replaced(value)? {
        Some(other) => json(&other, deeper),
        None => text_of(value),
    }
}

fn plain_at<'py>(value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let Some(deeper) = depth.checked_sub(1) else { return Ok(py.None().into_bound(py)) };
    if let Ok(data) = value.cast::<PyDict>() {
        let plain = PyDict::new(py);
        for (key, value) in data {
            plain.set_item(key_text(&key)?, plain_at(&value, deeper)?)?;
        }
        return Ok(plain.into_any());
    }
    if is_sequence(value) {
        let list = PyList::empty(py);
        for item in value.try_iter()? {
            list.append(plain_at(&item?, deeper)?)?;
        }
        return Ok(list.into_any());
    }
    let is_plain = value.is_none() || value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>();
    if is_plain || value.extract::<f64>().is_ok_and(f64::is_finite) && value.is_instance_of::<PyFloat>() {
        return Ok(value.clone());
    }
    match replaced(value)? {
        Some(other) => plain_at(&other, deeper),
        None => Ok(value.str()?.into_any()),
    }
}

fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
}

/// Another value that stands for this one in JSON.
fn replaced<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        let encoded = py.import("base64")?.call_method1("b64encode", (value,))?;
        return encoded.call_method1("decode", ("ascii",)).map(Some);
    }
    // Asked of the type: an object may claim to have every attribute, and a class is not its instance.
    let kind = value.get_type();
    for method in [intern!(py, "isoformat"), intern!(py, "model_dump")] {
        if kind.getattr_opt(method)?.is_some() {
            return value.call_method0(method).map(Some);
        }
    }
    if kind.getattr_opt(intern!(py, "__dataclass_fields__"))?.is_some() {
        return py.import("dataclasses")?.call_method1("asdict", (value,)).map(Some);
    }
    let members = kind.getattr_opt(intern!(py, "__members__"))?;
    if members.is_some() { value.getattr_opt(intern!(py, "value")) } else { Ok(None) }
}

fn text_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(Value::String(value.str()?.to_string_lossy().into_owned()))
}

/// JSON as Python's values.
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

/// The fields of a JSON object as a dict.
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
