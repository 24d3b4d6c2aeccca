//! The input and the result of tools: one type for the schema, and for reading or writing.

use amplifier_core::Map;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ToolError;
use crate::provider::ToolSpec;

/// Returns the description of a tool with input `I`. The comments on the fields become their descriptions.
pub(crate) fn spec<I: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.to_owned(), input_schema: schema::<I>() }
}

/// Returns the schema of an input or a result, in the form that providers accept.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings.transforms.push(Box::new(RecursiveTransform(remove_unsupported)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The tool has a name and a description already.
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// Reads the input of a tool.
///
/// # Errors
/// If a field is missing, unknown or of the wrong type.
pub(crate) fn read<I: DeserializeOwned>(tool: &str, input: Map) -> Result<I, ToolError> {
    serde_path_to_error::deserialize(Value::Object(input)).map_err(|error| match error.path().to_string() {
        path if path == "." => invalid(tool, error.inner().to_string()),
        path => invalid(tool, format!("`{path}`: {}", error.inner())),
    })
}

/// The error for an input that is readable but invalid.
pub(crate) fn invalid(tool: &str, problem: impl Into<String>) -> ToolError {
    ToolError::Input { tool: tool.to_owned(), problem: problem.into() }
}

/// Removes keywords that providers reject: custom formats, and `null` in types. An optional field is simply not required.
fn remove_unsupported(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            schema.insert("type".to_owned(), only);
        }
    }
}
