//! The content of notifications. Everything here may leave the machine.

use amplifier_core::text::{EscapeMode, truncate_chars, visible};
use amplifier_link::{ApprovalId, OpenApproval};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Limits in characters. The JSON form has to fit into a push message, also if each character takes four bytes.
const NAME: usize = 40;
const SUMMARY: usize = 160;

/// A notification about an approval request: the session, the hook, the tool and the beginning of the prompt.
///
/// It is made from the request as a viewer sees it, without secrets. Command, diff, reason and folder stay on the server.
pub(super) struct Notice {
    pub(super) id: ApprovalId,
    pub(super) session: String,
    pub(super) hook: String,
    pub(super) tool: String,
    pub(super) summary: String,
    pub(super) deadline: Timestamp,
}

impl Notice {
    /// Describes a request, which must be redacted.
    pub(super) fn from_redacted(approval: &OpenApproval) -> Self {
        // Escaped characters are longer, so the text is truncated again.
        let short = |text: &str, most| {
            let shown = visible(&truncate_chars(text, most), EscapeMode::Exact);
            truncate_chars(&shown, most).into_owned()
        };
        let session = approval.session_name.as_ref().unwrap_or(&approval.session);
        let session = match &approval.machine {
            Some(machine) => format!("{session} on {machine}"),
            None => session.clone(),
        };
        Self {
            id: approval.id.clone(),
            session: short(&session, NAME),
            hook: short(&approval.hook, NAME),
            tool: short(&approval.preview.title, NAME),
            summary: short(&approval.prompt, SUMMARY),
            deadline: approval.deadline,
        }
    }

    pub(super) fn title(&self) -> String {
        format!("Approval request from {}", self.hook)
    }

    /// Returns the text below the title.
    pub(super) fn text(&self) -> String {
        let Self { summary, tool, session, .. } = self;
        let about = if tool.is_empty() { session.clone() } else { format!("{tool} in {session}") };
        format!("{summary}\n{about}")
    }

    /// Returns the message that shows a notification on a device.
    pub(super) fn opened(&self, link: Option<&str>) -> Value {
        let mut message = json!({
            "type": "approval_requested",
            "id": self.id,
            "title": self.title(),
            "text": self.text(),
            "deadline": self.deadline,
        });
        if let Some(link) = link {
            message["link"] = link.into();
        }
        message
    }
}

/// Returns the message that removes a notification from a device.
pub(super) fn closed(id: &ApprovalId) -> Value {
    json!({ "type": "approval_closed", "id": id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::encryption::PADDED;

    #[test]
    fn the_longest_notice_fits_into_a_push_message() {
        for character in ["\u{1f600}", "\u{202e}", "\\", "\"", "\0", "\u{7f}", "\n", "\u{ffff}", "é"] {
            let text = character.repeat(1000);
            let id = ApprovalId::new("s".repeat(128), "r".repeat(128), u64::MAX);
            let approval = json!({
                "id": id, "number": 1, "session": "s".repeat(128), "session_name": text, "workspace": "/", "hook": text,
                "event": "tool:pre", "prompt": text, "options": [], "created_at": "2030-01-01T00:00:00.123456789Z",
                "deadline": "2030-01-01T00:00:00.123456789Z", "timeout_s": 1, "default": "deny",
                "digest": "0".repeat(64), "preview": { "title": text },
            });
            let notice = Notice::from_redacted(&serde_json::from_value(approval).unwrap());
            let link = format!("https://{}:65535/answer?code={}", "h".repeat(255), "c".repeat(43));
            let length = notice.opened(Some(&link)).to_string().len();
            assert!(length <= PADDED, "{length} bytes of {character:?}");
        }
    }
}
