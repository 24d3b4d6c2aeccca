//! Lines of styled text without invisible characters.

use std::fmt::Write;

use amplifier_core::text::counted;
use amplifier_core::text::{EscapeMode, Piece, pieces};
use anstyle::{AnsiColor, Color, Style};
use unicode_width::UnicodeWidthChar;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const PLAIN: Style = Style::new();
/// Allowed, added.
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
/// Denied, failed, removed.
pub(super) const RED: Style = AnsiColor::Red.on_default();
/// Warnings.
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Paths and other locations.
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
/// Escapes of characters that cannot be shown. No other text has this style.
const STAND_IN: Style = AnsiColor::Black.on_default().bg_color(Some(Color::Ansi(AnsiColor::Yellow)));

/// A line of styled text.
///
/// INVARIANT: a line contains no line break, control character or hidden character. Text enters only through
/// [`exact`](Self::exact) and [`prose`](Self::prose), and both make such characters visible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StyledLine {
    spans: Vec<(Style, String)>,
}

/// The positions at which a line may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// Between any two characters, so that no space is lost.
    Anywhere,
    /// Between words, if the line contains a space.
    Words,
}

impl StyledLine {
    /// Creates an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text that the user decides on.
    #[must_use]
    pub fn exact(self, style: Style, text: impl AsRef<str>) -> Self {
        self.add(style, text.as_ref(), EscapeMode::Exact)
    }

    /// Adds a text that the user only reads.
    #[must_use]
    pub fn prose(self, style: Style, text: impl AsRef<str>) -> Self {
        self.add(style, text.as_ref(), EscapeMode::Prose)
    }

    /// Appends another line.
    #[must_use]
    pub(super) fn then(mut self, other: &Self) -> Self {
        self.spans.extend_from_slice(&other.spans);
        self
    }

    fn add(mut self, style: Style, text: &str, reading: EscapeMode) -> Self {
        for piece in pieces(text, reading) {
            match piece {
                Piece::Shown(text) => self.spans.push((style, text.to_owned())),
                Piece::StandIn(text) => self.spans.push((STAND_IN, text.into_owned())),
            }
        }
        self
    }

    /// Returns the number of columns of the line.
    pub(super) fn width(&self) -> usize {
        self.spans.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// Returns the number of characters of the line.
    pub(super) fn length(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Returns the text without styles.
    pub(super) fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the line without spaces at its end.
    #[must_use]
    pub(super) fn without_trailing_spaces(mut self) -> Self {
        while let Some((_, text)) = self.spans.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.spans.pop();
        }
        self
    }

    /// Splits the line into rows of at most `width` columns; an empty line is one row.
    pub(super) fn wrap(&self, width: usize, at: Break) -> Vec<Self> {
        let characters: Vec<_> =
            self.spans.iter().flat_map(|(style, text)| text.chars().map(|character| (*style, character))).collect();
        let (mut rows, mut rest) = (Vec::new(), characters.as_slice());
        loop {
            let fitting = count_fitting(rest, width);
            if fitting == rest.len() {
                rows.push(Self::from_characters(rest));
                return rows;
            }
            let space =
                rest[..=fitting].iter().rposition(|(_, character)| *character == ' ').filter(|&space| space > 0);
            match space.filter(|_| at == Break::Words) {
                Some(space) => {
                    rows.push(Self::from_characters(&rest[..space]));
                    rest = &rest[space + 1..];
                }
                None => {
                    rows.push(Self::from_characters(&rest[..fitting]));
                    rest = &rest[fitting..];
                }
            }
        }
    }

    /// Shortens the line to `width` columns, ending with `…` if text was removed.
    pub(super) fn truncate(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let rows = self.wrap(width.saturating_sub(1).max(1), Break::Anywhere);
        rows.first().cloned().unwrap_or_default().exact(DIM, "…")
    }

    fn from_characters(characters: &[(Style, char)]) -> Self {
        let mut spans: Vec<(Style, String)> = Vec::new();
        for &(style, character) in characters {
            match spans.last_mut() {
                Some((last, text)) if *last == style => text.push(character),
                _ => spans.push((style, character.into())),
            }
        }
        Self { spans }
    }

    /// Returns the text of the line, with or without colour codes.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.spans {
            // Writing to a string does not fail.
            let _ = if colour { write!(out, "{style}{text}{style:#}") } else { write!(out, "{text}") };
        }
        out
    }
}

/// Returns the number of characters that fit; at least one, so that wrapping terminates.
fn count_fitting(characters: &[(Style, char)], width: usize) -> usize {
    let mut used = 0;
    let fits = |&&(_, character): &&(Style, char)| {
        used += columns(character);
        used <= width
    };
    characters.iter().take_while(fits).count().max(1).min(characters.len())
}

/// Returns the width of a character. A variation selector widens the symbol before it by one column.
fn columns(character: char) -> usize {
    if character == '\u{fe0f}' { 1 } else { character.width().unwrap_or(0) }
}

/// Shortens `rows` to `limit`, keeping the beginning and the end, with a row that counts the hidden rows between them.
pub(super) fn fold(mut rows: Vec<StyledLine>, limit: usize, hint: &str) -> Vec<StyledLine> {
    if rows.len() <= limit {
        return rows;
    }
    let tail = (limit - 1) / 3;
    let (head, hidden) = (limit - 1 - tail, rows.len() - (limit - 1));
    let end = rows.split_off(rows.len() - tail);
    rows.truncate(head);
    rows.push(StyledLine::new().exact(YELLOW.bold(), format!("… {} here{hint} …", counted(hidden, "more line"))));
    rows.extend(end);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(|line| line.render(false)).collect()
    }

    #[test]
    fn a_line_wraps_by_columns_and_loses_nothing() {
        let check = |text, width, at, rows: &[&str]| {
            assert_eq!(texts(&StyledLine::new().exact(PLAIN, text).wrap(width, at)), rows, "{text}");
        };
        check("", 5, Break::Anywhere, &[""]);
        check("abcdef", 3, Break::Anywhere, &["abc", "def"]);
        check("ab  cd", 3, Break::Anywhere, &["ab ", " cd"]);
        check("大きい", 4, Break::Anywhere, &["大き", "い"]);
        check("大", 1, Break::Anywhere, &["大"]);
        check("one two three", 8, Break::Words, &["one two", "three"]);
        check("unbreakable", 5, Break::Words, &["unbre", "akabl", "e"]);
    }

    #[test]
    fn a_row_that_is_cut_says_so() {
        assert_eq!(StyledLine::new().exact(PLAIN, "abcdef").truncate(4).render(false), "abc…");
        assert_eq!(StyledLine::new().exact(PLAIN, "abcd").truncate(4).render(false), "abcd");
    }

    #[test]
    fn a_stand_in_stands_out_from_the_same_text_written_out() {
        let real = StyledLine::new().exact(RED, "a\u{202e}b").render(true);
        assert_eq!(real, "\u{1b}[31ma\u{1b}[0m\u{1b}[30m\u{1b}[43m\\u{202e}\u{1b}[0m\u{1b}[31mb\u{1b}[0m");
        assert_ne!(real, StyledLine::new().exact(RED, "a\\u{202e}b").render(true));
    }

    #[test]
    fn long_content_shows_both_ends_and_how_much_lies_between() {
        let rows: Vec<StyledLine> = (1..=10).map(|number| StyledLine::new().exact(PLAIN, number.to_string())).collect();
        assert_eq!(texts(&fold(rows.clone(), 10, "")).len(), 10);
        let shown = texts(&fold(rows, 7, ", + shows all"));
        assert_eq!(shown, ["1", "2", "3", "4", "… 4 more lines here, + shows all …", "9", "10"]);
    }
}
