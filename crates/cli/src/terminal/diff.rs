//! What a change of a file looks like.

use std::time::Duration;

use anstyle::Style;
use similar::{ChangeTag, TextDiff};

use super::line::{CYAN, DIM, GREEN, Line, PLAIN, RED};

/// How long a diff is made finer. After that it is coarser, but as true.
const PATIENCE: Duration = Duration::from_millis(500);

/// A change of a text, line by line.
pub(super) struct Diff {
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) lines: Vec<Line>,
}

/// The unified diff from the old to the new text, with three lines around each change.
pub(super) fn diff(old: &str, new: &str) -> Diff {
    let changes = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut diff = Diff { added: 0, removed: 0, lines: Vec::new() };
    for hunk in changes.unified_diff().context_radius(3).iter_hunks() {
        diff.lines.push(Line::new().exact(CYAN, hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("-", RED),
                ChangeTag::Insert => ("+", GREEN),
                ChangeTag::Equal => (" ", PLAIN),
            };
            diff.added += usize::from(change.tag() == ChangeTag::Insert);
            diff.removed += usize::from(change.tag() == ChangeTag::Delete);
            let text = change.value();
            diff.lines.push(signed(sign, style, text.strip_suffix('\n').unwrap_or(text)));
            if change.missing_newline() {
                diff.lines.push(Line::new().exact(DIM, "\\ no line break at the end of the file"));
            }
        }
    }
    diff
}

/// All lines of a text with the same sign before each.
pub(super) fn all(sign: &str, style: Style, text: &str) -> Vec<Line> {
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    lines.map(|line| signed(sign, style, line)).collect()
}

fn signed(sign: &str, style: Style, text: &str) -> Line {
    Line::new().exact(style, sign).exact(style, text)
}
