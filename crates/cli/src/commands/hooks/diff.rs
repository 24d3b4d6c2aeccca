//! Line diffs of JSON values.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::terminal::{EscapeMode, visible};

/// The number of context lines around a change.
const AROUND: usize = 2;

/// Returns `value` with its fields in the order of `like`, because a different order is not a change.
fn in_order(value: &Value, like: &Value) -> Value {
    match (value, like) {
        (Value::Object(fields), Value::Object(like)) => {
            let known = like.iter().filter_map(|(name, like)| Some((name, in_order(fields.get(name)?, like))));
            let others = fields.iter().filter(|(name, _)| !like.contains_key(*name));
            let others = others.map(|(name, value)| (name, value.clone()));
            Value::Object(known.chain(others).map(|(name, value)| (name.clone(), value)).collect())
        }
        (Value::Array(items), Value::Array(like)) => {
            let nothing = std::iter::repeat(&Value::Null);
            items.iter().zip(like.iter().chain(nothing)).map(|(item, like)| in_order(item, like)).collect()
        }
        _ => value.clone(),
    }
}

/// Writes the differences between two values, each line indented by `indent`.
pub(super) fn write(out: &mut impl Write, indent: usize, old: &Value, new: &Value) -> io::Result<()> {
    let (old, new) = (format!("{old:#}\n"), format!("{:#}\n", in_order(new, old)));
    let diff = TextDiff::from_lines(&old, &new);
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', AnsiColor::Red.on_default()),
                ChangeTag::Insert => ('+', AnsiColor::Green.on_default()),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let text = visible(change.value().trim_end_matches('\n'), EscapeMode::Exact);
            writeln!(out, "{:indent$}{style}{sign} {text}{style:#}", "")?;
        }
    }
    Ok(())
}
