//! Denies file tools that would change a protected file, and other tools that name one. Secrets cannot be read, either.

use amplifier_core::{Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre};
use serde_json::Value;

use super::paths::{ProtectedFiles, Protection};
use super::{PRIORITY, folder_of};

const PROTECT_FILES: &str = "protect-files";
/// Tools that read or affect only the agent.
const READING_TOOLS: [&str; 5] = ["Read", "Glob", "Grep", "Todo", "Task"];
/// Tools that change the files in their input. Their other texts are content.
const WRITING_TOOLS: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];
/// Names of fields with paths, beside those that end with `path`.
const PATH_FIELDS: [&str; 8] = ["destination", "directory", "file", "filename", "files", "folder", "paths", "uri"];

pub(super) fn register(hooks: &HookRegistry, files: ProtectedFiles) {
    let guard = hooks.hook(TOOL_PRE).named(PROTECT_FILES).priority(PRIORITY).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        // Commands have a hook of their own.
        let denial = (event.tool_name() != "Bash").then(|| problem(&event, &files)).flatten();
        async move { denial.map(HookResult::deny) }
    });
}

/// Returns the reason to deny a call.
fn problem(event: &Event<ToolPre>, files: &ProtectedFiles) -> Option<String> {
    let tool = event.tool_name();
    let folder = folder_of(event, files);
    let check = files.unchanged.check_paths();
    let mut texts = Vec::new();
    texts_in(event.tool_input(), false, &mut texts);
    let is_address = |text: &str| text.starts_with("data:") || text.contains("://") && !text.starts_with("file://");
    texts.into_iter().filter(|(text, _)| !text.is_empty() && !is_address(text)).find_map(|(text, is_path)| {
        let found = match files.candidates(&folder, text) {
            Ok(found) => found,
            // Other texts are not paths then.
            Err(problem) if is_path => {
                let start: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
                return Some(format!("the path `{start}` {problem}, so it cannot be checked"));
            }
            Err(_) => return None,
        };
        if is_path && files.is_ambiguous(&folder, text) {
            return Some(format!(
                "the path `{text}` goes up from a link, so programs disagree about its file; write it without `..`"
            ));
        }
        let found = found
            .iter()
            .find(|path| is_denied(tool, is_path, files.protection(path, &check), files.is_secret(path)))?;
        Some(format!(
            "tools cannot use `{}`, which decides what they may do or records what they did; \
             if it has to change, ask the user to do it",
            files.workspace.display(found)
        ))
    })
}

fn is_denied(tool: &str, is_path: bool, protection: Option<Protection>, is_secret: bool) -> bool {
    match tool {
        _ if is_secret => true,
        _ if READING_TOOLS.contains(&tool) => false,
        // The folder above of a protected file is no file, but a new file in its place could be.
        _ if WRITING_TOOLS.contains(&tool) => is_path && protection.is_some(),
        // An unknown tool may read a folder above.
        _ => matches!(protection, Some(Protection::Within)),
    }
}

/// Collects the texts of an input at any depth, and whether their fields have paths.
fn texts_in<'a>(value: &'a Value, is_path: bool, texts: &mut Vec<(&'a str, bool)>) {
    match value {
        Value::String(text) => texts.push((text, is_path)),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, is_path, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.to_ascii_lowercase();
                texts_in(value, key.ends_with("path") || PATH_FIELDS.contains(&key.as_str()), texts);
            }
        }
        _ => {}
    }
}
