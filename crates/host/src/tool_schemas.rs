//! The tools of a session, for the check of bundles.

use amplifier_agent::tool::{Workspace, reference};
use amplifier_modules::ToolSchema;
use serde_json::{Value, json};

/// Returns the tools of a session without MCP servers.
pub fn tool_schemas(workspace: &Workspace) -> Vec<ToolSchema> {
    let schema = |result: Value| {
        let mut result = result;
        // A failed call has this field instead.
        result["properties"]["error"] = json!({ "type": "string" });
        result
    };
    let tools = reference(workspace).into_iter();
    let tools = tools.map(|tool| {
        let result = tool.result_schema.map(schema).unwrap_or_default();
        ToolSchema::new(tool.spec.name, tool.spec.input_schema).result(result)
    });
    tools.collect()
}
