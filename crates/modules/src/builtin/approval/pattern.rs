//! Patterns for tool inputs: text, paths and shell commands.

use amplifier_core::{EventData, HookError};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::builtin::shared::settings::require_possible;
use crate::condition::{Condition, Scope};

/// Fields that hold a path. Patterns match the resolved path, not its spelling.
const PATHS: [&str; 4] = ["file_path", "path", "folder", "notebook_path"];

pub(super) const COMMAND: &str = "command";

pub(super) struct Pattern {
    pub(super) field: String,
    matcher: FieldMatcher,
}

enum FieldMatcher {
    /// `path_matches` on the field.
    Path(Condition),
    Text(Glob),
}

/// A glob in which `*` stands for any text.
pub(super) struct Glob {
    glob: GlobMatcher,
    /// The literal prefix of every match.
    beginning: String,
}

impl Pattern {
    pub(super) fn new(field: &str, pattern: &str) -> Result<Self, String> {
        let matcher = if PATHS.contains(&field) {
            require_possible("pattern", &[pattern.to_owned()])?;
            let (name, glob) = (Value::from(field), Value::from([pattern].as_slice()));
            let condition = Condition::compile(&format!("path_matches(tool_input[{name}], {glob})"));
            FieldMatcher::Path(condition.map_err(|error| format!("`pattern`: {error}"))?)
        } else {
            FieldMatcher::Text(Glob::new(pattern).map_err(|problem| format!("`pattern`: {problem}"))?)
        };
        Ok(Self { field: field.to_owned(), matcher })
    }

    /// Returns `true` if the field matches as a whole.
    pub(super) fn matches(&self, event: &str, data: &EventData, scope: &Scope) -> Result<bool, HookError> {
        match &self.matcher {
            FieldMatcher::Path(condition) => condition.holds(event, data, scope),
            FieldMatcher::Text(glob) => Ok(match data.get("tool_input").and_then(|input| input.get(&self.field)) {
                Some(Value::String(text)) => glob.matches(text),
                Some(Value::Null) | None => false,
                Some(other) => glob.matches(&other.to_string()),
            }),
        }
    }

    pub(super) fn matches_command(&self, command: &str) -> bool {
        matches!(&self.matcher, FieldMatcher::Text(glob) if glob.matches(command))
    }

    /// Returns `true` if a partly known command may turn out to match.
    pub(super) fn may_match_command(&self, command: &str) -> bool {
        match (&self.matcher, command.split_once('…')) {
            (FieldMatcher::Text(glob), Some((known, _))) => glob.beginning.starts_with(known),
            _ => false,
        }
    }
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build();
        let glob = glob.map_err(|error| format!("invalid pattern `{pattern}`: {}", error.kind()))?.compile_matcher();
        let beginning = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default().to_owned();
        Ok(Self { glob, beginning })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.glob.is_match(text)
    }
}
