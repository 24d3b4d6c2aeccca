//! `amplifier tools`: the reference of the tools.

use std::fmt::Write;
use std::process::ExitCode;

use amplifier_agent::tool::{ToolReference, Workspace, reference};
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Value, json};

use super::hooks::{SchemaField, schema_fields};
use super::output::{print_json, print_json_lines, print_text};

/// Explain tools: their input and their result, for rules and hooks
#[derive(Args, Debug)]
pub struct Tools {
    /// Tool to explain, such as `Write` [default: list all tools]
    name: Option<String>,
    /// Print JSON, one tool per line, with the fields and the JSON Schemas of input and result
    #[arg(long)]
    json: bool,
}

impl Tools {
    /// Prints the list of tools, or the description of one.
    ///
    /// # Errors
    /// If the tool is unknown or the output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let tools =
            reference(&Workspace::new(".").context("the current folder cannot be read; change to another one")?);
        let find = |name: String| {
            let found = tools.iter().find(|tool| tool.spec.name == name);
            found.ok_or_else(|| unknown(&name, &tools))
        };
        match (self.name, self.json) {
            (None, false) => print_text(&list(&tools)),
            (None, true) => print_json_lines(tools.iter().map(to_json)),
            (Some(name), false) => print_text(&page(find(name)?)),
            (Some(name), true) => print_json(&to_json(find(name)?)),
        }
    }
}

fn unknown(name: &str, tools: &[ToolReference]) -> anyhow::Error {
    if name.starts_with("mcp__") {
        return anyhow!("unknown tool `{name}`; tools of MCP servers are described by their server");
    }
    let names: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.spec.name)).collect();
    anyhow!("unknown tool `{name}`; expected one of {}", names.join(", "))
}

/// Returns the fields of the result; none if a third party defines them.
fn result_fields(tool: &ToolReference) -> Vec<SchemaField> {
    tool.result_schema.as_ref().map(schema_fields).unwrap_or_default()
}

fn to_json(tool: &ToolReference) -> Value {
    json!({
        "name": tool.spec.name,
        "description": tool.spec.description,
        "input": schema_fields(&tool.spec.input_schema),
        "result": result_fields(tool),
        "input_schema": tool.spec.input_schema,
        "result_schema": tool.result_schema,
    })
}

fn list(tools: &[ToolReference]) -> String {
    let mut text = String::new();
    for tool in tools {
        let (purpose, _) = tool.spec.description.split_once(". ").unwrap_or((&tool.spec.description, ""));
        _ = writeln!(text, "{:<10} {}.", tool.spec.name, purpose.trim_end_matches('.'));
    }
    text.push_str("\nFor the fields of input and result: amplifier tools NAME\n");
    text
}

fn page(tool: &ToolReference) -> String {
    let mut text = format!("{}: {}\n", tool.spec.name, tool.spec.description);
    table("Input (`tool_input`)", &schema_fields(&tool.spec.input_schema), &mut text);
    table("Result (`tool_result` at `tool:post`)", &result_fields(tool), &mut text);
    text.push_str("\nAfter a failure, `success` is false, and `error` is the only field of the result.\n");
    text
}

fn table(title: &str, fields: &[SchemaField], text: &mut String) {
    _ = writeln!(text, "\n{title}");
    for SchemaField { name, kind, is_required, meaning, .. } in fields {
        let optional = if *is_required { "" } else { "Optional. " };
        _ = writeln!(text, "  {name:<24} {kind:<15} {optional}{meaning}");
    }
}
