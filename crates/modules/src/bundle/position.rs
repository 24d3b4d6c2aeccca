//! Positions of keys and of parts of their values. The YAML parser has positions of entries only.

use serde_saphyr::Location;

use crate::condition::Span;

/// The position of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPosition<'a> {
    /// Line, counted from 1.
    pub(super) line: usize,
    /// Column, counted from 1.
    pub(super) column: usize,
    /// Text of the line.
    pub(super) text: &'a str,
}

/// Returns the lines of a list entry, with their numbers counted from 1.
pub(super) fn entry_lines(location: Location, source: &str) -> impl Iterator<Item = (usize, &str)> {
    let (first, indent) = (location.line() as usize, (location.column() as usize).saturating_sub(1));
    let lines = source.lines().enumerate().map(|(at, line)| (at + 1, line)).skip(first.saturating_sub(1));
    lines.take_while(move |(number, line)| {
        let is_within = line.len() - line.trim_start().len() >= indent;
        *number == first || is_within || line.trim().is_empty()
    })
}

/// Finds a key of an entry.
pub(super) fn find_key<'a>(location: Location, key: &str, source: &'a str) -> Option<KeyPosition<'a>> {
    let indent = (location.column() as usize).checked_sub(1)?;
    let own = entry_lines(location, source);
    own.filter_map(|(number, line)| Some((number, line, line.get(indent..)?))).find_map(|(line, text, rest)| {
        // The first key follows the dash; keys may also be within braces.
        let at = match rest.starts_with('{') {
            true => ["{", "{ ", ", ", ","]
                .iter()
                .find_map(|before| rest.find(&format!("{before}{key}:")).map(|at| at + before.len()))?,
            false => rest.strip_prefix(key)?.starts_with(':').then_some(0)?,
        };
        Some(KeyPosition { line, column: indent + at + 1, text })
    })
}

/// Finds a part of a text below a key, such as `when` or `modify.set./tool_input/path`. Returns the line, the column, and the text of the line.
pub(super) fn find_part<'a>(
    location: Location,
    field: &str,
    text: &str,
    span: Span,
    source: &'a str,
) -> Option<(usize, usize, &'a str)> {
    let mut parts = field.splitn(3, '.');
    let key = find_key(location, parts.next()?, source)?;
    let mut from = offset(source, key.line, key.column)?;
    for part in parts {
        from += source.get(from..)?.find(part)?;
        from += part.len();
    }
    let value = from + source.get(from..)?.find(':')? + 1;
    let at = part_offset(source, value, text, span.offset)?;
    let (begin, number) = match source[..at].rfind('\n') {
        Some(newline) => (newline + 1, source[..at].matches('\n').count() + 1),
        None => (0, 1),
    };
    Some((number, source[begin..at].chars().count() + 1, source[begin..].lines().next().unwrap_or_default()))
}

/// Returns the offset of a position whose column is in characters.
fn offset(source: &str, line: usize, column: usize) -> Option<usize> {
    let begin: usize = source.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    Some(begin + source.get(begin..)?.char_indices().nth(column.checked_sub(1)?)?.0)
}

/// Finds the offset of a part of a value. The file may have the value in quotes, with escapes, or in several lines: so white space, quotes and
/// backslashes of the file that the value does not have are skipped.
fn part_offset(source: &str, value: usize, text: &str, part: usize) -> Option<usize> {
    let rest = source.get(value..)?;
    let begin = value + rest.len() - rest.trim_start_matches(' ').len();
    let begin = match source[begin..].chars().next()? {
        '"' | '\'' => begin + 1,
        // A block: its text begins in the next line.
        '|' | '>' => begin + source[begin..].find('\n')?,
        _ => begin,
    };
    let mut file = source[begin..].char_indices().map(|(at, c)| (begin + at, c)).peekable();
    for (at, wanted) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        while file.peek().is_some_and(|(_, c)| *c != wanted && (c.is_whitespace() || "\\\"'".contains(*c))) {
            file.next();
        }
        let (found, c) = file.next()?;
        if c != wanted {
            return None;
        }
        if at >= part {
            return Some(found);
        }
        if at + wanted.len_utf8() >= part && text[part..].trim().is_empty() {
            return Some(found + c.len_utf8());
        }
    }
    None
}
