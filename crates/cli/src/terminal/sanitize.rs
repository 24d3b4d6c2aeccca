//! Makes visible what a terminal would hide or obey.

use std::borrow::Cow;

/// How exactly a text has to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// What a person decides about: nothing invisible stays invisible. One line; a tab becomes four spaces.
    Exact,
    /// What a person only reads: the joiners that emoji and some scripts need are kept, and so are unusual spaces.
    Prose,
    /// Prose that flows: line breaks and tabs are kept, too.
    Stream,
}

/// A part of a text: as it was, or standing in for a character that could not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Shown(&'a str),
    StandIn(Cow<'static, str>),
}

/// The text with everything visible: control characters become pictures (`␛`), characters that hide or reorder text
/// become their code (`\u{202e}`).
///
/// ```
/// use amplifier::terminal::{Reading, visible};
///
/// assert_eq!(visible("rm \u{1b}[2K\u{202e}", Reading::Exact), "rm ␛[2K\\u{202e}");
/// ```
pub fn visible(text: &str, reading: Reading) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text, reading) {
        match piece {
            Piece::Shown(text) => out.push_str(text),
            Piece::StandIn(text) => out.push_str(&text),
        }
    }
    out
}

/// The parts of a text, in order.
pub(super) fn pieces(text: &str, reading: Reading) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut shown_from, mut before) = (0, None);
    for (at, character) in text.char_indices() {
        if let Some(stand_in) = stand_in(character, before, reading) {
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

fn stand_in(character: char, before: Option<char>, reading: Reading) -> Option<Piece<'static>> {
    match character {
        '\n' | '\t' if reading == Reading::Stream => None,
        '\t' => Some(Piece::Shown("    ")),
        '\0'..='\u{1f}' => picture(u32::from(character)),
        '\u{7f}' => picture(0x21),
        _ if is_joiner(character) && reading != Reading::Exact => None,
        // `⚠` is drawn as an emoji by a selector that follows it; after a letter it has no business.
        '\u{fe0f}' if before.is_some_and(|symbol| !symbol.is_ascii() && !symbol.is_alphanumeric()) => None,
        _ if is_unusual_space(character) && reading != Reading::Exact => None,
        _ if character.is_control() || is_hidden(character) || is_unusual_space(character) => {
            Some(Piece::StandIn(character.escape_unicode().to_string().into()))
        }
        _ => None,
    }
}

/// Unicode has a picture for each control character of ASCII, in the same order.
fn picture(code: u32) -> Option<Piece<'static>> {
    let picture = char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(Piece::StandIn(picture.to_string().into()))
}

/// Characters that take no room, draw nothing, or change the order in which others are read.
fn is_hidden(character: char) -> bool {
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

/// Looks like a space, but separates no words for a shell. The wide one of Chinese and Japanese text shows itself.
fn is_unusual_space(character: char) -> bool {
    matches!(character, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_hide_or_obey_is_made_visible() {
        let cases = [
            // text, exactly, as prose, as a stream
            ("plain", "plain", "plain", "plain"),
            ("größer 大きい नमस्ते", "größer 大きい नमस्ते", "größer 大きい नमस्ते", "größer 大きい नमस्ते"),
            ("a\nb\tc", "a␊b    c", "a␊b    c", "a\nb\tc"),
            ("a\r\n", "a␍␊", "a␍␊", "a␍\n"),
            ("\x1b[2J\x07\x00\x7f", "␛[2J␇␀␡", "␛[2J␇␀␡", "␛[2J␇␀␡"),
            ("\u{9b}2J", "\\u{9b}2J", "\\u{9b}2J", "\\u{9b}2J"),
            ("a\u{202e}b\u{2069}", "a\\u{202e}b\\u{2069}", "a\\u{202e}b\\u{2069}", "a\\u{202e}b\\u{2069}"),
            ("a\u{200b}\u{feff}b", "a\\u{200b}\\u{feff}b", "a\\u{200b}\\u{feff}b", "a\\u{200b}\\u{feff}b"),
            ("a\u{2028}b", "a\\u{2028}b", "a\\u{2028}b", "a\\u{2028}b"),
            ("x\u{e0041}", "x\\u{e0041}", "x\\u{e0041}", "x\\u{e0041}"),
            ("rm\u{a0}x", "rm\\u{a0}x", "rm\u{a0}x", "rm\u{a0}x"),
            ("👩\u{200d}🚀", "👩\\u{200d}🚀", "👩\u{200d}🚀", "👩\u{200d}🚀"),
            ("⚠\u{fe0f} x\u{fe0f}", "⚠\u{fe0f} x\\u{fe0f}", "⚠\u{fe0f} x\u{fe0f}", "⚠\u{fe0f} x\u{fe0f}"),
        ];
        for (text, exact, prose, stream) in cases {
            let shown = [Reading::Exact, Reading::Prose, Reading::Stream].map(|reading| visible(text, reading));
            assert_eq!(shown, [exact, prose, stream], "{text:?}");
        }
    }

    #[test]
    fn nothing_that_is_shown_exactly_is_a_control_character() {
        for character in '\0'..=char::MAX {
            let shown = visible(&format!("a{character}"), Reading::Exact);
            assert!(shown.chars().all(|shown| !shown.is_control() && !is_hidden(shown)), "{character:?}");
        }
    }
}
