//! Tools that are written in Python.

use std::sync::Arc;

use amplifier_agent::provider::ToolSpec;
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_core::Map;
use futures::FutureExt;
use futures::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use crate::bridge::{CallFuture, ask};
use crate::hook::failure;
use crate::ports::Port;
use crate::{encode, log};

/// A Python function that takes the input as a dict, with its description for the model.
pub(crate) struct PyTool {
    function: Arc<Port>,
    spec: ToolSpec,
}

impl PyTool {
    pub(crate) fn new(function: Arc<Port>, name: String, description: String, input_schema: Map) -> Self {
        Self { function, spec: ToolSpec { name, description, input_schema: Value::Object(input_schema) } }
    }
}

impl Tool for PyTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        async move {
            let given = ask(|py| {
                let input = encode::to_dict(py, input.iter().map(|(key, value)| (key.as_str(), value)))?;
                CallFuture::of(self.function.object(py)?.call1((input,))?)
            })
            .await;
            Python::attach(|py| match given {
                Ok(given) => output(given.bind(py)),
                Err(error) => {
                    log::tool_raised(py, &self.spec.name, &error);
                    Err(failed(py, &error))
                }
            })
        }
        .boxed()
    }
}

fn failed(py: Python<'_>, error: &PyErr) -> ToolError {
    ToolError::Failed(failure(py, error).to_string())
}

/// Converts the return value of a tool. Text is the output for the model; a dict is the whole `tool_result`; any other value is its `output`.
fn output(given: &Bound<'_, PyAny>) -> Result<ToolOutput, ToolError> {
    let py = given.py();
    let unreadable = |error: PyErr| failed(py, &error);
    if given.is_none() {
        return Ok(ToolOutput::text(""));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(ToolOutput::text(text.to_string_lossy()));
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        return Ok(ToolOutput { result: encode::to_kept_map(fields).map_err(unreadable)?, artifacts: Vec::new() });
    }
    let fields = PyDict::new(py);
    fields.set_item("output", given).map_err(unreadable)?;
    Ok(ToolOutput { result: encode::to_kept_map(&fields).map_err(unreadable)?, artifacts: Vec::new() })
}
