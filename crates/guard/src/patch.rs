//! Patches as Codex and Copilot write them: one operation for each file.

use amplifier_core::Map;
use serde_json::Value;

use crate::event::ToolOperation;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File: ";
const UPDATE: &str = "*** Update File: ";
const DELETE: &str = "*** Delete File: ";
const MOVE: &str = "*** Move to: ";
/// The most operations of a patch. Each one passes all hooks, and is recorded.
const MAX_OPERATIONS: usize = 500;

/// The reason why a text is no patch. Its operations are unknown, so it is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch cannot be read: {problem}")]
pub struct PatchError {
    line: usize,
    problem: &'static str,
}

/// Returns the operations of a patch: a `Write` for each new file, an `Edit` for each changed or deleted one, both for a moved one.
///
/// A reader that understood a line differently than the client could miss a file, so a doubtful line is an error.
///
/// # Errors
/// If a line is not as the format requires, or there is no file.
pub fn operations(patch: &str) -> Result<Vec<ToolOperation>, PatchError> {
    let lines: Vec<&str> = patch.trim().lines().collect();
    let error = |at: usize, problem| PatchError { line: at + 1, problem };
    let (first, last) = (lines.first().copied().unwrap_or_default(), lines.last().copied().unwrap_or_default());
    // Readers differ in what ends a line.
    if let Some(at) = lines.iter().position(|line| line.contains('\r')) {
        return Err(error(at, "it has a single carriage return"));
    }
    if first.trim() != BEGIN {
        return Err(error(0, "expected `*** Begin Patch`"));
    }
    if last.trim() != END || lines.len() < 2 {
        return Err(error(lines.len() - 1, "expected `*** End Patch`"));
    }
    let mut operations = Vec::new();
    let mut file: Option<PatchedFile> = None;
    for (at, line) in lines.iter().enumerate().take(lines.len() - 1).skip(1) {
        if let Some(file) = file.as_mut().filter(|file| file.takes(line)) {
            file.push(line).map_err(|problem| error(at, problem))?;
            continue;
        }
        let header = line.trim();
        if let Some(target) = header.strip_prefix(MOVE) {
            let file = file.as_mut().filter(|file| file.kind == ChangeKind::Update && file.target.is_none());
            let file = file.ok_or_else(|| error(at, "`*** Move to` without a changed file"))?;
            file.target = Some(path(target).ok_or_else(|| error(at, "a path is missing"))?);
            continue;
        }
        let kinds = [(ADD, ChangeKind::Add), (UPDATE, ChangeKind::Update), (DELETE, ChangeKind::Delete)];
        let found = kinds.into_iter().find_map(|(marker, kind)| Some((kind, header.strip_prefix(marker)?)));
        let (kind, named) = found.ok_or_else(|| error(at, "expected a file or a change of it"))?;
        let path = path(named).ok_or_else(|| error(at, "a path is missing"))?;
        operations.extend(file.replace(PatchedFile::new(kind, path)).into_iter().flat_map(PatchedFile::operations));
        if operations.len() >= MAX_OPERATIONS {
            return Err(error(at, "it has more than 500 files; use several patches"));
        }
    }
    operations.extend(file.into_iter().flat_map(PatchedFile::operations));
    if operations.is_empty() {
        return Err(error(0, "it names no file"));
    }
    Ok(operations)
}

fn path(named: &str) -> Option<String> {
    let named = named.trim();
    (!named.is_empty()).then(|| named.to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    Add,
    Update,
    Delete,
}

struct PatchedFile {
    kind: ChangeKind,
    path: String,
    target: Option<String>,
    before: String,
    after: String,
}

impl PatchedFile {
    fn new(kind: ChangeKind, path: String) -> Self {
        Self { kind, path, target: None, before: String::new(), after: String::new() }
    }

    /// Returns `true` if a line belongs to this file, as the clients read it.
    fn takes(&self, line: &str) -> bool {
        match self.kind {
            ChangeKind::Add => line.starts_with('+'),
            ChangeKind::Update => {
                line.is_empty() || line.starts_with([' ', '+', '-', '@']) || line.trim_end() == END_OF_FILE
            }
            ChangeKind::Delete => false,
        }
    }

    fn push(&mut self, line: &str) -> Result<(), &'static str> {
        let mut add = |text: &str, is_before, is_after| {
            for (part, is_in) in [(&mut self.before, is_before), (&mut self.after, is_after)] {
                if is_in {
                    part.push_str(text);
                    part.push('\n');
                }
            }
        };
        match (line.get(..1), line.get(1..).unwrap_or_default()) {
            (Some("+"), text) => add(text, false, true),
            (Some("-"), text) => add(text, true, false),
            // Some readers trim lines before they look for the next file.
            (Some(" "), text) if text.trim().starts_with("*** ") => {
                return Err("a line of the file looks like the next file");
            }
            (Some(" "), text) => add(text, true, true),
            (None, _) => add("", true, true),
            (Some("@"), _) if line == "@@" || line.starts_with("@@ ") => {}
            (Some("*"), _) => {}
            _ => return Err("expected a change of the file"),
        }
        Ok(())
    }

    fn operations(self) -> Vec<ToolOperation> {
        let Self { kind, path, target, before, after } = self;
        let operation = |tool: &str, fields: &[(&str, &str)]| ToolOperation {
            tool: tool.to_owned(),
            input: fields.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect::<Map>(),
        };
        let edit =
            |path: &str| operation("Edit", &[("file_path", path), ("old_string", &before), ("new_string", &after)]);
        match (kind, target) {
            (ChangeKind::Add, _) => vec![operation("Write", &[("file_path", &path), ("content", &after)])],
            (ChangeKind::Update | ChangeKind::Delete, None) => vec![edit(&path)],
            (ChangeKind::Update | ChangeKind::Delete, Some(target)) => {
                vec![edit(&path), operation("Write", &[("file_path", &target), ("content", &after)])]
            }
        }
    }
}
