//! Errors in bundles, with their positions.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Location;

use super::InvalidEntry;
use crate::condition::did_you_mean;

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
    /// The cause, and what to do.
    pub message: String,
    /// Text of the line.
    pub text: String,
}

impl BundleError {
    /// Creates an error that concerns a whole file.
    pub fn whole(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: 0, column: 0, message: message.into(), text: String::new() }
    }

    pub(crate) fn at(location: Location, message: impl Into<String>, source: &str, file: &Path) -> Self {
        let (line, column) = (location.line() as usize, location.column() as usize);
        let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
        Self { file: file.to_owned(), line, column, message: message.into(), text }
    }

    /// Creates an error at a key of a hook, or at the hook if the key is not found.
    pub(super) fn at_key(location: Location, key: &str, message: impl Into<String>, source: &str, file: &Path) -> Self {
        let whole = Self::at(location, message, source, file);
        match key_location(location, key, source) {
            Some((line, column, text)) => Self { line, column, text: text.to_owned(), ..whole },
            None => whole,
        }
    }

    pub(super) fn invalid_entry(location: Location, invalid_entry: InvalidEntry, source: &str, file: &Path) -> Self {
        match invalid_entry.key {
            Some(key) => Self::at_key(location, key, invalid_entry.problem, source, file),
            None => Self::at(location, invalid_entry.problem, source, file),
        }
    }

    pub(super) fn yaml(error: &serde_saphyr::Error, source: &str, file: &Path) -> Self {
        let error = error.without_snippet();
        let message = match error {
            serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
                let hint = did_you_mean(field, expected.iter().copied());
                let hint = hint.unwrap_or_else(|| format!("expected one of {}", quoted(expected)));
                format!("unknown key `{field}`; {hint}")
            }
            serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
                let hint = did_you_mean(variant, expected.iter().copied());
                let hint = hint.unwrap_or_else(|| format!("expected one of {}", quoted(expected)));
                format!("unknown value `{variant}`; {hint}")
            }
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("duplicate key `{key}`; remove one of them")
            }
            serde_saphyr::Error::InvalidScalar { ty, .. } => format!("invalid value: expected {}", type_name(ty)),
            serde_saphyr::Error::MultipleDocuments { .. } => {
                "a bundle is one document; remove the `---` before this".to_owned()
            }
            other => match without_location(&other.to_string()).as_str() {
                "expected mapping start" => "expected keys with values, such as `key: value`".to_owned(),
                "expected sequence start" => "expected a list, whose items begin with `- `".to_owned(),
                message => message.to_owned(),
            },
        };
        match error.location() {
            Some(location) => Self::at(location, message, source, file),
            None => Self::whole(file, message),
        }
    }
}

/// Returns the line, column and text of a key. The YAML parser has positions of entries only, not of keys.
fn key_location<'a>(location: Location, key: &str, source: &'a str) -> Option<(usize, usize, &'a str)> {
    let (first, indent) = ((location.line() as usize).checked_sub(1)?, location.column() as usize - 1);
    let lines = source.lines().enumerate().skip(first);
    let own = lines.take_while(|(number, line)| {
        let is_within = line.len() - line.trim_start().len() >= indent;
        *number == first || is_within || line.trim().is_empty()
    });
    own.filter_map(|(number, line)| Some((number, line, line.get(indent..)?))).find_map(|(number, line, rest)| {
        // The first key follows the dash; keys may also be within braces.
        let at = match rest.starts_with('{') {
            true => ["{", "{ ", ", ", ","]
                .iter()
                .find_map(|before| rest.find(&format!("{before}{key}:")).map(|at| at + before.len()))?,
            false => rest.strip_prefix(key)?.starts_with(':').then_some(0)?,
        };
        Some((number + 1, indent + at + 1, line))
    })
}

/// Describes an expected type without Rust terms.
fn type_name(kind: &str) -> &str {
    let is_whole = kind.strip_prefix(['i', 'u']).is_some_and(|bits| bits == "size" || bits.parse::<u8>().is_ok());
    match kind {
        "bool" | "boolean" => "`true` or `false`",
        "floating point" => "a number",
        _ if is_whole => "a whole number in range",
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
        let Self { file, line, column, message, text } = self;
        let file = file.display();
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
