//! Line diffs for previews.

use std::time::Duration;

use amplifier_core::{ActionPreview, PreviewRow, PreviewRowKind};
use similar::{ChangeTag, TextDiff};

/// The time for refining a diff. After that, the diff is coarser, but still correct.
const DIFF_TIME_LIMIT: Duration = Duration::from_millis(500);

/// Adds the diff from the old to the new text, with three lines of context. Without an old text, the file is new.
pub(super) fn compare(preview: ActionPreview, old: Option<&str>, new: &str) -> ActionPreview {
    match old {
        None if new.is_empty() => preview.summary("new empty file"),
        None => preview.summary("new file").rows(all(PreviewRowKind::Added, new)),
        Some(old) if old == new => preview.summary("changes nothing"),
        Some(old) => diff(preview, old, new),
    }
}

fn diff(preview: ActionPreview, old: &str, new: &str) -> ActionPreview {
    // Split only at line feeds: a carriage return is part of its line.
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let changes = TextDiff::configure().timeout(DIFF_TIME_LIMIT).newline_terminated(true).diff_slices(&old, &new);
    let lines = changes.ops().iter().filter(|op| op.tag() != similar::DiffTag::Equal);
    let lines = lines.map(|op| (op.new_range().len(), op.old_range().len()));
    let (added, removed) = lines.fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1));
    let rows = changes.unified_diff().context_radius(3).iter_hunks().flat_map(|hunk| {
        let mut rows = vec![PreviewRow::new(PreviewRowKind::Gap, hunk.header().to_string())];
        rows.extend(hunk.iter_changes().flat_map(|change| {
            let kind = match change.tag() {
                ChangeTag::Delete => PreviewRowKind::Removed,
                ChangeTag::Insert => PreviewRowKind::Added,
                ChangeTag::Equal => PreviewRowKind::Context,
            };
            let number = |index: Option<usize>| index.map(|index| index + 1);
            row(kind, change.value(), number(change.old_index()), number(change.new_index()))
        }));
        rows
    });
    preview.summary(format!("+{added} −{removed}")).rows(rows)
}

pub(super) fn part(kind: PreviewRowKind, text: &str) -> impl Iterator<Item = PreviewRow> {
    text.strip_suffix('\n').unwrap_or(text).split('\n').map(move |line| PreviewRow::new(kind, line))
}

pub(super) fn all(kind: PreviewRowKind, text: &str) -> impl Iterator<Item = PreviewRow> {
    text.split_inclusive('\n').flat_map(move |line| row(kind, line, None, None))
}

/// Returns the row of a line, and a note if the line has no line feed.
fn row(
    kind: PreviewRowKind,
    line: &str,
    old: Option<usize>,
    new: Option<usize>,
) -> impl Iterator<Item = PreviewRow> + use<> {
    let (text, note) = match line.strip_suffix('\n') {
        Some(text) => (text, None),
        None => (line, Some(PreviewRow::new(PreviewRowKind::Note, "no line break at the end of the file"))),
    };
    std::iter::once(PreviewRow { old, new, ..PreviewRow::new(kind, text) }).chain(note)
}
