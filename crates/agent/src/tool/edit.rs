//! The `Edit` tool: changes a part of a file.

use std::path::{Path, PathBuf};

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::{StopFlag, blocking};
use super::files::{MAX_FILE_BYTES, failed, is_binary};
use super::preview::{changed, preview, version_of, version_of_read};
use super::{Tool, ToolError, ToolOutput, Workspace, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Edit";

/// Changes a part of a file of the workspace, atomically.
#[derive(Clone, Debug)]
pub struct EditTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the workspace.
    file_path: String,
    /// The text to replace, exactly as in the file, without line numbers. Must occur once, unless `replace_all` is set.
    old_string: String,
    /// The new text.
    new_string: String,
    /// `true` to replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl EditTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for EditTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(NAME, "Replaces a text in a file by another. Read the file first.")
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

impl EditTool {
    fn edit(&self, input: Map, compared_with: Option<ComparedWith>) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { read(input)?.run(&self.workspace, compared_with).await })
    }
}

pub(super) fn read(input: Map) -> Result<FileEdit, ToolError> {
    let Input { file_path, old_string, new_string, replace_all } = input::read(NAME, input)?;
    let replacement = Replacement { old_string, new_string, replace_all };
    replacement.check().map_err(|problem| input::invalid(NAME, problem))?;
    Ok(FileEdit { file_path, replacements: vec![replacement], apply })
}

fn apply(replacements: &[Replacement], text: &str, name: &str) -> Result<EditResult, ToolError> {
    let mut result = EditResult { text: text.to_owned(), count: 0, output: String::new() };
    for replacement in replacements {
        let (text, count) = replacement.apply(&result.text, name).map_err(ToolError::Failed)?;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        result = EditResult { text, count, output: format!("replaced the text {times} in `{name}`") };
    }
    Ok(result)
}

/// The result of `Edit` and `MultiEdit`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EditOutput {
    /// A sentence about what was replaced, for the model.
    output: String,
    /// The file, relative to the workspace, without `..` and links.
    file_path: String,
    /// The number of replacements.
    replacements: usize,
}

/// A text and its replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replacement {
    /// The text to replace, exactly as in the file, without line numbers. Must occur once, unless `replace_all` is set.
    pub(super) old_string: String,
    /// The new text.
    pub(super) new_string: String,
    /// `true` to replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Replacement {
    /// Fails if the replacement is empty or has no effect.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.old_string.is_empty() {
            return Err("`old_string` is empty: give the text to replace, or use `Write` to make a file".to_owned());
        }
        if self.old_string == self.new_string {
            return Err("`old_string` and `new_string` are the same: nothing would change".to_owned());
        }
        Ok(())
    }

    /// Returns the changed text and the number of replacements.
    pub(super) fn apply(&self, text: &str, name: &str) -> Result<(String, usize), String> {
        let Self { old_string, new_string, replace_all } = self;
        let count = text.matches(old_string.as_str()).count();
        if count == 0 {
            let hint = match text.replace("\r\n", "\n").contains(old_string.as_str()) {
                true => "lines of the file end in `\\r\\n`, so `old_string` needs that as well",
                false => "read the file again and give the text exactly as it is there, without line numbers",
            };
            return Err(format!("`old_string` is not in `{name}`: {hint}"));
        }
        // Overlapping occurrences are counted once above, and are just as ambiguous.
        if !replace_all && text.find(old_string.as_str()) != text.rfind(old_string.as_str()) {
            let count = count.max(2);
            return Err(format!(
                "`old_string` is in `{name}` {count} times: add lines around it so that it is there once, or set `replace_all`"
            ));
        }
        let size = (text.len() - count * old_string.len()) as u64 + count as u64 * new_string.len() as u64;
        if size > MAX_FILE_BYTES {
            return Err(format!("`{name}` would become larger than {} MB", MAX_FILE_BYTES / 1024 / 1024));
        }
        Ok((text.replace(old_string.as_str(), new_string), count))
    }
}

/// A call of `Edit` or `MultiEdit`. The tool and its preview share this code.
pub(super) struct FileEdit {
    pub(super) file_path: String,
    pub(super) replacements: Vec<Replacement>,
    /// Applies the replacements to a text; the last argument is the name of the file.
    pub(super) apply: fn(&[Replacement], &str, &str) -> Result<EditResult, ToolError>,
}

pub(super) struct EditResult {
    pub(super) text: String,
    pub(super) count: usize,
    pub(super) output: String,
}

pub(super) struct PlannedEdit {
    path: PathBuf,
    name: String,
    version: String,
    pub(super) before: String,
    pub(super) result: EditResult,
}

impl FileEdit {
    /// Finds the file and applies the edit in memory. `check` gets the path, the name and the version of the file, and can reject it.
    pub(super) fn plan(
        &self,
        workspace: &Workspace,
        check: impl FnOnce(&Path, &str, &str) -> Result<(), ToolError>,
    ) -> Result<PlannedEdit, ToolError> {
        let path = workspace.resolve(&self.file_path)?;
        let name = workspace.display(&path);
        let content = workspace.read(&path);
        let version = version_of_read(&content);
        check(&path, &name, &version)?;
        let before = match String::from_utf8(content.map_err(|error| failed(&name, "edited", &error))?) {
            Ok(text) if !is_binary(text.as_bytes()) => text,
            _ => return Err(ToolError::Failed(format!("`{name}` is not UTF-8 text: only text can be edited"))),
        };
        let result = (self.apply)(&self.replacements, &before, &name)?;
        workspace.check_replaceable(&path).map_err(|error| failed(&name, "written", &error))?;
        Ok(PlannedEdit { path, name, version, before, result })
    }

    pub(super) async fn run(
        self,
        workspace: &Workspace,
        compared_with: Option<ComparedWith>,
    ) -> Result<ToolOutput, ToolError> {
        let workspace = workspace.clone();
        blocking(move |stop| self.write(&workspace, compared_with, stop)).await
    }

    fn write(
        &self,
        workspace: &Workspace,
        compared_with: Option<ComparedWith>,
        stop: &StopFlag,
    ) -> Result<ToolOutput, ToolError> {
        let mut changing = workspace.lock_edits();
        let planned = self.plan(workspace, |path, name, version| match &compared_with {
            Some(compared) if compared.path != name || !changing.connects(path, &compared.version, version) => {
                Err(changed(name))
            }
            _ => Ok(()),
        })?;
        let PlannedEdit { path, name, version, result: EditResult { text, count, output }, .. } = planned;
        let expected = compared_with.map(|_| version.as_str());
        workspace.replace(&path, text.as_bytes(), expected, stop).map_err(|error| error.to_tool_error(&name))?;
        changing.add(&path, version, version_of(text.as_bytes()));
        let result = EditOutput { output, file_path: name.clone(), replacements: count };
        Ok(ToolOutput::new(&result).writing(name, text.len() as u64))
    }
}
