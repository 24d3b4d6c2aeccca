//! The `Glob` tool: finds files by name.

use std::path::PathBuf;

use amplifier_core::{ActionPreview, Map};
use futures::future::BoxFuture;
use globset::GlobMatcher;
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::StopFlag;
use super::preview::preview;
use super::{Tool, ToolError, ToolOutput, Workspace, input, walk};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Glob";

const MAX_FILES: usize = 1_000;

/// Finds files of the workspace by name.
#[derive(Clone, Debug)]
pub struct GlobTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The pattern, relative to `path`: `*.md`, `src/**/*.rs`, `**/*.{ts,tsx}`.
    pattern: String,
    /// The folder to search in; the whole workspace if not given.
    path: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct GlobOutput {
    /// The paths, one per line, relative to the workspace, for the model.
    output: String,
    /// The number of paths in `output`.
    files: usize,
}

impl GlobTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for GlobTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Finds files by name. `*` stands for a part of one name, `**/` for any number of folders. Gives the paths of at most \
             1,000 files, sorted, relative to the workspace, without those that `.gitignore` leaves out.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<GlobOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace.clone();
            walk::search(move |stop| find(&workspace, &plan(&workspace, input)?, stop)).await
        })
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }
}

pub(super) struct PlannedGlob {
    pattern: String,
    matcher: GlobMatcher,
    folder: PathBuf,
}

pub(super) fn plan(workspace: &Workspace, input: Map) -> Result<PlannedGlob, ToolError> {
    let Input { pattern, path } = input::read(NAME, input)?;
    if pattern.starts_with('/') {
        return Err(input::invalid(
            NAME,
            "`pattern` is absolute: give the folder as `path`, and a pattern relative to it",
        ));
    }
    let matcher = walk::glob(NAME, pattern.trim_start_matches("./"))?;
    let folder = walk::search_root(workspace, path.as_deref())?;
    if !folder.is_dir() {
        return Err(ToolError::Failed(format!("`{}` is not a folder", workspace.display(&folder))));
    }
    Ok(PlannedGlob { pattern, matcher, folder })
}

fn find(workspace: &Workspace, planned: &PlannedGlob, stop: &StopFlag) -> Result<ToolOutput, ToolError> {
    let PlannedGlob { pattern, matcher, folder } = planned;
    let mut output = String::new();
    let mut files = 0;
    let found = walk::entries(folder)
        .take_while(|_| !stop.requested())
        .filter(|entry| entry.path().strip_prefix(folder).is_ok_and(|relative| matcher.is_match(relative)))
        .filter(|entry| is_file(workspace, entry));
    for entry in found {
        if files == MAX_FILES {
            output.push_str(&format!("(there are more than {MAX_FILES}: give a narrower `pattern` or a `path`)\n"));
            break;
        }
        output.push_str(&workspace.display(entry.path()));
        output.push('\n');
        files += 1;
    }
    if files == 0 {
        output = format!("no file matches `{pattern}`");
    }
    Ok(ToolOutput::new(&GlobOutput { output, files }))
}

/// Returns `true` for a file, or a link to one within the workspace.
fn is_file(workspace: &Workspace, entry: &DirEntry) -> bool {
    match entry.file_type() {
        Some(kind) if kind.is_symlink() => {
            entry.path().to_str().and_then(|path| workspace.resolve(path).ok()).is_some_and(|target| target.is_file())
        }
        kind => kind.is_some_and(|kind| kind.is_file()),
    }
}
