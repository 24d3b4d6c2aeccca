//! Approval requests for Python.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::text::{self, EscapeMode};
use amplifier_core::{ApprovalOption, DefaultDecision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::data::read_timestamp;
use crate::encode;

/// An open approval request.
#[pyclass(module = "amplifier_core.approval", frozen)]
pub(crate) struct ApprovalRequest(pub(crate) Arc<amplifier_core::OpenRequest>, pub(crate) Duration);

#[pymethods]
impl ApprovalRequest {
    /// The id of the request, unique within the session.
    #[getter]
    fn id(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn hook(&self) -> &str {
        &self.0.hook
    }

    #[getter]
    fn event(&self) -> &str {
        self.0.event.as_str()
    }

    /// The text of the request.
    #[getter]
    fn prompt(&self) -> &str {
        &self.0.prompt
    }

    /// The hook's reason.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// A warning from the kernel for the approver.
    #[getter]
    fn warning(&self) -> Option<&str> {
        self.0.warning.as_deref()
    }

    /// The preview of the operation as JSON: `title`, `target`, `summary`, `warnings`, `body`, `fields`, `truncated`, `compared_with`.
    #[getter]
    fn preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let preview =
            serde_json::to_value(&self.0.preview).map_err(|error| PyValueError::new_err(error.to_string()))?;
        encode::to_python(py, &preview)
    }

    /// The rules that an answer may create, as JSON: `operations`, `label`, `scope`, `explanation`.
    #[getter]
    fn offers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let offers = serde_json::to_value(&self.0.offers).map_err(|error| PyValueError::new_err(error.to_string()))?;
        encode::to_python(py, &offers)
    }

    /// The labels of the options.
    #[getter]
    fn options(&self) -> Vec<&str> {
        self.0.options.iter().map(|option| option.label.as_str()).collect()
    }

    /// The effect of each option: `allow_once`, `allow_always`, `deny` or `deny_always`.
    #[getter]
    fn effects(&self) -> Vec<&'static str> {
        self.0.options.iter().map(|option| option.effect.as_str()).collect()
    }

    /// The time limit in seconds.
    #[getter]
    fn timeout(&self) -> f64 {
        self.1.as_secs_f64()
    }

    /// The decision if there is no answer in time: `allow` or `deny`.
    #[getter]
    pub(crate) fn default(&self) -> &'static str {
        match self.0.default {
            DefaultDecision::Allow => "allow",
            DefaultDecision::Deny => "deny",
        }
    }

    /// The data of the operation, as JSON.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = encode::to_dict(py, self.0.data.iter())?;
        read_timestamp(&data)?;
        Ok(data)
    }

    /// The digest of the data.
    #[getter]
    fn digest(&self) -> String {
        self.0.digest.to_string()
    }

    /// Resolves typed text to an option: its number, counted from 1, or its label in any case.
    fn option(&self, typed: &str) -> Option<&str> {
        self.0.option(typed).map(|option| option.label.as_str())
    }

    fn __repr__(&self) -> String {
        format!("<ApprovalRequest {} of {}: {:?}>", self.0.number, self.0.hook, self.0.prompt)
    }
}

/// Returns the text with control and hidden characters escaped, in one line or with its line breaks.
#[pyfunction]
#[pyo3(signature = (text, *, lines = false))]
pub(crate) fn visible(text: &Bound<'_, PyString>, lines: bool) -> String {
    text::visible(&text.to_string_lossy(), if lines { EscapeMode::Lines } else { EscapeMode::Exact })
}

/// Resolves typed text to a label: its number, counted from 1, or the label in any case.
#[pyfunction]
pub(crate) fn meant(labels: Vec<String>, typed: &str) -> Option<String> {
    let options: Vec<ApprovalOption> = labels.into_iter().map(ApprovalOption::from).collect();
    ApprovalOption::resolve(&options, typed).map(|option| option.label.clone())
}
