//! The `Read` tool: reads a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroUsize;

use amplifier_core::{ActionPreview, Map};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::{StopFlag, blocking};
use super::files::{failed, is_binary};
use super::preview::preview;
use super::{Tool, ToolError, ToolOutput, Workspace, excerpt, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Read";

const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 100 * 1024;
const MAX_LINE_BYTES: usize = 2_000;

/// Reads a file of the workspace, with numbers in front of the lines.
#[derive(Clone, Debug)]
pub struct ReadTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, absolute or relative to the workspace.
    pub(super) file_path: String,
    /// The number of the first line to read, from 1.
    offset: Option<NonZeroUsize>,
    /// The largest number of lines; at most 2,000.
    limit: Option<NonZeroUsize>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct ReadOutput {
    /// The lines, each with its number and a tab in front of it, for the model.
    output: String,
    /// The file, relative to the workspace, without `..` and links.
    file_path: String,
    /// The number of lines in `output`.
    lines: usize,
}

impl ReadTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Reads a text file. Every line has its number and a tab in front of it, which are not part of the file. \
             Gives at most 2,000 lines or 100 KB at a time and says where to read on; very long lines are cut.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<ReadOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = input::read(NAME, input)?;
            let workspace = self.workspace.clone();
            blocking(move |stop| read(&workspace, &input, stop)).await
        })
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }
}

pub(super) struct OpenText {
    name: String,
    size: u64,
    file: BufReader<File>,
}

pub(super) fn open(workspace: &Workspace, file_path: &str) -> Result<OpenText, ToolError> {
    let path = workspace.resolve(file_path)?;
    let name = workspace.display(&path);
    let failed = |error: io::Error| failed(&name, "read", &error);
    let file = workspace.open(&path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut file = BufReader::new(file);
    if is_binary(file.fill_buf().map_err(failed)?) {
        return Err(ToolError::Failed(format!("`{name}` is a binary file: only text can be read")));
    }
    Ok(OpenText { name, size, file })
}

fn read(workspace: &Workspace, input: &Input, stop: &StopFlag) -> Result<ToolOutput, ToolError> {
    let OpenText { name, size, mut file } = open(workspace, &input.file_path)?;
    let failed = |error: io::Error| failed(&name, "read", &error);
    let first = input.offset.map_or(1, NonZeroUsize::get);
    let most = input.limit.map_or(MAX_LINES, NonZeroUsize::get).min(MAX_LINES);
    let mut output = String::new();
    let mut lines = 0;
    let mut number = 0;
    while let Some(line) = TextLine::read(&mut file).map_err(failed)? {
        number += 1;
        if stop.requested() {
            break;
        }
        if number < first {
            continue;
        }
        let text = excerpt::line(&line.start, line.length, MAX_LINE_BYTES);
        if lines == most || output.len() + text.len() > MAX_BYTES {
            output.push_str(&format!("(the file goes on: read on with `offset` {number})\n"));
            break;
        }
        output.push_str(&format!("{number:>6}\t{text}\n"));
        lines += 1;
    }
    if number == 0 {
        "(the file is empty)".clone_into(&mut output);
    } else if lines == 0 {
        return Err(ToolError::Failed(format!("`{name}` has no line {first}: its last line is {number}")));
    }
    let result = ReadOutput { output, file_path: name.clone(), lines };
    Ok(ToolOutput::new(&result).reading(name, size))
}

/// A line, of which only the shown part is kept: a file may be one line of many gigabytes.
struct TextLine {
    start: Vec<u8>,
    length: usize,
}

impl TextLine {
    fn read(file: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = Self { start: Vec::new(), length: 0 };
        let mut has_bytes = false;
        loop {
            let bytes = file.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            has_bytes = true;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            // One extra byte, to detect the `\r` of a line break.
            line.start.extend(piece.iter().take((MAX_LINE_BYTES + 1).saturating_sub(line.length)));
            line.length += piece.len();
            let taken = piece.len() + usize::from(end.is_some());
            file.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if line.length == line.start.len() && line.start.last() == Some(&b'\r') {
            line.start.pop();
            line.length -= 1;
        }
        Ok(has_bytes.then_some(line))
    }
}
