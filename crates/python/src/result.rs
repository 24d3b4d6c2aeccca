//! `HookResult`: the result of a hook, with the fields documented for Python.

use amplifier_core::text::{EscapeMode, first_chars, visible};
use amplifier_core::{DefaultDecision, FlatAction, Level, Role};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyType};

use crate::encode;
use crate::fields::{
    action_word, default_word, invalid, level_word, read_action, read_data, read_default, read_flag, read_level,
    read_options, read_role, read_seconds, read_text, role_word, type_name,
};

/// The result of a hook: an action and its fields.
#[pyclass(module = "amplifier_core.models", subclass)]
pub(crate) struct HookResult {
    pub(crate) action: FlatAction,
    pub(crate) data: Option<Py<PyDict>>,
    pub(crate) reason: Option<Py<PyString>>,
    pub(crate) context_injection: Option<Py<PyString>>,
    pub(crate) context_injection_role: Role,
    pub(crate) ephemeral: bool,
    pub(crate) append_to_last_tool_result: bool,
    pub(crate) approval_prompt: Option<Py<PyString>>,
    pub(crate) approval_options: Option<Py<PyList>>,
    pub(crate) approval_timeout: f64,
    pub(crate) approval_default: DefaultDecision,
    pub(crate) approval_fallback: bool,
    pub(crate) suppress_output: bool,
    pub(crate) user_message: Option<Py<PyString>>,
    pub(crate) user_message_level: Level,
    pub(crate) user_message_source: Option<Py<PyString>>,
    /// The fields that were set, by index, even if set to the default.
    pub(crate) given: u16,
}

impl Default for HookResult {
    fn default() -> Self {
        let flat = amplifier_core::FlatResult::<()>::default();
        Self {
            action: flat.action,
            data: None,
            reason: None,
            context_injection: None,
            context_injection_role: flat.context_injection_role,
            ephemeral: flat.ephemeral,
            append_to_last_tool_result: flat.append_to_last_tool_result,
            approval_prompt: None,
            approval_options: None,
            approval_timeout: flat.approval_timeout,
            approval_default: flat.approval_default,
            approval_fallback: flat.approval_fallback,
            suppress_output: flat.suppress_output,
            user_message: None,
            user_message_level: flat.user_message_level,
            user_message_source: None,
            given: 0,
        }
    }
}

impl HookResult {
    /// Validates and sets a field.
    // Inlined, so that the choice of a known field costs nothing.
    #[inline]
    fn set(&mut self, field: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match field {
            "action" => self.action = read_action(field, value)?,
            "data" => self.data = read_data(field, value)?,
            "reason" => self.reason = read_text(field, value)?,
            "context_injection" => self.context_injection = read_text(field, value)?,
            "context_injection_role" => self.context_injection_role = read_role(field, value)?,
            "ephemeral" => self.ephemeral = read_flag(field, value)?,
            "append_to_last_tool_result" => self.append_to_last_tool_result = read_flag(field, value)?,
            "approval_prompt" => self.approval_prompt = read_text(field, value)?,
            "approval_options" => self.approval_options = read_options(field, value)?,
            "approval_timeout" => self.approval_timeout = read_seconds(field, value)?,
            "approval_default" => self.approval_default = read_default(field, value)?,
            "approval_fallback" => self.approval_fallback = read_flag(field, value)?,
            "suppress_output" => self.suppress_output = read_flag(field, value)?,
            "user_message" => self.user_message = read_text(field, value)?,
            "user_message_level" => self.user_message_level = read_level(field, value)?,
            "user_message_source" => self.user_message_source = read_text(field, value)?,
            _ => {
                let name = visible(first_chars(field, 60), EscapeMode::Exact);
                return Err(PyValueError::new_err(format!(
                    "unknown field `{name}`; a HookResult has: {}",
                    FIELDS.join(", ")
                )));
            }
        }
        self.given |= FIELDS.iter().position(|known| *known == field).map_or(0, |place| 1 << place);
        Ok(())
    }

    fn get<'py>(&self, py: Python<'py>, field: &str) -> Bound<'py, PyAny> {
        fn optional<'py, T>(py: Python<'py>, value: &Option<Py<T>>) -> Bound<'py, PyAny> {
            value.as_ref().map_or_else(|| py.None().into_bound(py), |value| value.bind(py).as_any().clone())
        }
        let flag = |value| PyBool::new(py, value).to_owned().into_any();
        match field {
            "action" => action_word(py, self.action).clone().into_any(),
            "data" => optional(py, &self.data),
            "reason" => optional(py, &self.reason),
            "context_injection" => optional(py, &self.context_injection),
            "context_injection_role" => role_word(py, self.context_injection_role).clone().into_any(),
            "ephemeral" => flag(self.ephemeral),
            "append_to_last_tool_result" => flag(self.append_to_last_tool_result),
            "approval_prompt" => optional(py, &self.approval_prompt),
            "approval_options" => optional(py, &self.approval_options),
            "approval_timeout" => PyFloat::new(py, self.approval_timeout).into_any(),
            "approval_default" => default_word(py, self.approval_default).clone().into_any(),
            "approval_fallback" => flag(self.approval_fallback),
            "suppress_output" => flag(self.suppress_output),
            "user_message" => optional(py, &self.user_message),
            "user_message_source" => optional(py, &self.user_message_source),
            _ => level_word(py, self.user_message_level).clone().into_any(),
        }
    }

    /// Reads the flat form: a dict with these fields and no others.
    pub(crate) fn from_dict(fields: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut result = Self::default();
        for (field, value) in fields {
            let name = field.cast::<PyString>().map_err(|_| invalid("a field's name", "a str", &field))?;
            result.set(name.to_str()?, &value)?;
        }
        Ok(result)
    }

    /// Returns a copy with these fields, and with the attributes of a subclass.
    fn copied<'py>(
        slf: &Bound<'py, Self>,
        fields: &Bound<'py, PyDict>,
        keep: impl FnOnce(Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = Self::of_class(&slf.get_type(), fields)?;
        if let Some(more) = slf.getattr_opt(intern!(slf.py(), "__dict__"))? {
            copy.getattr(intern!(slf.py(), "__dict__"))?.call_method1("update", (keep(more.cast_into()?)?,))?;
        }
        Ok(copy)
    }

    fn of_class<'py>(class: &Bound<'py, PyType>, fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        class.call((), Some(fields))
    }
}

/// The attribute `model_fields` of the class. Made on demand, because only pydantic has the type of its values.
#[pyclass(frozen)]
struct ModelFields;

#[pymethods]
impl ModelFields {
    fn __get__<'py>(
        &self,
        py: Python<'py>,
        _result: Option<Bound<'py, PyAny>>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        py.import("amplifier_core._pydantic")?.call_method1("model_fields", (class,))
    }
}

/// The result of `__reduce__`: a callable, its arguments and the state.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyDict>,), Option<Bound<'py, PyAny>>);

/// An argument that may be `None`. An `Option` would not distinguish `None` from a missing argument.
struct Argument<'a, 'py>(Option<Borrowed<'a, 'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Argument<'a, 'py> {
    type Error = std::convert::Infallible;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Self(Some(object)))
    }
}

/// Adds a property for each field.
macro_rules! properties {
    ($($get:ident, $set:ident, $field:literal;)+) => {
        /// The fields in their documented order.
        pub(crate) const FIELDS: [&str; 16] = [$($field),+];

        #[pymethods]
        impl HookResult {
            /// Creates a result. Missing fields have their defaults.
            #[new]
            #[allow(clippy::too_many_arguments, reason = "they are the documented ones")]
            #[pyo3(
                signature = (*, $($get=Argument(None)),+),
                text_signature = "(*, action='continue', data=None, reason=None, context_injection=None, context_injection_role='system', ephemeral=False, append_to_last_tool_result=False, approval_prompt=None, approval_options=None, approval_timeout=300.0, approval_default='deny', approval_fallback=False, suppress_output=False, user_message=None, user_message_level='info', user_message_source=None)"
            )]
            fn new($($get: Argument<'_, '_>),+) -> PyResult<Self> {
                let mut result = Self::default();
                $(if let Some(value) = $get.0 {
                    result.set($field, &value)?;
                })+
                Ok(result)
            }

            $(
                #[getter($field)]
                fn $get<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
                    self.get(py, $field)
                }

                #[setter($field)]
                fn $set(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                    self.set($field, value)
                }
            )+

            /// Applies the defaults of a subclass.
            #[classmethod]
            #[pyo3(signature = (**_options))]
            fn __init_subclass__(class: &Bound<'_, PyType>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
                let own = class.getattr(intern!(class.py(), "__dict__"))?;
                let mut fields = Vec::new();
                for field in FIELDS {
                    if own.contains(field)? {
                        fields.push(field);
                    }
                }
                if !fields.is_empty() {
                    class.py().import("amplifier_core._results")?.call_method1("take_defaults", (class, fields))?;
                }
                Ok(())
            }

            /// Returns the fields as a dict. With `mode="json"`, all values have a JSON form.
            #[allow(clippy::too_many_arguments, reason = "they are the documented ones")]
            #[pyo3(signature = (*, mode="python", include=None, exclude=None, exclude_unset=false, exclude_defaults=false, exclude_none=false))]
            fn model_dump<'py>(
                &self,
                py: Python<'py>,
                mode: &str,
                include: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                exclude_unset: bool,
                exclude_defaults: bool,
                exclude_none: bool,
            ) -> PyResult<Bound<'py, PyDict>> {
                for names in [include, exclude].into_iter().flatten() {
                    if names.is_instance_of::<PyDict>() {
                        let text = "`include` and `exclude` take the names of fields; what is in a field cannot be chosen";
                        return Err(PyTypeError::new_err(text));
                    }
                }
                let dump = if exclude_unset { self.given(py)? } else { self.fields(py)? };
                let defaults = Self::default();
                for (field, value) in dump.copy()? {
                    let wanted = include.map_or(Ok(true), |include| include.contains(&field))?
                        && !exclude.map_or(Ok(false), |exclude| exclude.contains(&field))?
                        && !(exclude_none && value.is_none())
                        && !(exclude_defaults && value.eq(defaults.get(py, field.extract()?))?);
                    if !wanted {
                        dump.del_item(field)?;
                    } else if mode == "json" {
                        dump.set_item(field, encode::plain(&value)?)?;
                    } else if let Ok(value) = value.cast::<PyDict>() {
                        // Copied, so that changing the dump does not change the result.
                        dump.set_item(field, value.copy()?)?;
                    } else if let Ok(value) = value.cast::<PyList>() {
                        dump.set_item(field, value.get_slice(0, value.len()))?;
                    }
                }
                Ok(dump)
            }

            /// Returns the fields as JSON.
            #[allow(clippy::too_many_arguments, reason = "they are the documented ones")]
            #[pyo3(signature = (*, indent=None, include=None, exclude=None, exclude_unset=false, exclude_defaults=false, exclude_none=false))]
            fn model_dump_json<'py>(
                &self,
                py: Python<'py>,
                indent: Option<usize>,
                include: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                exclude_unset: bool,
                exclude_defaults: bool,
                exclude_none: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                let dump = self.model_dump(py, "json", include, exclude, exclude_unset, exclude_defaults, exclude_none)?;
                let options = PyDict::new(py);
                options.set_item("ensure_ascii", false)?;
                match indent {
                    Some(indent) => options.set_item("indent", indent)?,
                    None => options.set_item("separators", (",", ":"))?,
                }
                let dumps = py.import("json")?.getattr("dumps")?;
                let json = dumps.call((&dump,), Some(&options))?.cast_into::<PyString>()?;
                // An unpaired surrogate cannot be written unescaped.
                if json.to_str().is_err() {
                    options.set_item("ensure_ascii", true)?;
                    return dumps.call((dump,), Some(&options));
                }
                Ok(json.into_any())
            }

            /// Validates a dict, or copies a result.
            #[classmethod]
            fn model_validate<'py>(class: &Bound<'py, PyType>, obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = obj.py();
                let result = match (obj.cast::<Self>(), obj.cast::<PyDict>()) {
                    (Ok(result), _) => Self::from_dict(&result.borrow().given(py)?)?,
                    (_, Ok(fields)) => Self::from_dict(fields)?,
                    _ => {
                        let found = type_name(obj);
                        return Err(PyValueError::new_err(format!("expected a dict or a HookResult, found {found}")));
                    }
                };
                if class.is(py.get_type::<Self>()) {
                    return Ok(Bound::new(py, result)?.into_any());
                }
                Self::of_class(class, &result.given(py)?)
            }

            /// Validates JSON.
            #[classmethod]
            fn model_validate_json<'py>(
                class: &Bound<'py, PyType>,
                json_data: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                Self::model_validate(class, &class.py().import("amplifier_core._results")?.call_method1("loads", (json_data,))?)
            }

            /// Makes results usable as fields of pydantic models, which call this.
            #[classmethod]
            fn __get_pydantic_core_schema__<'py>(
                class: &Bound<'py, PyType>,
                _source: &Bound<'py, PyAny>,
                _handler: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                class.py().import("amplifier_core._pydantic")?.call_method1("core_schema", (class,))
            }

            /// Returns the JSON Schema of results for pydantic models.
            #[classmethod]
            fn __get_pydantic_json_schema__<'py>(
                class: &Bound<'py, PyType>,
                _schema: &Bound<'py, PyAny>,
                _handler: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                Self::model_json_schema(class)
            }

            /// Returns the JSON Schema of results.
            #[classmethod]
            fn model_json_schema<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
                const SCHEMA: &str = include_str!("../../../schema/hook-result.schema.json");
                class.py().import("amplifier_core._pydantic")?.call_method1("json_schema", (SCHEMA,))
            }

            /// The fields as pydantic describes them.
            #[classattr]
            fn model_fields() -> ModelFields {
                ModelFields
            }

            /// Returns a copy with some fields changed; `deep` also copies `data`.
            #[pyo3(signature = (*, update=None, deep=false))]
            pub(crate) fn model_copy<'py>(
                slf: &Bound<'py, Self>,
                update: Option<&Bound<'py, PyDict>>,
                deep: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let mut fields = slf.borrow().given(py)?;
                if deep {
                    fields = py.import("copy")?.call_method1("deepcopy", (fields,))?.cast_into()?;
                }
                if let Some(update) = update {
                    fields.update(update.as_mapping())?;
                }
                Self::copied(slf, &fields, |more| match deep {
                    true => Ok(py.import("copy")?.call_method1("deepcopy", (more,))?.cast_into()?),
                    false => Ok(more),
                })
            }

            fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                Self::model_copy(slf, None, false)
            }

            fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let deep = |fields: Bound<'py, PyDict>| -> PyResult<Bound<'py, PyDict>> {
                    Ok(py.import("copy")?.call_method1("deepcopy", (fields, memo))?.cast_into()?)
                };
                let fields = deep(slf.borrow().given(py)?)?;
                Self::copied(slf, &fields, deep)
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
                let py = slf.py();
                let validate = slf.get_type().getattr(intern!(py, "model_validate"))?;
                Ok((validate, (slf.borrow().given(py)?,), slf.getattr_opt(intern!(py, "__dict__"))?))
            }

            fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, how: CompareOp) -> PyResult<Py<PyAny>> {
                let py = slf.py();
                let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
                let is_equal = || slf.borrow().fields(py)?.eq(other.borrow().fields(py)?);
                let answer = match how {
                    CompareOp::Eq => is_equal()?,
                    CompareOp::Ne => !is_equal()?,
                    _ => return Ok(py.NotImplemented()),
                };
                Ok(PyBool::new(py, answer).to_owned().into_any().unbind())
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let fields = slf.borrow().fields(slf.py())?;
                let shown: Vec<_> = fields
                    .iter()
                    .map(|(field, value)| Ok(format!("{field}={}", value.repr()?)))
                    .collect::<PyResult<_>>()?;
                Ok(format!("{}({})", slf.get_type().name()?, shown.join(", ")))
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                visit.call(&self.data)?;
                visit.call(&self.approval_options)
            }

            fn __clear__(&mut self) {
                self.data = None;
                self.approval_options = None;
            }
        }
    };
}

properties! {
    action, set_action, "action";
    data, set_data, "data";
    reason, set_reason, "reason";
    context_injection, set_context_injection, "context_injection";
    context_injection_role, set_context_injection_role, "context_injection_role";
    ephemeral, set_ephemeral, "ephemeral";
    append_to_last_tool_result, set_append_to_last_tool_result, "append_to_last_tool_result";
    approval_prompt, set_approval_prompt, "approval_prompt";
    approval_options, set_approval_options, "approval_options";
    approval_timeout, set_approval_timeout, "approval_timeout";
    approval_default, set_approval_default, "approval_default";
    approval_fallback, set_approval_fallback, "approval_fallback";
    suppress_output, set_suppress_output, "suppress_output";
    user_message, set_user_message, "user_message";
    user_message_level, set_user_message_level, "user_message_level";
    user_message_source, set_user_message_source, "user_message_source";
}

impl HookResult {
    /// Returns every field. Later additions are omitted if unset, because other implementations do not have them.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        let is_present = |field: &&str| match *field {
            "approval_fallback" => self.approval_fallback,
            "user_message_source" => self.user_message_source.is_some(),
            _ => true,
        };
        for field in FIELDS.into_iter().filter(is_present) {
            fields.set_item(field, self.get(py, field))?;
        }
        Ok(fields)
    }

    /// Returns the fields that were set or differ from their defaults.
    fn given<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (fields, defaults) = (PyDict::new(py), Self::default());
        for (place, field) in FIELDS.into_iter().enumerate() {
            let value = self.get(py, field);
            if self.given & 1 << place != 0 || value.ne(defaults.get(py, field))? {
                fields.set_item(field, value)?;
            }
        }
        Ok(fields)
    }
}
