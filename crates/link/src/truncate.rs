//! Size limits of approval requests outside of their session.

use std::borrow::Cow;

use amplifier_core::text::{truncate_bytes, truncate_chars};
use amplifier_core::{ActionPreview, Effect};

use crate::approval::OpenApproval;

const MAX_TEXT_BYTES: usize = ActionPreview::LARGEST_TEXT;

/// Truncates large texts, and a preview that makes the request longer than `most` bytes of JSON. The request is then marked as truncated.
pub fn truncate_request(mut approval: OpenApproval, most: usize) -> OpenApproval {
    let mut is_cut = false;
    let mut cut = |text: &mut String| {
        if let Cow::Owned(short) = truncate_bytes(text, MAX_TEXT_BYTES) {
            *text = short;
            is_cut = true;
        }
    };
    let whole = approval.prompt.len();
    cut(&mut approval.prompt);
    if approval.prompt.len() != whole {
        // A rule would cover more than is shown.
        approval.options.retain(|option| option.effect != Effect::AllowAlways);
    }
    approval.reason.iter_mut().for_each(&mut cut);
    if is_cut {
        approval.request.offers.clear();
        approval.request.preview = approval.request.preview.too_large();
    }
    // Escaped characters take up to six bytes each, and previews come from several sources.
    if serde_json::to_vec(&approval).is_ok_and(|line| line.len() > most) {
        let ActionPreview { title, target, summary, .. } = approval.request.preview;
        let brief = |text: String| truncate_chars(&text, 500).into_owned();
        let (title, target, summary) = (brief(title), target.map(brief), summary.map(brief));
        approval.request.preview = ActionPreview { title, target, summary, ..ActionPreview::default() }.too_large();
        approval.request.offers.clear();
    }
    approval
}

#[cfg(test)]
mod tests {
    use amplifier_core::{PreviewRow, PreviewRowKind};
    use serde_json::json;

    use super::*;
    use crate::transport::MAX_LINE_BYTES;

    const MOST: usize = MAX_LINE_BYTES / 2;

    fn request() -> OpenApproval {
        let question = json!({
            "id": "s.r.1", "number": 1, "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?", "options": [],
            "created_at": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:05:00Z", "timeout_s": 300.0, "default": "deny",
            "digest": "0".repeat(64), "preview": { "title": "Deploy" },
        });
        serde_json::from_value(question).unwrap()
    }

    fn with(change: impl FnOnce(&mut OpenApproval)) -> OpenApproval {
        let mut approval = request();
        change(&mut approval);
        approval
    }

    #[test]
    fn what_is_left_out_is_told() {
        assert_eq!(truncate_request(request(), MOST), request());
        let long = truncate_request(with(|request| request.prompt = "x".repeat(MAX_TEXT_BYTES + 1)), MOST);
        assert_eq!((long.prompt.len(), long.preview.truncated), (MAX_TEXT_BYTES + "…".len(), true));
        assert_eq!(long.preview.warnings, [ActionPreview::TOO_LARGE]);
        // No line of the link is longer, even with escapes.
        let row = PreviewRow::new(PreviewRowKind::Plain, "\u{1}".repeat(MAX_LINE_BYTES / 6));
        let preview = ActionPreview { body: vec![row], ..ActionPreview::new("Deploy") };
        let left = truncate_request(with(|request| request.preview = preview), MOST).preview.clone();
        assert_eq!(left, ActionPreview::new("Deploy").too_large());
    }
}
