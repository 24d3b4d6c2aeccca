//! Questions that are too large for a line.

use super::protocol::LONGEST;
use crate::action::counted;
use crate::wire::{ALLOW_ALWAYS, Approval, Row, RowKind};

/// How much of an action is shown elsewhere, in bytes. The person is told that there is more.
const MOST: usize = 1 << 20;
/// The longest other text.
const TEXT: usize = 16 << 10;

/// The most fields, and the most notes.
const MANY: usize = 100;

/// What is said about the rest.
const CUT: &str = "this is too large to be shown here in full: look at it elsewhere before you allow it";

/// Cuts what is too large for people and lines, and says so where it is seen.
pub(super) fn fit(mut approval: Approval) -> Approval {
    let mut is_cut = false;
    let mut cut = |text: &mut String| {
        if text.len() > TEXT {
            let end = (0..=TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
            text.push('…');
            is_cut = true;
        }
    };
    let whole = approval.prompt.len();
    cut(&mut approval.prompt);
    if approval.prompt.len() != whole {
        // What lasts would be about more than is shown.
        approval.options.retain(|option| option.effect != ALLOW_ALWAYS);
    }
    approval.reason.iter_mut().for_each(&mut cut);
    let action = &mut approval.action;
    action.target.iter_mut().for_each(&mut cut);
    action.fields.iter_mut().for_each(|field| cut(&mut field.value));
    action.notes.iter_mut().for_each(&mut cut);
    action.body.iter_mut().for_each(|row| cut(&mut row.text));
    let mut left = MOST;
    let shown = action.body.iter().take_while(|row| {
        // An empty line takes room, too.
        let fits = row.text.len() + 64 <= left;
        left = left.saturating_sub(row.text.len() + 64);
        fits
    });
    let shown = shown.count();
    let hidden = action.body.len() - shown;
    if hidden > 0 {
        action.body.truncate(shown);
        let text = format!("not shown here: {}", counted(hidden, "more line"));
        action.body.push(Row { kind: RowKind::Gap, text, old: None, new: None });
    }
    let has_more = action.fields.len() > MANY || action.notes.len() > MANY;
    action.fields.truncate(MANY);
    action.notes.truncate(MANY);
    if hidden > 0 || is_cut || has_more {
        action.notes.insert(0, CUT.to_owned());
    }
    // Characters that JSON escapes take up to six times their room.
    if serde_json::to_vec(&approval).is_ok_and(|line| line.len() > LONGEST / 2) {
        let Approval { action, .. } = &mut approval;
        action.body.clear();
        action.fields.clear();
        action.notes = vec![CUT.to_owned()];
    }
    approval
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Field;

    fn asked() -> Approval {
        let question = json!({
            "id": "1", "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?", "options": [],
            "asked_at": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:05:00Z", "timeout_s": 300.0, "default": "deny",
            "digest": "sha256:00", "action": { "title": "Deploy" },
        });
        serde_json::from_value(question).unwrap()
    }

    fn with(fields: usize, notes: usize) -> Approval {
        let mut approval = asked();
        let field = |number: usize| Field { name: number.to_string(), value: "x".to_owned() };
        approval.action.fields = (0..fields).map(field).collect();
        approval.action.notes = (0..notes).map(|number| number.to_string()).collect();
        approval
    }

    #[test]
    fn what_is_left_out_is_told() {
        assert_eq!(fit(with(MANY, MANY)), with(MANY, MANY));
        for (fields, notes) in [(MANY + 1, 0), (0, MANY + 1)] {
            let action = fit(with(fields, notes)).action;
            assert_eq!((action.fields.len(), action.notes.len()), (fields.min(MANY), notes.min(MANY) + 1));
            assert_eq!(action.notes[0], CUT);
        }
    }
}
