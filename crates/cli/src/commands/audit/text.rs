//! Untrusted text, prepared for a terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::{EscapeMode, visible};

/// Returns the text as one line, with control, bidirectional and hidden characters escaped.
pub(crate) fn sanitize(text: &str) -> String {
    visible(text, EscapeMode::Exact)
}

/// Shortens a text to `columns`, ending with `…` if text was removed.
pub(crate) fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
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

/// Pads a text with spaces to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(text.width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_the_columns_that_it_takes() {
        assert_eq!(
            (truncate("abcd", 4), truncate("abcd", 3), truncate("日本語", 5)),
            ("abcd".into(), "ab…".into(), "日本…".into())
        );
        assert_eq!((pad("日本", 6), pad("long", 2)), ("日本  ".to_owned(), "long".to_owned()));
    }
}
