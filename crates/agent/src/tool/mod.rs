//! Tools: what an agent can do.

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
pub use workspace::{OutsideWorkspace, Workspace};
pub use write::WriteTool;

use std::sync::Arc;

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::provider::ToolSpec;

/// Something an agent can do.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Does it.
    ///
    /// # Cancel safety
    /// Dropping the future stops it for good: processes and all they began are ended, and no file is left half-written.
    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;

    /// The digest of what somebody else says about it: its description and the schema of its input. Allows that were given in advance count for this
    /// definition alone. `None` for a tool that is defined by this program.
    fn definition(&self) -> Option<String> {
        None
    }

    /// Describes its effect with this input, to show a person who is asked; `None` if the input says all. Called on a thread that may block.
    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        let _ = input;
        None
    }

    /// Does it after a person has agreed to its [preview](Self::preview): only if the file is still the one that the person was shown.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let _ = compared_with;
        self.run(input)
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The `tool_result` of `tool:post`. The model reads its `output`, or all of it if it has none.
    pub result: Map,
    /// What it read and wrote that outlives the session.
    pub artifacts: Vec<Artifact>,
}

/// Something that outlives the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Where it is, within the workspace.
    pub path: String,
    /// How large it is.
    pub bytes: u64,
    /// What was done with it.
    pub access: Access,
}

/// What was done with an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was read.
    Read,
    /// It was written.
    Write,
}

impl ToolOutput {
    /// A result that is text for the model.
    pub fn text(output: impl Into<String>) -> Self {
        Self { result: Map::from_iter([("output".to_owned(), Value::String(output.into()))]), artifacts: Vec::new() }
    }

    /// Adds a field to the result, for hooks.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.result.insert(field.to_owned(), value.into());
        self
    }

    /// Adds what was read.
    #[must_use]
    pub fn reading(mut self, path: impl Into<String>, bytes: u64) -> Self {
        self.artifacts.push(Artifact { path: path.into(), bytes, access: Access::Read });
        self
    }

    /// Adds what was written.
    #[must_use]
    pub fn writing(mut self, path: impl Into<String>, bytes: u64) -> Self {
        self.artifacts.push(Artifact { path: path.into(), bytes, access: Access::Write });
        self
    }
}

/// Why a tool failed. The model reads it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input is not what the tool takes.
    #[error("the input of `{tool}` cannot be read: {problem}")]
    Input {
        /// The tool.
        tool: String,
        /// What is wrong, and what is expected.
        problem: String,
    },
    /// It wanted something outside the workspace.
    #[error(transparent)]
    Outside(#[from] OutsideWorkspace),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    /// The word for it in events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Outside(_) => "outside_workspace",
            Self::Failed(_) => "failed",
        }
    }
}

/// The tools with the documented names, all but `Task`, confined to a workspace. A session adds `Task` itself.
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
