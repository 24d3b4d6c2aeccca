//! How two values differ, line by line.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::terminal::{Reading, visible};

/// How many lines stand around a change.
const AROUND: usize = 2;

/// Writes how the old value became the new one, with that much space before each line.
pub(super) fn write(out: &mut impl Write, indent: usize, old: &Value, new: &Value) -> io::Result<()> {
    let (old, new) = (format!("{old:#}\n"), format!("{new:#}\n"));
    let diff = TextDiff::from_lines(&old, &new);
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', AnsiColor::Red.on_default()),
                ChangeTag::Insert => ('+', AnsiColor::Green.on_default()),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let text = visible(change.value().trim_end_matches('\n'), Reading::Exact);
            writeln!(out, "{:indent$}{style}{sign} {text}{style:#}", "")?;
        }
    }
    Ok(())
}
