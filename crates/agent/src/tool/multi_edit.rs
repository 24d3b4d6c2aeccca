//! The `MultiEdit` tool: changes several parts of a file at once.

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::edit::{EditOutput, EditResult, FileEdit, Replacement};
use super::preview::preview;
use super::{Tool, ToolError, ToolOutput, Workspace, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "MultiEdit";

/// Changes several parts of a file of the workspace, atomically.
#[derive(Clone, Debug)]
pub struct MultiEditTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the workspace.
    file_path: String,
    /// The replacements, applied in order to the result of those before.
    #[schemars(length(min = 1))]
    edits: Vec<Replacement>,
}

impl MultiEditTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for MultiEditTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Replaces several texts in one file. If one of them cannot be replaced, nothing is changed. Read the file first.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<EditOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.edit(input, None)
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }

    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.edit(input, Some(compared_with))
    }
}

impl MultiEditTool {
    fn edit(&self, input: Map, compared_with: Option<ComparedWith>) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { read(input)?.run(&self.workspace, compared_with).await })
    }
}

pub(super) fn read(input: Map) -> Result<FileEdit, ToolError> {
    let Input { file_path, edits } = input::read(NAME, input)?;
    if edits.is_empty() {
        return Err(input::invalid(NAME, "`edits` is empty: give at least one"));
    }
    for (index, edit) in edits.iter().enumerate() {
        edit.check().map_err(|problem| input::invalid(NAME, format!("`edits[{index}]`: {problem}")))?;
    }
    Ok(FileEdit { file_path, replacements: edits, apply })
}

fn apply(edits: &[Replacement], text: &str, name: &str) -> Result<EditResult, ToolError> {
    let (mut text, mut count) = (text.to_owned(), 0);
    for (index, edit) in edits.iter().enumerate() {
        let (changed, times) = edit.apply(&text, name).map_err(|problem| {
            ToolError::Failed(format!("nothing was changed, because of `edits[{index}]`: {problem}"))
        })?;
        text = changed;
        count += times;
    }
    let edits = if edits.len() == 1 { "1 edit".to_owned() } else { format!("{} edits", edits.len()) };
    Ok(EditResult { text, count, output: format!("made {edits} in `{name}`") })
}
