//! Questions that are too large for a line.

use std::borrow::Cow;

use amplifier_core::ActionPreview;
use amplifier_core::text::truncate_bytes;

use crate::approval::{ALLOW_ALWAYS, Approval};
use crate::transport::LONGEST;

/// The longest prompt and reason, in bytes.
const TEXT: usize = ActionPreview::LARGEST_TEXT;

/// Cuts what is too large for people and lines, and says so where it is seen.
pub(crate) fn fit(mut approval: Approval) -> Approval {
    let mut is_cut = false;
    let mut cut = |text: &mut String| {
        if let Cow::Owned(short) = truncate_bytes(text, TEXT) {
            *text = short;
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
    if is_cut {
        approval.action = approval.action.too_large();
    }
    // Characters that JSON escapes take up to six times their room, and a preview may come from elsewhere.
    if serde_json::to_vec(&approval).is_ok_and(|line| line.len() > LONGEST / 2) {
        let ActionPreview { title, target, summary, .. } = approval.action;
        let title = title.chars().take(500).collect();
        let (target, summary) = [target, summary].map(|text| text.map(|text| text.chars().take(500).collect())).into();
        approval.action = ActionPreview { title, target, summary, ..ActionPreview::default() }.too_large();
    }
    approval
}

#[cfg(test)]
mod tests {
    use amplifier_core::{PreviewRow, PreviewRowKind};
    use serde_json::json;

    use super::*;

    fn asked() -> Approval {
        let question = json!({
            "id": "1", "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?", "options": [],
            "asked_at": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:05:00Z", "timeout_s": 300.0, "default": "deny",
            "digest": "sha256:00", "action": { "title": "Deploy" },
        });
        serde_json::from_value(question).unwrap()
    }

    #[test]
    fn what_is_left_out_is_told() {
        assert_eq!(fit(asked()), asked());
        let long = fit(Approval { prompt: "x".repeat(TEXT + 1), ..asked() });
        assert_eq!((long.prompt.len(), long.action.truncated), (TEXT + "…".len(), true));
        assert_eq!(long.action.warnings, [ActionPreview::TOO_LARGE]);
        // A line of the link is no longer than this, however the text is escaped.
        let row = PreviewRow::new(PreviewRowKind::Plain, "\u{1}".repeat(LONGEST / 6));
        let action = ActionPreview { body: vec![row], ..ActionPreview::new("Deploy") };
        let left = fit(Approval { action, ..asked() }).action;
        assert_eq!(left, ActionPreview::new("Deploy").too_large());
    }
}
