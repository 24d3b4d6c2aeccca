//! Text from elsewhere, made fit for a terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text in one line, with everything escaped that a terminal would obey, reorder or not show.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_shown(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_default()),
        }
    }
    shown.into()
}

/// Whether a terminal shows the character as what it is: no control characters, none that turn the direction of the text, none
/// without a width of its own but accents.
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text, cut where it is wider than that, and ended by `…` then.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let mut width = 0;
    let mut kept = String::new();
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width >= columns {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept.into()
}

/// The text, filled up with spaces to that width.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(text.width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (text, expected) in [
            ("plain, größer, 日本語", "plain, größer, 日本語"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("two\nlines\tand more", "two\\nlines\\tand more"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), expected);
        }
    }

    #[test]
    fn a_text_is_cut_by_the_columns_that_it_takes() {
        assert_eq!((cut("abcd", 4), cut("abcd", 3), cut("日本語", 5)), ("abcd".into(), "ab…".into(), "日本…".into()));
        assert_eq!((padded("日本", 6), padded("long", 2)), ("日本  ".to_owned(), "long".to_owned()));
    }
}
