//! Exports of stored sessions.

use std::fmt::Write;

use amplifier_core::{Message, Speaker};
use serde_json::json;

use super::StoredSession;

/// A stored session with all its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionExport {
    /// The metadata.
    pub session: StoredSession,
    /// Every message, with the number of its turn.
    pub messages: Vec<(u64, Message)>,
}

impl SessionExport {
    /// Returns one JSON object per line: the metadata, then every message.
    pub fn jsonl(&self) -> String {
        let session = json!({ "session": self.session });
        let messages = self.messages.iter().map(|(turn, message)| json!({ "turn": turn, "message": message }));
        std::iter::once(session).chain(messages).map(|line| format!("{line}\n")).collect()
    }

    /// Returns the session as Markdown.
    pub fn markdown(&self) -> String {
        let StoredSession { id, created, provider, model, turns, .. } = &self.session;
        let title = Some(self.session.shown_title()).filter(|title| !title.is_empty()).unwrap_or(id);
        let mut text = format!("# {title}\n\nSession `{id}`, begun {created}, {provider}/{model}, {turns} turns.\n");
        for (_, message) in &self.messages {
            let heading = match (message.role, message.metadata.get("hook_name").and_then(|name| name.as_str())) {
                (_, Some(hook)) => format!("Hook {hook}"),
                (Speaker::System, None) => "System".to_owned(),
                (Speaker::User, None) => "User".to_owned(),
                (Speaker::Assistant, None) => "Assistant".to_owned(),
                (Speaker::Tool, None) => "Tool".to_owned(),
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n## {heading}\n\n");
            match message.role {
                Speaker::Tool => text.push_str(&code_block("", &message.content)),
                _ if message.content.is_empty() => {}
                _ => _ = writeln!(text, "{}", message.content.trim_end()),
            }
            for call in &message.tool_calls {
                let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
                let _ = write!(text, "\n**{}**\n\n{}", call.name, code_block("json", &input));
            }
        }
        text
    }
}

/// Returns a code block with a fence that is longer than any in the text.
fn code_block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
