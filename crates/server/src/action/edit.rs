//! What `Edit` and `MultiEdit` would make of a file.

use serde_json::Value;

/// One replacement.
pub(super) struct Edit<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    all: bool,
}

impl<'a> Edit<'a> {
    /// Reads the fields of one edit.
    pub(super) fn read(fields: &'a Value) -> Option<Self> {
        let text = |name: &str| fields.get(name)?.as_str();
        let all = fields.get("replace_all").and_then(Value::as_bool).unwrap_or(false);
        Some(Self { old: text("old_string")?, new: text("new_string")?, all })
    }
}

/// The text after all edits, in order; or why one of them cannot be made.
pub(super) fn edited(text: &str, edits: &[Edit<'_>]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (number, Edit { old, new, all }) in edits.iter().enumerate().map(|(index, edit)| (index + 1, edit)) {
        // An edit of nothing writes a new file.
        let found = if old.is_empty() { usize::from(text.is_empty()) } else { text.matches(old).count() };
        text = match (found, *all) {
            (0, _) => return Err(format!("edit {number} replaces a text that the file does not hold")),
            (1, _) | (_, true) => text.replace(old, new),
            (_, false) => return Err(format!("edit {number} replaces a text that the file holds {found} times")),
        };
    }
    Ok(text)
}
