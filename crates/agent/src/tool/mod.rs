//! The tools of an agent.

mod bash;
mod blocking;
mod diff;
mod edit;
mod edit_history;
mod excerpt;
mod files;
mod glob;
mod grep;
pub(crate) mod input;
mod mcp;
mod mcp_definitions;
mod multi_edit;
mod preview;
mod protected_paths;
mod read;
mod todo;
mod walk;
mod workspace;
mod write;

pub use bash::BashTool;
pub use edit::EditTool;
pub use glob::GlobTool;
pub use grep::GrepTool;
pub use mcp::{McpError, McpServer};
pub use mcp_definitions::{McpDefinition, McpToolDefinition};
pub use multi_edit::MultiEditTool;
pub use preview::preview;
pub(crate) use preview::preview_or_error;
pub use read::ReadTool;
pub use todo::TodoTool;
pub use workspace::{OutsideWorkspace, PathCheck, Workspace};
pub use write::WriteTool;

use std::sync::Arc;

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::provider::ToolSpec;
use crate::sub_agent::TaskTool;

/// A tool of an agent.
pub trait Tool: Send + Sync + 'static {
    /// Returns the description for the model.
    fn spec(&self) -> ToolSpec;

    /// Returns the JSON Schema of [`ToolOutput::result`], for policies; none if a third party defines the tool.
    fn result_schema(&self) -> Option<Value> {
        None
    }

    /// Runs the tool.
    ///
    /// # Cancel safety
    /// Dropping the future stops the tool for good: processes are killed with their descendants, and no file is left half-written.
    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;

    /// Returns the digest of the description and the input schema, if a third party defines the tool. Approval rules apply only to this definition.
    /// `None` for a tool of this program.
    fn definition(&self) -> Option<String> {
        None
    }

    /// Describes the effect for an approval request; `None` if the input is self-explanatory. Called on a thread that may block.
    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        let _ = input;
        None
    }

    /// Runs the tool after a user approved its [preview](Self::preview), if the file is still the version in the preview.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let _ = compared_with;
        self.run(input)
    }
}

/// The output of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The `tool_result` of `tool:post`. The model reads its `output`, or everything if there is none.
    pub result: Map,
    /// The files that were read and written.
    pub artifacts: Vec<Artifact>,
}

/// A file that the tool read or wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// The path within the workspace.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The kind of access.
    pub access: Access,
}

/// The kind of access to an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The file was read.
    Read,
    /// The file was written.
    Write,
}

impl ToolOutput {
    /// An output with the fields of a type, whose schema is the [result schema](Tool::result_schema) of the tool.
    pub(crate) fn new(result: &impl Serialize) -> Self {
        match serde_json::to_value(result) {
            Ok(Value::Object(result)) => Self { result, artifacts: Vec::new() },
            // INVARIANT: results are structs with text keys.
            _ => Self::default(),
        }
    }

    /// An output with text for the model.
    pub fn text(output: impl Into<String>) -> Self {
        Self { result: Map::from_iter([("output".to_owned(), Value::String(output.into()))]), artifacts: Vec::new() }
    }

    /// Adds a field to the result, for hooks.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.result.insert(field.to_owned(), value.into());
        self
    }

    /// Adds a file that was read.
    #[must_use]
    pub fn reading(mut self, path: impl Into<String>, bytes: u64) -> Self {
        self.artifacts.push(Artifact { path: path.into(), bytes, access: Access::Read });
        self
    }

    /// Adds a file that was written.
    #[must_use]
    pub fn writing(mut self, path: impl Into<String>, bytes: u64) -> Self {
        self.artifacts.push(Artifact { path: path.into(), bytes, access: Access::Write });
        self
    }
}

/// The reason why a tool failed. The model reads it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input is invalid.
    #[error("invalid input of `{tool}`: {problem}")]
    Input {
        /// The tool.
        tool: String,
        /// The problem, and the expected input.
        problem: String,
    },
    /// The path is outside the workspace.
    #[error(transparent)]
    Outside(#[from] OutsideWorkspace),
    /// Another failure.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    /// Returns the kind for events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Outside(_) => "outside_workspace",
            Self::Failed(_) => "failed",
        }
    }
}

/// The reference of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolReference {
    /// The description for the model.
    #[serde(flatten)]
    pub spec: ToolSpec,
    /// The JSON Schema of `tool_result` after a successful call. After a failure, `tool_result` has the text `error` instead.
    pub result_schema: Option<Value>,
}

/// Returns the reference of the documented tools, `Task` included.
pub fn reference(workspace: &Workspace) -> Vec<ToolReference> {
    let tools = standard(workspace).into_iter().chain([Arc::new(TaskTool) as Arc<dyn Tool>]);
    tools.map(|tool| ToolReference { spec: tool.spec(), result_schema: tool.result_schema() }).collect()
}

/// Returns the documented tools for a workspace, without `Task`, which the session adds.
pub fn standard(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadTool::new(workspace.clone())),
        Arc::new(WriteTool::new(workspace.clone())),
        Arc::new(EditTool::new(workspace.clone())),
        Arc::new(MultiEditTool::new(workspace.clone())),
        Arc::new(BashTool::new(workspace.clone())),
        Arc::new(GlobTool::new(workspace.clone())),
        Arc::new(GrepTool::new(workspace.clone())),
        Arc::new(TodoTool::new()),
    ]
}
