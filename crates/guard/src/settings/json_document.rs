//! A JSON text with the positions of its parts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::SettingsError;

pub(super) const HOOKS: &str = "hooks";

/// The texts that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    /// JSON with comments. Commas before the end of a list are errors in both.
    WithComments,
}

impl Syntax {
    /// Parses settings.
    pub(super) fn parse(self, text: &str) -> Result<Value, SettingsError> {
        serde_json::from_str(&self.plain(text)).map_err(|error| SettingsError::Json(error.to_string()))
    }

    /// Returns the text with spaces in the place of comments, so that every position stays.
    fn plain(self, text: &str) -> Cow<'_, str> {
        if self == Self::Json || !text.contains('/') {
            return text.into();
        }
        let mut plain = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (length, is_comment) = match first {
                '"' => (end_of_text(rest), false),
                '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
                '/' if rest.starts_with("/*") => (rest[2..].find("*/").map_or(rest.len(), |end| end + 4), true),
                other => (other.len_utf8(), false),
            };
            let (part, after) = rest.split_at(length);
            if is_comment {
                plain.extend(
                    part.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { char::from(byte) } else { ' ' }),
                );
            } else {
                plain.push_str(part);
            }
            rest = after;
        }
        plain.into()
    }
}

/// Returns the length of the JSON text at the start.
fn end_of_text(rest: &str) -> usize {
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, letter)| {
        let is_end = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        is_end
    });
    end.map_or(rest.len(), |(at, _)| at + 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A member of an object, or an element of a list.
pub(super) struct Item {
    /// The start of the key, or of the element.
    start: usize,
    key: Option<String>,
    pub(super) value: Span,
}

/// A text that is known to be JSON with an object.
pub(super) struct Document<'a> {
    text: &'a str,
    /// The text without comments, with the same positions.
    pub(super) plain: Cow<'a, str>,
    pub(super) root: Span,
    indent: String,
    line_end: &'static str,
}

impl<'a> Document<'a> {
    pub(super) fn parse(syntax: Syntax, text: &'a str) -> Result<Self, SettingsError> {
        if !syntax.parse(text)?.is_object() {
            return Err(SettingsError::Form("the file".to_owned(), "an object"));
        }
        let plain = syntax.plain(text);
        let root = Span { start: plain.find('{').unwrap_or_default(), end: plain.trim_end().len() };
        let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let indent = indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()]);
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Ok(Self { text, plain, root, indent: indent.to_owned(), line_end })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.plain.as_bytes()
    }

    pub(super) fn expect(&self, span: Span, first: u8, key: &str, kind: &'static str) -> Result<(), SettingsError> {
        match self.bytes()[span.start] == first {
            true => Ok(()),
            false => Err(SettingsError::Form(key.to_owned(), kind)),
        }
    }

    pub(super) fn member(&self, object: Span, key: &str) -> Result<Option<Span>, SettingsError> {
        let mut found = self.items(object).into_iter().filter(|item| item.key.as_deref() == Some(key));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(SettingsError::Twice(key.to_owned())),
            (found, _) => Ok(found.map(|item| item.value)),
        }
    }

    /// Returns the list of handlers of a group, and its items; none for anything else.
    pub(super) fn handlers(&self, entry: Span) -> Result<Option<(Span, Vec<Item>)>, SettingsError> {
        if self.bytes()[entry.start] != b'{' {
            return Ok(None);
        }
        let list = self.member(entry, HOOKS)?.filter(|list| self.bytes()[list.start] == b'[');
        Ok(list.map(|list| (list, self.items(list))))
    }

    /// Returns the items of an object or list.
    pub(super) fn items(&self, container: Span) -> Vec<Item> {
        let is_object = self.bytes()[container.start] == b'{';
        let mut items = Vec::new();
        let mut at = self.skip_space(container.start + 1);
        while at < container.end - 1 {
            let start = at;
            let mut key = None;
            if is_object {
                let end = self.value_end(at);
                key = serde_json::from_str(&self.plain[at..end]).ok();
                // Behind the colon.
                at = self.skip_space(self.skip_space(end) + 1);
            }
            let value = Span { start: at, end: self.value_end(at) };
            items.push(Item { start, key, value });
            // Behind the comma.
            at = self.skip_space(self.skip_space(value.end) + 1);
        }
        items
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while self.bytes().get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    /// Returns the end of the value that starts here.
    fn value_end(&self, start: usize) -> usize {
        let bytes = self.bytes();
        let (mut depth, mut is_text, mut at) = (0_usize, false, start);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' if is_text => at += 1,
                b'"' => {
                    is_text = !is_text;
                    if !is_text && depth == 0 {
                        return at + 1;
                    }
                }
                _ if is_text => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return at,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                b',' if depth == 0 => return at,
                byte if depth == 0 && byte.is_ascii_whitespace() => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn has_lines(&self) -> bool {
        self.text.trim_end().contains('\n') || self.items(self.root).is_empty()
    }

    fn line_break(&self, depth: usize) -> String {
        if self.has_lines() { format!("{}{}", self.line_end, self.indent.repeat(depth)) } else { String::new() }
    }

    /// Returns a value as text whose lines are indented for a depth.
    pub(super) fn render(&self, value: &Value, depth: usize) -> String {
        if !self.has_lines() {
            return value.to_string();
        }
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.indent.as_bytes());
        // Writing JSON into memory does not fail.
        _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
        String::from_utf8_lossy(&bytes).replace('\n', &self.line_break(depth))
    }

    pub(super) fn insert_member(&self, object: Span, key: &str, value: &Value, depth: usize) -> String {
        let colon = if self.has_lines() { ": " } else { ":" };
        self.insert(object, &format!("{}{colon}{}", Value::from(key), self.render(value, depth)), depth)
    }

    /// Appends an item to a container.
    pub(super) fn insert(&self, container: Span, item: &str, depth: usize) -> String {
        let (from, to, new) = match self.items(container).last() {
            Some(last) => (last.value.end, last.value.end, format!(",{}{item}", self.line_break(depth))),
            None => {
                let (start, end) = (container.start + 1, container.end - 1);
                let inner = format!("{}{item}{}", self.line_break(depth), self.line_break(depth - 1));
                (if self.comments(start, end).is_empty() { start } else { end }, end, inner)
            }
        };
        [&self.text[..from], &new, &self.text[to..]].concat()
    }

    /// Removes the item with this value, with the comma and space before or behind it. Comments there stay.
    pub(super) fn cut(&self, container: Span, items: &[Item], value: Span) -> String {
        let at = items.iter().position(|item| item.value == value).unwrap_or_default();
        let (from, to) = match (at.checked_sub(1), items.get(at + 1)) {
            (Some(before), _) => (items[before].value.end, value.end),
            (None, Some(next)) => (items[at].start, next.start),
            (None, None) => (container.start + 1, container.end - 1),
        };
        let (before, behind) = (self.comments(from, items[at].start), self.comments(value.end, to));
        [&self.text[..from], &before, &behind, &self.text[to..]].concat()
    }

    pub(super) fn has_comments(&self, span: Span) -> bool {
        self.text[span.start..span.end] != self.plain[span.start..span.end]
    }

    /// Returns a part between items without its comma if it has comments; nothing if it has none.
    fn comments(&self, from: usize, to: usize) -> String {
        let (text, plain) = (&self.text[from..to], &self.plain[from..to]);
        match plain.find(',') {
            _ if text == plain => String::new(),
            Some(comma) => [&text[..comma], &text[comma + 1..]].concat(),
            None => text.to_owned(),
        }
    }
}
