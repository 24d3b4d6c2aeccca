//! The `Write` tool: writes a file.

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::{StopFlag, blocking};
use super::preview::{changed, preview};
use super::{Tool, ToolError, ToolOutput, Workspace, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Write";

/// Writes a file of the workspace, atomically.
#[derive(Clone, Debug)]
pub struct WriteTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, absolute or relative to the workspace. Missing folders are created.
    pub(super) file_path: String,
    /// The complete content.
    pub(super) content: String,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct WriteOutput {
    /// A sentence about what was written, for the model.
    output: String,
    /// The file, relative to the workspace, without `..` and links.
    file_path: String,
}

impl WriteTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for WriteTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Writes a file, and replaces what was in it. To change a part of a file use `Edit` or `MultiEdit`.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<WriteOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.write(input, None)
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }

    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.write(input, Some(compared_with))
    }
}

impl WriteTool {
    fn write(&self, input: Map, compared_with: Option<ComparedWith>) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = input::read(NAME, input)?;
            let workspace = self.workspace.clone();
            blocking(move |stop| write(&workspace, &input, compared_with, stop)).await
        })
    }
}

fn write(
    workspace: &Workspace,
    input: &Input,
    compared_with: Option<ComparedWith>,
    stop: &StopFlag,
) -> Result<ToolOutput, ToolError> {
    let path = workspace.resolve(&input.file_path)?;
    let name = workspace.display(&path);
    let mut changing = workspace.lock_edits();
    let expected = match compared_with {
        Some(compared) if compared.path != name => return Err(changed(&name)),
        compared => compared.map(|compared| compared.version),
    };
    workspace
        .replace(&path, input.content.as_bytes(), expected.as_deref(), stop)
        .map_err(|error| error.to_tool_error(&name))?;
    changing.forget(&path);
    let lines = match input.content.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    let result = WriteOutput { output: format!("wrote {lines} to `{name}`"), file_path: name.clone() };
    Ok(ToolOutput::new(&result).writing(name, input.content.len() as u64))
}
