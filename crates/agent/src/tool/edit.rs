//! `Edit`: changes a part of a file.

use std::io::ErrorKind;

use amplifier_core::{ActionPreview, ComparedWith, Map};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::{Stop, blocking};
use super::files::{LARGEST, failed, is_binary};
use super::preview::{changed, preview, version_of};
use super::{Tool, ToolError, ToolOutput, Workspace, input};
use crate::provider::ToolSpec;

const NAME: &str = "Edit";

/// Changes a part of a file of the workspace: wholly, or not at all.
#[derive(Clone, Debug)]
pub struct Edit {
    workspace: Workspace,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the workspace.
    file_path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. It must be there once, unless `replace_all` is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Whether to replace it wherever it is.
    #[serde(default)]
    replace_all: bool,
}

impl Edit {
    /// Changes files of this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(NAME, "Replaces a text in a file by another. Read the file first.")
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.edit(input, None)
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        preview(NAME, input, &self.workspace)
    }

    fn run_previewed(&self, input: Map, compared_with: ComparedWith) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.edit(input, Some(compared_with))
    }
}

impl Edit {
    fn edit(&self, input: Map, compared_with: Option<ComparedWith>) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { file_path, old_string, new_string, replace_all } = input::read(NAME, input)?;
            let replacement = Replacement { old_string, new_string, replace_all };
            replacement.check().map_err(|problem| input::invalid(NAME, problem))?;
            let workspace = self.workspace.clone();
            blocking(move |stop| {
                change(&workspace, &file_path, compared_with, stop, |text, name| {
                    let (text, count) = replacement.apply(&text, name).map_err(ToolError::Failed)?;
                    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
                    Ok(Changed { text, count, output: format!("replaced the text {times} in `{name}`") })
                })
            })
            .await
        })
    }
}

/// A text, and what to put in its place.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replacement {
    /// The text to replace, exactly as it is in the file, without line numbers. It must be there once, unless `replace_all` is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Whether to replace it wherever it is.
    #[serde(default)]
    replace_all: bool,
}

impl Replacement {
    /// Whether it says something; else what is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.old_string.is_empty() {
            return Err("`old_string` is empty: give the text to replace, or use `Write` to make a file".to_owned());
        }
        if self.old_string == self.new_string {
            return Err("`old_string` and `new_string` are the same: nothing would change".to_owned());
        }
        Ok(())
    }

    /// The changed text and how many times it was changed, or why it cannot be.
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
        // Places that overlap are counted once above, and are just as ambiguous.
        if !replace_all && text.find(old_string.as_str()) != text.rfind(old_string.as_str()) {
            let count = count.max(2);
            return Err(format!(
                "`old_string` is in `{name}` {count} times: add lines around it so that it is there once, or set `replace_all`"
            ));
        }
        let size = (text.len() - count * old_string.len()) as u64 + count as u64 * new_string.len() as u64;
        if size > LARGEST {
            return Err(format!("`{name}` would become larger than {} MB", LARGEST / 1024 / 1024));
        }
        Ok((text.replace(old_string.as_str(), new_string), count))
    }
}

/// A file that was changed.
pub(super) struct Changed {
    /// What is to be in it.
    pub(super) text: String,
    /// How many places are changed.
    pub(super) count: usize,
    /// What the model is told.
    pub(super) output: String,
}

/// Changes a file with a function of its text and its name.
pub(super) fn change(
    workspace: &Workspace,
    file_path: &str,
    compared_with: Option<ComparedWith>,
    stop: &Stop,
    with: impl FnOnce(String, &str) -> Result<Changed, ToolError>,
) -> Result<ToolOutput, ToolError> {
    let path = workspace.resolve(file_path)?;
    let name = workspace.display(&path);
    let mut changing = workspace.changing();
    let content = match workspace.read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && compared_with.is_some() => return Err(changed(&name)),
        read => read.map_err(|error| failed(&name, "edited", &error))?,
    };
    let before = version_of(&content);
    let is_shown = |compared: &ComparedWith| compared.path == name && changing.leads(&path, &compared.version, &before);
    if compared_with.as_ref().is_some_and(|compared| !is_shown(compared)) {
        return Err(changed(&name));
    }
    let text = match String::from_utf8(content) {
        Ok(text) if !is_binary(text.as_bytes()) => text,
        _ => return Err(ToolError::Failed(format!("`{name}` is not UTF-8 text: only text can be edited"))),
    };
    let Changed { text, count, output } = with(text, &name)?;
    let expected = compared_with.map(|_| before.as_str());
    workspace.replace(&path, text.as_bytes(), expected, stop).map_err(|error| error.tell(&name))?;
    changing.add(&path, before, version_of(text.as_bytes()));
    Ok(ToolOutput::text(output)
        .with("file_path", name.as_str())
        .with("replacements", count)
        .writing(name, text.len() as u64))
}
