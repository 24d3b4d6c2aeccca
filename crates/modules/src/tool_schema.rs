//! Tools, as far as conditions can be checked against them.

use serde_json::Value;

/// A tool with the JSON Schemas of its input and its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolSchema {
    /// The name.
    pub name: String,
    /// The schema of the `tool_input`.
    pub input: Value,
    /// The schema of the `tool_result`; `null` if unknown.
    pub result: Value,
}

impl ToolSchema {
    /// Creates the schema of a tool whose results are unknown.
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self { name: name.into(), input, result: Value::Null }
    }

    /// Sets the schema of the result.
    #[must_use]
    pub fn result(mut self, result: Value) -> Self {
        self.result = result;
        self
    }
}
