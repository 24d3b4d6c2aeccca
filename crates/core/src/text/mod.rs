//! Text for people: made visible, cut to a length, counted.

mod visible;

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use serde::Serializer;

pub use self::visible::{EscapeMode, Piece, is_invisible, is_unusual_space, pieces, visible, visible_line};

/// A number of things: `1 hook`, `2 hooks`.
pub fn counted(number: impl Display, thing: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// The first characters of a text, at most so many.
pub fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// The text, cut after so many characters; `…` stands for the rest. Owned only if it is cut.
pub fn truncate_chars(text: &str, most: usize) -> Cow<'_, str> {
    truncated(text, first_chars(text, most))
}

/// The text, cut after so many bytes, or before the character that lies across; `…` stands for the rest. Owned only if it is cut.
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

/// Reads a duration from seconds.
pub(crate) fn from_seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(<f64 as serde::Deserialize>::deserialize(deserializer)?)
        .map_err(serde::de::Error::custom)
}

/// `true` if a model may read the character: no control characters but line breaks and tabs.
pub fn is_readable(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}
