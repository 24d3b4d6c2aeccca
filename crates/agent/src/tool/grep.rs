//! The `Grep` tool: finds lines in files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use amplifier_core::{ActionPreview, Map};
use futures::future::BoxFuture;
use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::StopFlag;
use super::files::is_binary;
use super::preview::preview;
use super::{Tool, ToolError, ToolOutput, Workspace, excerpt, input, walk};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Grep";

const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: usize = 1_000;
const MAX_CONTEXT: usize = 20;
const MAX_BYTES: usize = 100 * 1024;
const MAX_LINE_BYTES: usize = 500;

/// Finds lines in files of the workspace.
#[derive(Clone, Debug)]
pub struct GrepTool {
    workspace: Workspace,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The regular expression that a line must match.
    pattern: String,
    /// The file or folder to search in; the whole workspace if not given.
    path: Option<String>,
    /// Searches only files that match: `*.rs` by name, `src/**/*.rs` by path.
    glob: Option<String>,
    /// `true` to ignore case.
    #[serde(default)]
    case_insensitive: bool,
    /// The number of lines before and after each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// The largest number of matches; 200 if not given.
    #[schemars(range(min = 1, max = 1000))]
    max_matches: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct GrepOutput {
    /// The lines, as `path:line:text`, or `path-line-text` around a match, for the model.
    output: String,
    /// The number of matches in `output`.
    matches: usize,
}

impl GrepTool {
    /// A tool for this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

impl Tool for GrepTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Finds lines that match a regular expression (in the syntax of Rust: no look-around, no back-references). Gives \
             `path:line:text`, and `path-line-text` for lines around a match. Leaves out what `.gitignore` leaves out, binary files \
             and files of more than 10 MB.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<GrepOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace.clone();
            walk::search(move |stop| {
                let mut search = GrepSearch::new(&workspace, input)?;
                search.run(&workspace, stop);
                Ok(search.into_output())
            })
            .await
        })
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview(NAME, input, &self.workspace))
    }
}

pub(super) struct GrepSearch {
    pattern: String,
    root: PathBuf,
    regex: Regex,
    files: Option<FileFilter>,
    context: usize,
    limit: usize,
    output: String,
    matches: usize,
    has_more: bool,
}

enum FileFilter {
    ByName(GlobMatcher),
    ByPath(GlobMatcher),
}

impl GrepSearch {
    pub(super) fn new(workspace: &Workspace, input: Map) -> Result<Self, ToolError> {
        let input: Input = input::read(NAME, input)?;
        let limit = input.max_matches.unwrap_or(DEFAULT_MATCHES);
        if !(1..=MAX_MATCHES).contains(&limit) {
            let problem = format!("`max_matches` is {limit}, and must be between 1 and {MAX_MATCHES}");
            return Err(input::invalid(NAME, problem));
        }
        if input.context > MAX_CONTEXT {
            let problem = format!("`context` is {}, and must be at most {MAX_CONTEXT}", input.context);
            return Err(input::invalid(NAME, problem));
        }
        let regex = RegexBuilder::new(&input.pattern)
            .case_insensitive(input.case_insensitive)
            .build()
            .map_err(|error| input::invalid(NAME, format!("`pattern`: {error}")))?;
        let files = match input.glob.as_deref() {
            None => None,
            Some(glob) if glob.contains('/') => Some(FileFilter::ByPath(walk::glob(NAME, glob)?)),
            Some(glob) => Some(FileFilter::ByName(walk::glob(NAME, glob)?)),
        };
        let root = walk::search_root(workspace, input.path.as_deref())?;
        let Input { pattern, context, .. } = input;
        Ok(Self { pattern, root, regex, files, context, limit, output: String::new(), matches: 0, has_more: false })
    }

    fn run(&mut self, workspace: &Workspace, stop: &StopFlag) {
        for entry in walk::entries(&self.root) {
            if stop.requested() || self.has_more {
                break;
            }
            let path = entry.path();
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || !self.is_wanted(path, path.strip_prefix(&self.root).unwrap_or(path)) {
                continue;
            }
            // Unreadable and large files are skipped.
            if let Ok(content) = workspace.read(path)
                && !is_binary(&content)
            {
                self.search(&workspace.display(path), &content);
            }
        }
    }

    fn is_wanted(&self, path: &Path, relative: &Path) -> bool {
        match &self.files {
            None => true,
            Some(FileFilter::ByName(glob)) => path.file_name().is_some_and(|name| glob.is_match(name)),
            Some(FileFilter::ByPath(glob)) => glob.is_match(relative),
        }
    }

    fn search(&mut self, file: &str, content: &[u8]) {
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        // Lines that are printed if a match follows.
        let mut before = VecDeque::with_capacity(self.context);
        // The number of lines that are still printed after a match.
        let mut after = 0;
        let mut last = None;
        for (number, line) in (1_usize..).zip(content.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if self.regex.is_match(line) {
                if self.matches == self.limit || self.output.len() > MAX_BYTES {
                    self.has_more = true;
                    return;
                }
                self.matches += 1;
                for (number, line) in before.drain(..) {
                    self.push_line(file, &mut last, number, '-', line);
                }
                self.push_line(file, &mut last, number, ':', line);
                after = self.context;
            } else if after > 0 {
                after -= 1;
                self.push_line(file, &mut last, number, '-', line);
            } else if self.context > 0 {
                if before.len() == self.context {
                    before.pop_front();
                }
                before.push_back((number, line));
            }
        }
    }

    fn push_line(&mut self, file: &str, last: &mut Option<usize>, number: usize, mark: char, line: &[u8]) {
        let follows = last.replace(number).is_some_and(|last| last + 1 == number);
        if self.context > 0 && !follows && !self.output.is_empty() {
            self.output.push_str("--\n");
        }
        let text = excerpt::line(line, line.len(), MAX_LINE_BYTES);
        self.output.push_str(&format!("{file}{mark}{number}{mark}{text}\n"));
    }

    fn into_output(mut self) -> ToolOutput {
        if self.matches == 0 {
            self.output = format!("no line matches `{}`", self.pattern);
        }
        if self.has_more {
            let matches = self.matches;
            self.output
                .push_str(&format!("(there are more than these {matches}: narrow `pattern`, `path` or `glob`)\n"));
        }
        ToolOutput::new(&GrepOutput { output: self.output, matches: self.matches })
    }
}
