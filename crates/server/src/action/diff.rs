//! What a change of a file looks like.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::wire::{Row, RowKind};

/// How long a diff is made finer. After that it is coarser, but as true.
const PATIENCE: Duration = Duration::from_millis(500);

/// A change of a text, line by line.
pub(super) struct Diff {
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) rows: Vec<Row>,
}

/// The unified diff from the old to the new text, with three lines around each change.
pub(super) fn diff(old: &str, new: &str) -> Diff {
    let changes = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut diff = Diff { added: 0, removed: 0, rows: Vec::new() };
    for hunk in changes.unified_diff().context_radius(3).iter_hunks() {
        diff.rows.push(Row::new(RowKind::Gap, hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let kind = match change.tag() {
                ChangeTag::Delete => RowKind::Removed,
                ChangeTag::Insert => RowKind::Added,
                ChangeTag::Equal => RowKind::Context,
            };
            diff.added += usize::from(kind == RowKind::Added);
            diff.removed += usize::from(kind == RowKind::Removed);
            let text = change.value();
            let number = |index: Option<usize>| index.map(|index| index + 1);
            let (old, new) = (number(change.old_index()), number(change.new_index()));
            diff.rows.push(Row { old, new, ..Row::new(kind, text.strip_suffix('\n').unwrap_or(text)) });
            if change.missing_newline() {
                diff.rows.push(Row::new(RowKind::Note, "no line break at the end of the file"));
            }
        }
    }
    diff
}

/// All lines of a text as rows of one kind. A carriage return before the break is a part of its line.
pub(super) fn all(kind: RowKind, text: &str) -> Vec<Row> {
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    lines.map(|line| Row::new(kind, line)).collect()
}
