//! Readable messages for syntax errors.

use super::error::{ConditionError, Span};
use super::parse::outside_strings;

/// Parser messages about unexpected tokens, in terms of its own grammar.
const UNEXPECTED: [&str; 5] =
    ["extraneous input", "mismatched input", "missing ", "no viable alternative", "token recognition error"];

/// Operators of other languages, and their equivalents.
const WORDS: [(&str, &str); 6] = [("and", "&&"), ("AND", "&&"), ("or", "||"), ("OR", "||"), ("not", "!"), ("NOT", "!")];

/// Explains a syntax error from the parser's message and its position.
pub(super) fn explain(source: &str, offset: usize, parser_message: &str) -> ConditionError {
    let error = |span: Span, message: String, help: Option<String>| {
        ConditionError::new(source, span, format!("syntax error, {message}")).with_help(help)
    };
    if let Some((span, message, help)) = invalid_escape(source) {
        return error(span, message, Some(help));
    }
    if let Some((at, quote)) = open_text(source) {
        let help = format!("end it with `{quote}`");
        return error(Span::new(at, 1), "this text is never closed".to_owned(), Some(help));
    }
    if let Some((span, message)) = unbalanced(source) {
        return error(span, message, None);
    }
    if let Some((span, meant)) = other_language(source) {
        let found = &source[span.offset..span.offset + span.length];
        return error(span, format!("unknown operator `{found}`"), Some(format!("write `{meant}`")));
    }
    if parser_message.contains("has()") {
        let place = Span::new(offset, 1);
        return error(place, "`has` takes a field of something".into(), Some("write `has(tool_input.path)`".into()));
    }
    // The parser's term for an incomplete tree.
    if parser_message.contains("Context") {
        let length = source[offset..].chars().next().map_or(0, char::len_utf8);
        return error(Span::new(offset, length), "the expression is incomplete".to_owned(), None);
    }
    if offset >= source.trim_end().len() {
        let last = source.trim_end().rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        return error(Span::new(offset, 0), "the expression ends too early".into(), Some(after(last)));
    }
    let length = token(&source[offset..]);
    let span = Span::new(offset, length);
    match UNEXPECTED.iter().any(|words| parser_message.contains(words)) {
        true => error(span, format!("`{}` does not belong here", printable(&source[offset..offset + length])), None),
        false => error(span, parser_message.trim_start_matches("Syntax error: ").to_owned(), None),
    }
}

/// Characters that can follow a backslash in a text.
const ESCAPES: &str = "abfnrtv\\?\"'`xXuU01234567";

/// Finds a backslash before a character that it cannot escape, as in a regular expression that is not a raw text.
fn invalid_escape(source: &str) -> Option<(Span, String, String)> {
    let (mut quote, mut is_raw, mut before) = (None, false, ' ');
    let mut characters = source.char_indices();
    while let Some((at, c)) = characters.next() {
        match quote {
            None if matches!(c, '"' | '\'') => (quote, is_raw) = (Some(c), matches!(before, 'r' | 'R')),
            Some(open) if c == open => quote = None,
            Some(_) if c == '\\' && !is_raw => {
                let (_, escaped) = characters.next()?;
                if !ESCAPES.contains(escaped) {
                    let help = format!("write `\\\\{escaped}`, or `r` before the text: `r\"…\"`");
                    let span = Span::new(at, 1 + escaped.len_utf8());
                    return Some((span, format!("invalid escape `\\{escaped}` in this text"), help));
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

fn after(last: &str) -> String {
    format!("something is missing after `{}`", printable(last))
}

/// Returns a token with invisible characters as code points.
fn printable(token: &str) -> String {
    let character = |c: char| match c.is_ascii_graphic() || c.is_alphanumeric() {
        true => c.to_string(),
        false => format!("U+{:04X}", u32::from(c)),
    };
    token.chars().map(character).collect()
}

fn token(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word: usize = text.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
    if word > 0 { word } else { text.chars().next().map_or(0, char::len_utf8) }
}

/// Finds the start of an unterminated text.
fn open_text(source: &str) -> Option<(usize, char)> {
    let outside: Vec<usize> = outside_strings(source).map(|(at, _)| at).collect();
    // Quotes are not outside of texts: a quote after the last outside character opens an unterminated text.
    let after = outside.last().map_or(0, |at| at + 1);
    let rest = &source[after..];
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut is_open = false;
    let (mut escaped, mut began) = (false, after);
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if is_open => escaped = true,
            c if c == quote => {
                is_open = !is_open;
                began = if is_open { after + at } else { began };
            }
            _ => {}
        }
    }
    is_open.then_some((began, quote))
}

/// Finds the first unmatched closing bracket, or the last unmatched opening one.
fn unbalanced(source: &str) -> Option<(Span, String)> {
    let mut open: Vec<(usize, u8)> = Vec::new();
    for (at, byte) in outside_strings(source) {
        let opener = match byte {
            b'(' | b'[' | b'{' => {
                open.push((at, byte));
                continue;
            }
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => continue,
        };
        match open.pop() {
            Some((_, before)) if before == opener => {}
            Some((_, before)) => {
                let (closer, before) = (char::from(byte), char::from(before));
                return Some((Span::new(at, 1), format!("this `{closer}` does not close `{before}`")));
            }
            None => return Some((Span::new(at, 1), format!("this `{}` closes nothing", char::from(byte)))),
        }
    }
    let (at, opener) = open.pop()?;
    Some((Span::new(at, 1), format!("this `{}` is never closed", char::from(opener))))
}

/// Finds the first operator of another language, and its equivalent.
fn other_language(source: &str) -> Option<(Span, String)> {
    let bytes = source.as_bytes();
    let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    outside_strings(source).find_map(|(at, now)| {
        let (before, after) = (byte(at.checked_sub(1)), byte(at.checked_add(1)));
        let sign = match now {
            b'=' if source[at..].starts_with("===") => Some((3, "==")),
            b'=' if !b"=!<>".contains(&before) && after != b'=' => Some((1, "==")),
            b'&' if before != b'&' && after != b'&' => Some((1, "&&")),
            b'|' if before != b'|' && after != b'|' => Some((1, "||")),
            b'<' if after == b'>' => Some((2, "!=")),
            _ => None,
        };
        if let Some((length, meant)) = sign {
            return Some((Span::new(at, length), meant.to_owned()));
        }
        if now == b'?' && after == b'?' {
            return Some((Span::new(at, 2), without_default(source, at)));
        }
        let begins_word = !is_word(before) && before != b'.';
        let word = WORDS.iter().find(|(word, _)| {
            begins_word
                && source.get(at..).is_some_and(|rest| rest.starts_with(word))
                && !is_word(byte(Some(at + word.len())))
        });
        word.map(|(word, meant)| (Span::new(at, word.len()), (*meant).to_owned()))
    })
}

/// Returns the expression for `a ?? b`, at the position of the operator. A missing field is `null`.
fn without_default(source: &str, at: usize) -> String {
    let is_operand = |c: char| c.is_alphanumeric() || "_.[]'\"".contains(c);
    let (before, after) = (source[..at].trim_end(), source[at + 2..].trim_start());
    let value = before.rsplit(|c: char| !is_operand(c)).next().filter(|value| !value.is_empty()).unwrap_or("a");
    let default = after.split(|c: char| !is_operand(c)).next().filter(|_| after.trim_end().chars().all(is_operand));
    format!("{value} != null ? {value} : {}", default.filter(|default| !default.is_empty()).unwrap_or("b"))
}
