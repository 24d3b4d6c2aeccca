//! Text for users: escaping, truncation, counts.

mod visible;

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use serde::Serializer;

pub use self::visible::{EscapeMode, Piece, is_invisible, is_unusual_space, pieces, visible, visible_line};

/// Formats a number of things: `1 hook`, `2 hooks`.
pub fn counted(number: impl Display, thing: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Returns the first `most` characters of a text.
pub fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// Truncates a text to `most` characters; `…` replaces the rest. Owned only if truncated.
pub fn truncate_chars(text: &str, most: usize) -> Cow<'_, str> {
    truncated(text, first_chars(text, most))
}

/// Truncates a text to `most` bytes, at the boundary of a character; `…` replaces the rest. Owned only if truncated.
///
/// ```
/// use amplifier_core::text::{truncate_bytes, truncate_chars};
///
/// assert_eq!((truncate_bytes("größe", 3), truncate_chars("größe", 3)), ("gr…".into(), "grö…".into()));
/// ```
pub fn truncate_bytes(text: &str, most: usize) -> Cow<'_, str> {
    truncated(text, &text[..text.floor_char_boundary(most)])
}

fn truncated<'a>(text: &'a str, head: &'a str) -> Cow<'a, str> {
    if head.len() == text.len() { text.into() } else { format!("{head}…").into() }
}

pub(crate) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

pub(crate) fn from_seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(<f64 as serde::Deserialize>::deserialize(deserializer)?)
        .map_err(serde::de::Error::custom)
}

/// Returns `true` if a model may read the character: no control characters but line breaks and tabs.
pub fn is_readable(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}
