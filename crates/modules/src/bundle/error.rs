//! Errors in bundles, with their positions.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Location;

use super::position::{KeyPosition, find_key};
use super::{InvalidEntry, MistakeCode, yaml_traps};
use crate::condition::{did_you_mean, known_as, suggestion};

/// An error in a bundle, with its position and the line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleError {
    /// File name.
    pub file: PathBuf,
    /// Line, counted from 1; 0 if the error concerns the whole file.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
    /// Kind of the mistake.
    pub code: MistakeCode,
    /// The cause.
    pub message: String,
    /// The advice, if it is not part of the message.
    pub help: Option<String>,
    /// Text of the line.
    pub text: String,
}

impl BundleError {
    /// Creates an error that concerns a whole file.
    pub fn whole(file: &Path, message: impl Into<String>) -> Self {
        let (message, text) = (message.into(), String::new());
        Self { file: file.to_owned(), line: 0, column: 0, code: MistakeCode::File, message, help: None, text }
    }

    pub(crate) fn at(location: Location, message: impl Into<String>, source: &str, file: &Path) -> Self {
        let (line, column) = (location.line() as usize, location.column() as usize);
        let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        Self { code: MistakeCode::Hook, ..Self::whole(file, message) }.moved(line, column, text)
    }

    /// Creates an error at a key of a hook, or at the hook if the key is not found.
    pub(super) fn at_key(location: Location, key: &str, message: impl Into<String>, source: &str, file: &Path) -> Self {
        let whole = Self::at(location, message, source, file);
        match find_key(location, key, source) {
            Some(KeyPosition { line, column, text }) => whole.moved(line, column, text),
            None => whole,
        }
    }

    pub(super) fn invalid_entry(location: Location, invalid_entry: InvalidEntry, source: &str, file: &Path) -> Self {
        match invalid_entry.key {
            Some(key) => Self::at_key(location, key, invalid_entry.problem, source, file),
            None => Self::at(location, invalid_entry.problem, source, file),
        }
    }

    pub(super) fn moved(self, line: usize, column: usize, text: &str) -> Self {
        Self { line, column, text: text.to_owned(), ..self }
    }

    pub(super) fn coded(self, code: MistakeCode) -> Self {
        Self { code, ..self }
    }

    pub(super) fn helped(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    pub(super) fn yaml(error: &serde_saphyr::Error, source: &str, file: &Path) -> Self {
        let error = error.without_snippet();
        let (code, message, help) = explain(error, source);
        let Some(location) = error.location() else {
            return Self { code, help, ..Self::whole(file, message) };
        };
        let found = Self { code, help, ..Self::at(location, message, source, file) };
        match yaml_traps::explain(&found, source) {
            Some(trap) => Self { message: trap.message, help: Some(trap.help), ..found }.moved(
                trap.line,
                trap.column,
                source.lines().nth(trap.line - 1).unwrap_or_default(),
            ),
            None => found,
        }
    }
}

/// Returns the code, the message and the help for an error of the YAML parser.
fn explain(error: &serde_saphyr::Error, source: &str) -> (MistakeCode, String, Option<String>) {
    let unknown = |what: &str, name: &str, expected: &[&'static str]| {
        let possible = OTHER_KEYS.iter().filter(|(_, known)| expected.contains(known));
        let hint = known_as(name, possible).map(suggestion).or_else(|| did_you_mean(name, expected.iter().copied()));
        (
            format!("unknown {what} `{name}`"),
            Some(hint.unwrap_or_else(|| format!("expected one of {}", quoted(expected)))),
        )
    };
    match error {
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
            let (message, help) = unknown("key", field, expected);
            (MistakeCode::UnknownKey, message, help)
        }
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
            let (message, help) = unknown("value", variant, expected);
            (MistakeCode::Value, message, help)
        }
        serde_saphyr::Error::SerdeMissingField { field, .. } => {
            (MistakeCode::Value, format!("missing key `{field}`"), None)
        }
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            (MistakeCode::Value, format!("duplicate key `{key}`"), Some("remove one of them".to_owned()))
        }
        serde_saphyr::Error::InvalidScalar { ty, .. } => {
            let name =
                value_at(error, source).map_or_else(|| "value".to_owned(), |(key, value)| format!("`{key}` `{value}`"));
            (MistakeCode::Value, format!("invalid {name}: expected {}", type_name(ty)), None)
        }
        serde_saphyr::Error::MultipleDocuments { .. } => {
            let help = "remove the `---` before this".to_owned();
            (MistakeCode::Yaml, "a bundle is one document".to_owned(), Some(help))
        }
        other => match without_location(&other.to_string()).as_str() {
            "expected mapping start" => {
                let is_first = other.location().is_some_and(|location| location.line() == 1 && location.column() == 1);
                let help = is_first.then(|| "a bundle begins with a key, such as `hooks:`".to_owned());
                (MistakeCode::Value, "expected keys with values, such as `key: value`".to_owned(), help)
            }
            "expected sequence start" => {
                (MistakeCode::Value, "expected a list, whose items begin with `- `".to_owned(), None)
            }
            message => (MistakeCode::Yaml, message.to_owned(), None),
        },
    }
}

/// Keys that other tools use, and those of bundles.
const OTHER_KEYS: [(&[&str], &str); 13] = [
    (&["if", "condition", "matcher", "match", "where"], "when"),
    (&["event", "events", "trigger", "hook"], "on"),
    (&["block", "forbid", "reject"], "deny"),
    (&["prompt", "confirm", "approve", "approval"], "ask"),
    (&["set", "change", "update", "replace"], "modify"),
    (&["context", "text"], "inject"),
    (&["run", "script", "exec", "cmd", "shell"], "command"),
    (&["url", "endpoint", "webhook"], "http"),
    (&["notify", "warn", "print"], "message"),
    (&["id", "title"], "name"),
    (&["disabled", "active"], "enabled"),
    (&["options", "settings", "with"], "config"),
    (&["expected", "result", "assert"], "expect"),
];

/// Returns the key and the value in the line of an error, if the error is about that value.
fn value_at<'a>(error: &serde_saphyr::Error, source: &'a str) -> Option<(&'a str, &'a str)> {
    let location = error.location()?;
    let line = source.lines().nth((location.line() as usize).checked_sub(1)?)?;
    let (key, value) = line.trim_start().trim_start_matches("- ").split_once(": ")?;
    let is_plain = !key.starts_with(['{', '[', '"', '\'', '#']) && !value.trim_start().starts_with(['{', '[']);
    is_plain.then(|| (key.trim(), value.trim()))
}

/// Describes an expected type without Rust terms.
fn type_name(kind: &str) -> &str {
    let is_whole = kind.strip_prefix(['i', 'u']).is_some_and(|bits| bits == "size" || bits.parse::<u8>().is_ok());
    match kind {
        "bool" | "boolean" => "`true` or `false`",
        "floating point" => "a number",
        _ if is_whole => "a whole number",
        other => other,
    }
}

/// Removes the position, which the error shows before the message.
fn without_location(message: &str) -> String {
    let is_location = |rest: &str| rest.split(", column ").all(|number| number.parse::<u64>().is_ok());
    let location = message.rsplit_once(" at line ").filter(|(_, rest)| is_location(rest));
    location.map_or(message, |(message, _)| message).to_owned()
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, help, text, .. } = self;
        let file = file.display();
        let message = match help {
            Some(help) => format!("{message}; {help}"),
            None => message.clone(),
        };
        if *line == 0 {
            return write!(f, "{file}: {message}");
        }
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let caret = " ".repeat(column.saturating_sub(1));
        write!(f, "{file}:{line}:{column}: {message}\n {number} | {text}\n {margin} | {caret}^")
    }
}

impl std::error::Error for BundleError {}
