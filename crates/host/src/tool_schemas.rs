//! The tools of a session, for the check of bundles.

use amplifier_agent::tool::{Workspace, standard};
use amplifier_modules::ToolSchema;
use serde_json::{Value, json};

/// Returns the tools of a session without MCP servers.
pub fn tool_schemas(workspace: &Workspace) -> Vec<ToolSchema> {
    let specs = standard(workspace).into_iter().map(|tool| tool.spec());
    let schemas = specs.map(|spec| {
        let result = result_of(&spec.name);
        ToolSchema::new(spec.name, spec.input_schema).result(result)
    });
    schemas.chain([task()]).collect()
}

/// Returns the tool for delegation, which every session has.
fn task() -> ToolSchema {
    let text = json!({ "type": "string" });
    let input = json!({
        "type": "object",
        "properties": { "task": text, "agent_name": text },
        "required": ["task"],
        "additionalProperties": false,
    });
    ToolSchema::new("Task", input)
}

/// Returns the schema of a tool's result. A failed call has an `error` instead.
fn result_of(tool: &str) -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let own = match tool {
        "Read" => json!({ "file_path": text, "lines": number }),
        "Write" => json!({ "file_path": text }),
        "Edit" | "MultiEdit" => json!({ "file_path": text, "replacements": number }),
        "Bash" => json!({ "exit_code": number }),
        "Glob" => json!({ "files": {} }),
        "Grep" => json!({ "matches": {} }),
        "Todo" => json!({ "todos": { "type": "array" } }),
        _ => return Value::Null,
    };
    let mut properties = json!({ "output": text, "error": text });
    if let (Value::Object(properties), Value::Object(own)) = (&mut properties, own) {
        properties.extend(own);
    }
    json!({ "type": "object", "properties": properties })
}
