//! Escapes characters that a terminal would hide or obey. `conformance/text/characters.json` lists them; the console and Python follow
//! the same list.

use std::borrow::Cow;

/// The strictness of escaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeMode {
    /// For text that a user decides about: every invisible character is escaped. One line; a tab becomes four spaces.
    Exact,
    /// As `Exact`, but line breaks and tabs stay.
    Lines,
    /// For text that a user only reads: the joiners of emoji and some scripts and unusual spaces stay.
    Prose,
    /// As `Prose`, but line breaks and tabs stay.
    Stream,
}

/// A part of a text: unchanged characters, or the replacement of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Unchanged characters.
    Shown(&'a str),
    /// The symbol or the code of one character.
    StandIn(Cow<'static, str>),
}

/// Escapes a text: control characters become symbols (`␛`), characters that hide or reorder text become their code
/// (`\u{202e}`).
///
/// ```
/// use amplifier_core::text::{EscapeMode, visible};
///
/// assert_eq!(visible("rm \u{1b}[2K\u{202e}", EscapeMode::Exact), "rm ␛[2K\\u{202e}");
/// ```
pub fn visible(text: &str, mode: EscapeMode) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text, mode) {
        match piece {
            Piece::Shown(text) => out.push_str(text),
            Piece::StandIn(text) => out.push_str(&text),
        }
    }
    out
}

/// Escapes a text in one line: line breaks become spaces. For the output of other programs.
pub fn visible_line(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    visible(&lines.join(" "), EscapeMode::Exact)
}

/// Returns the parts of a text, in order.
pub fn pieces(text: &str, mode: EscapeMode) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut shown_from, mut before) = (0, None);
    for (at, character) in text.char_indices() {
        if let Some(stand_in) = stand_in(character, before, mode) {
            if shown_from < at {
                pieces.push(Piece::Shown(&text[shown_from..at]));
            }
            pieces.push(stand_in);
            shown_from = at + character.len_utf8();
        }
        before = Some(character);
    }
    if shown_from < text.len() {
        pieces.push(Piece::Shown(&text[shown_from..]));
    }
    pieces
}

fn stand_in(character: char, before: Option<char>, mode: EscapeMode) -> Option<Piece<'static>> {
    let is_prose = matches!(mode, EscapeMode::Prose | EscapeMode::Stream);
    match character {
        ' '..='~' => None,
        '\n' | '\t' if matches!(mode, EscapeMode::Lines | EscapeMode::Stream) => None,
        '\t' => Some(Piece::Shown("    ")),
        '\0'..='\u{1f}' => picture(u32::from(character)),
        '\u{7f}' => picture(0x21),
        _ if is_prose && (is_joiner(character) || is_unusual_space(character)) => None,
        // The selector makes an emoji of a symbol such as `⚠`; after a letter it has no use.
        '\u{fe0f}' if before.is_some_and(|symbol| !symbol.is_ascii() && !symbol.is_alphanumeric()) => None,
        _ if is_invisible(character) || !is_printable(character) || is_unusual_space(character) => {
            Some(Piece::StandIn(character.escape_unicode().to_string().into()))
        }
        _ => None,
    }
}

/// Unicode has a symbol for each ASCII control character, in the same order.
fn picture(code: u32) -> Option<Piece<'static>> {
    let picture = char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(Piece::StandIn(picture.to_string().into()))
}

/// Returns `true` for characters of zero width, without a glyph, or that change the order of others. Control characters are not
/// included.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Returns `true` for characters that look like a space, but do not separate words in a shell.
pub fn is_unusual_space(character: char) -> bool {
    let is_space = matches!(character, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}');
    is_space || matches!(character, '\u{2800}' | '\u{3000}')
}

/// Returns `false` for control, format, private-use and unassigned characters, and separators other than the space.
fn is_printable(character: char) -> bool {
    // The standard library has this table for `Debug`. It also escapes combining marks, but only at the beginning.
    let mut text = [b'a'; 5];
    let length = 1 + character.encode_utf8(&mut text[1..]).len();
    str::from_utf8(&text[..length]).is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_keeps_joiners_and_spaces_and_several_lines_keep_their_breaks() {
        let cases = [
            // text, exactly, in lines, as prose, as a stream
            ("a\nb\tc", "a␊b    c", "a\nb\tc", "a␊b    c", "a\nb\tc"),
            ("a\r\n", "a␍␊", "a␍\n", "a␍␊", "a␍\n"),
            (
                "a\u{2028}\u{e000}",
                "a\\u{2028}\\u{e000}",
                "a\\u{2028}\\u{e000}",
                "a\\u{2028}\\u{e000}",
                "a\\u{2028}\\u{e000}",
            ),
            ("rm\u{a0}x", "rm\\u{a0}x", "rm\\u{a0}x", "rm\u{a0}x", "rm\u{a0}x"),
            ("👩\u{200d}🚀", "👩\\u{200d}🚀", "👩\\u{200d}🚀", "👩\u{200d}🚀", "👩\u{200d}🚀"),
            ("x\u{fe0f}", "x\\u{fe0f}", "x\\u{fe0f}", "x\u{fe0f}", "x\u{fe0f}"),
        ];
        for (text, exact, lines, prose, stream) in cases {
            let modes = [EscapeMode::Exact, EscapeMode::Lines, EscapeMode::Prose, EscapeMode::Stream];
            assert_eq!(modes.map(|mode| visible(text, mode)), [exact, lines, prose, stream], "{text:?}");
        }
    }

    #[test]
    fn characters_are_shown_as_the_table_says() {
        let table = include_str!("../../../../conformance/text/characters.json");
        let table: serde_json::Value = serde_json::from_str(table).unwrap();
        for case in table["cases"].as_array().unwrap() {
            let shown = visible(case["text"].as_str().unwrap(), EscapeMode::Exact);
            assert_eq!(shown, case["terminal"], "{case}");
        }
    }

    #[test]
    fn nothing_that_is_shown_exactly_is_a_control_character() {
        for character in '\0'..=char::MAX {
            let shown = visible(&format!("a{character}"), EscapeMode::Exact);
            assert!(
                shown.chars().all(|shown| !shown.is_control() && (shown == '\u{fe0f}' || !is_invisible(shown))),
                "{character:?}"
            );
        }
    }
}
