//! Previews: the effect of a tool call, for approval requests.
//!
//! Previews share the code of the tools: they read the same input, find the same file and make the same edit. A call that the tool would reject shows
//! the error.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use amplifier_core::text::counted;
use amplifier_core::{
    ActionPreview, ComparedWith, EventData, EventName, Map, PortError, PreviewRowKind, PreviewSource, TOOL_PRE,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::edit::{FileEdit, PlannedEdit};
use super::files::{MAX_FILE_BYTES, failed};
use super::{ToolError, Workspace, bash, diff, edit, glob, grep, input, multi_edit, read, todo, write};
use crate::sub_agent;

/// The tools with previews that read files.
const TOOLS_THAT_READ: [&str; 6] = [read::NAME, glob::NAME, grep::NAME, write::NAME, edit::NAME, multi_edit::NAME];

const MISSING: &str = "missing";
const UNREADABLE: &str = "unreadable";
const OUTSIDE: &str = "outside";

/// Returns the preview of a tool call in a workspace. Tools other than the [standard](super::standard) ones and `Task` show their input. Blocks while
/// reading files.
///
/// ```
/// # use amplifier_agent::tool::{self, Workspace};
/// # let folder = tempfile::tempdir()?;
/// let workspace = Workspace::new(folder.path())?;
/// let input = serde_json::json!({ "file_path": "new.txt", "content": "hello\n" });
/// let preview = tool::preview("Write", input.as_object().unwrap(), &workspace);
/// assert_eq!((preview.summary.as_deref(), preview.body[0].text.as_str()), (Some("new file"), "hello"));
/// # std::io::Result::Ok(())
/// ```
pub fn preview(tool: &str, input: &Map, workspace: &Workspace) -> ActionPreview {
    let preview = match tool {
        bash::NAME => bash_preview(input),
        read::NAME => read_preview(input, workspace),
        glob::NAME => glob::plan(workspace, input.clone()).map(|_| search_preview(tool, input)),
        grep::NAME => grep::GrepSearch::new(workspace, input.clone()).map(|_| search_preview(tool, input)),
        todo::NAME => todo::preview(input),
        sub_agent::NAME => sub_agent::preview(input),
        write::NAME => write_preview(input, workspace),
        edit::NAME => edit::read(input.clone()).map(|edit| edit_preview(tool, &edit, workspace)),
        multi_edit::NAME => multi_edit::read(input.clone()).map(|edit| edit_preview(tool, &edit, workspace)),
        _ => return ActionPreview::new(tool).json(&Value::Object(input.clone())),
    };
    preview_or_error(tool, input, preview)
}

/// Previews of the standard tools, for programs without a [`Session`](crate::Session).
impl PreviewSource for Workspace {
    async fn preview(&self, event: &EventName, data: &EventData) -> Result<Option<ActionPreview>, PortError> {
        let tool = data.text("tool_name").filter(|_| *event == TOOL_PRE.name());
        let (Some(tool), Some(Value::Object(input))) = (tool.map(str::to_owned), data.get("tool_input").cloned())
        else {
            return Ok(None);
        };
        // Without blocking work, requests keep their order.
        if !TOOLS_THAT_READ.contains(&tool.as_str()) {
            return Ok(Some(preview(&tool, &input, self)));
        }
        let workspace = self.clone();
        Ok(Some(tokio::task::spawn_blocking(move || preview(&tool, &input, &workspace)).await?))
    }
}

/// Returns the preview, or the input with the error of the tool.
pub(crate) fn preview_or_error(tool: &str, input: &Map, preview: Result<ActionPreview, ToolError>) -> ActionPreview {
    preview.unwrap_or_else(|error| with_error(ActionPreview::new(tool).json(&Value::Object(input.clone())), &error))
}

fn with_error(preview: ActionPreview, error: &ToolError) -> ActionPreview {
    preview.warning(format!("will be refused: {error}"))
}

fn bash_preview(input: &Map) -> Result<ActionPreview, ToolError> {
    let (command, _) = bash::read(input.clone())?;
    Ok(with_other_fields(ActionPreview::new(bash::NAME).lines(&command), input, "command"))
}

fn read_preview(input: &Map, workspace: &Workspace) -> Result<ActionPreview, ToolError> {
    let read::Input { file_path, .. } = input::read(read::NAME, input.clone())?;
    read::open(workspace, &file_path)?;
    Ok(with_other_fields(ActionPreview::new(read::NAME).target(file_path), input, "file_path"))
}

fn search_preview(tool: &str, input: &Map) -> ActionPreview {
    let pattern = input.get("pattern").and_then(Value::as_str).unwrap_or_default();
    with_other_fields(ActionPreview::new(tool).target(pattern), input, "pattern")
}

fn write_preview(input: &Map, workspace: &Workspace) -> Result<ActionPreview, ToolError> {
    let write::Input { file_path, content } = input::read(write::NAME, input.clone())?;
    let preview = ActionPreview::new(write::NAME).target(file_path.as_str());
    let with_content = |preview: ActionPreview| preview.rows(diff::all(PreviewRowKind::Added, &content));
    let path = match workspace.resolve(&file_path) {
        Ok(path) => path,
        Err(outside) => {
            return Ok(with_version(with_content(with_error(preview, &outside.into())), &file_path, OUTSIDE));
        }
    };
    let name = workspace.display(&path);
    let (version, before) = workspace.read_version(&path);
    let preview = with_version(preview, &name, &version);
    if let Err(error) = workspace.check_replaceable(&path) {
        return Ok(with_content(with_error(preview, &failed(&name, "written", &error))));
    }
    let not_shown = |preview: ActionPreview, why: &str| {
        with_content(preview.warning(format!("the content that is replaced is not shown: {why}")))
    };
    Ok(match before {
        FileBefore::Missing => diff::compare(preview, None, &content),
        FileBefore::Content(bytes) => match String::from_utf8(bytes) {
            Ok(before) => diff::compare(preview, Some(&before), &content),
            Err(error) => not_shown(preview, &format!("not text, but {}", counted(error.as_bytes().len(), "byte"))),
        },
        FileBefore::TooLarge(bytes) => {
            not_shown(preview, &format!("too large, {}", counted(bytes, "byte"))).too_large()
        }
        FileBefore::Unreadable(why) => not_shown(preview, &why),
    })
}

fn edit_preview(tool: &str, edit: &FileEdit, workspace: &Workspace) -> ActionPreview {
    let mut preview = with_version(ActionPreview::new(tool).target(edit.file_path.as_str()), &edit.file_path, OUTSIDE);
    let planned = edit.plan(workspace, |_, name, version| {
        preview.compared_with = Some(ComparedWith { path: name.to_owned(), version: version.to_owned() });
        Ok(())
    });
    match planned {
        Ok(PlannedEdit { before, result, .. }) => diff::compare(preview, Some(&before), &result.text),
        // The content is not shown: the file may be protected.
        Err(error) => with_error(preview, &error).rows(edit.replacements.iter().flat_map(|replacement| {
            let removed = diff::part(PreviewRowKind::Removed, &replacement.old_string);
            removed.chain(diff::part(PreviewRowKind::Added, &replacement.new_string))
        })),
    }
}

fn with_version(preview: ActionPreview, path: &str, version: &str) -> ActionPreview {
    ActionPreview {
        compared_with: Some(ComparedWith { path: path.to_owned(), version: version.to_owned() }),
        ..preview
    }
}

fn with_other_fields(preview: ActionPreview, input: &Map, shown: &str) -> ActionPreview {
    let rest = input.iter().filter(|(name, _)| *name != shown);
    rest.fold(preview, |preview, (name, value)| preview.field(name.as_str(), value))
}

enum FileBefore {
    Missing,
    Content(Vec<u8>),
    /// The size in bytes of a file that is too large for tools.
    TooLarge(u64),
    Unreadable(String),
}

impl Workspace {
    fn read_version(&self, path: &Path) -> (String, FileBefore) {
        match self.open(path).and_then(read_all) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::NotFound => (MISSING.to_owned(), FileBefore::Missing),
            Err(error) => (UNREADABLE.to_owned(), FileBefore::Unreadable(error.to_string())),
        }
    }

    pub(super) fn version(&self, path: &Path) -> String {
        self.read_version(path).0
    }

    /// Binds a change of a file to its present content, `None` if there is no such file: in the data of an operation, the tool refuses to change
    /// another file or version. The path has no links.
    pub fn bind_version(&self, path: &Path, content: Option<&[u8]>) -> ComparedWith {
        let version = content.map_or_else(|| MISSING.to_owned(), version_of);
        ComparedWith { path: self.display(path), version }
    }
}

pub(super) fn version_of(content: &[u8]) -> String {
    named(&Sha256::digest(content))
}

/// Returns the version of a read file, or of one that could not be read.
pub(super) fn version_of_read(content: &io::Result<Vec<u8>>) -> String {
    match content {
        Ok(content) => version_of(content),
        Err(error) if error.kind() == ErrorKind::NotFound => MISSING.to_owned(),
        Err(_) => UNREADABLE.to_owned(),
    }
}

fn named(digest: &[u8]) -> String {
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Hashes a file, and keeps the content unless too large for tools.
fn read_all(mut file: impl Read) -> io::Result<(String, FileBefore)> {
    let (mut hash, mut content, mut length) = (Sha256::new(), Vec::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        length += count as u64;
        if length <= MAX_FILE_BYTES {
            content.extend_from_slice(&buffer[..count]);
        }
    }
    let before = if length <= MAX_FILE_BYTES { FileBefore::Content(content) } else { FileBefore::TooLarge(length) };
    Ok((named(&hash.finalize()), before))
}

pub(super) fn changed(name: &str) -> ToolError {
    ToolError::Failed(format!(
        "`{name}` changed after the approval was requested, so nothing was written; read it again"
    ))
}
