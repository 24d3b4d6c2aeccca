//! Lines of styled text that cannot hold anything invisible.

use std::fmt::Write;

use amplifier_core::text::counted;
use amplifier_core::text::{Piece, Reading, pieces};
use anstyle::{AnsiColor, Color, Style};
use unicode_width::UnicodeWidthChar;

/// What the person's eyes should find first.
pub(super) const BOLD: Style = Style::new().bold();
/// What is there for completeness.
pub(super) const DIM: Style = Style::new().dimmed();
/// What is as usual.
pub(super) const PLAIN: Style = Style::new();
/// What is good, or new.
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
/// What is bad, or gone.
pub(super) const RED: Style = AnsiColor::Red.on_default();
/// What deserves a second look.
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Where something is.
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
/// Stands in for a character that cannot be shown. Nothing else looks like it.
const STAND_IN: Style = AnsiColor::Black.on_default().bg_color(Some(Color::Ansi(AnsiColor::Yellow)));

/// A line of styled text.
///
/// INVARIANT: it holds no line break, control character or hidden character. [`exact`](Self::exact) and
/// [`prose`](Self::prose) are the only ways in, and both make them visible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StyledLine {
    spans: Vec<(Style, String)>,
}

/// Where a line may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// Wherever the room ends: no space is lost.
    Anywhere,
    /// Between words, if there is a space.
    Words,
}

impl StyledLine {
    /// A line without text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text that the person decides about.
    #[must_use]
    pub fn exact(self, style: Style, text: impl AsRef<str>) -> Self {
        self.add(style, text.as_ref(), Reading::Exact)
    }

    /// Adds a text that the person only reads.
    #[must_use]
    pub fn prose(self, style: Style, text: impl AsRef<str>) -> Self {
        self.add(style, text.as_ref(), Reading::Prose)
    }

    /// Adds another line at the end of this one.
    #[must_use]
    pub(super) fn then(mut self, other: &Self) -> Self {
        self.spans.extend_from_slice(&other.spans);
        self
    }

    fn add(mut self, style: Style, text: &str, reading: Reading) -> Self {
        for piece in pieces(text, reading) {
            match piece {
                Piece::Shown(text) => self.spans.push((style, text.to_owned())),
                Piece::StandIn(text) => self.spans.push((STAND_IN, text.into_owned())),
            }
        }
        self
    }

    /// How many columns it takes.
    pub(super) fn width(&self) -> usize {
        self.spans.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// The line in rows of at most that many columns; an empty line is one row.
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

    /// The line in one row of at most that many columns; `…` says that there is more.
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

    /// The text of the line, with or without codes for colours.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.spans {
            // Writing to a string does not fail.
            let _ = if colour { write!(out, "{style}{text}{style:#}") } else { write!(out, "{text}") };
        }
        out
    }
}

/// How many characters fit, but at least one, or nothing would ever end.
fn count_fitting(characters: &[(Style, char)], width: usize) -> usize {
    let mut used = 0;
    let fits = |&&(_, character): &&(Style, char)| {
        used += columns(character);
        used <= width
    };
    characters.iter().take_while(fits).count().max(1).min(characters.len())
}

/// A selector draws the symbol before it as an emoji, which is twice as wide.
fn columns(character: char) -> usize {
    if character == '\u{fe0f}' { 1 } else { character.width().unwrap_or(0) }
}

/// The beginning and the end of what is longer than that many rows, and between them, how much is not shown.
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
