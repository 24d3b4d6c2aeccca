//! Previews of tool calls in a workspace.

use amplifier_agent::tool::Workspace;
use amplifier_core::{ActionPreview, EventData, EventName, PortError, PreviewSource};
use amplifier_modules::tool_words::{self, Vocabulary};
use serde_json::Value;

/// Describes the tool calls of a workspace, also those of Amplifier's tools.
pub(crate) struct WorkspacePreviews(pub(crate) Workspace);

impl PreviewSource for WorkspacePreviews {
    async fn preview(&self, event: &EventName, data: &EventData) -> Result<Option<ActionPreview>, PortError> {
        match in_our_words(data) {
            Some(ours) => self.0.preview(event, &ours).await,
            None => self.0.preview(event, data).await,
        }
    }
}

/// Returns a call of a tool of Amplifier in our words; `None` for other tools.
fn in_our_words(data: &EventData) -> Option<EventData> {
    let words = tool_words::find(Vocabulary::Amplifier, data.text("tool_name")?)?;
    let input = data.get("tool_input").and_then(Value::as_object)?;
    let input = tool_words::to_ours(words.vocabulary, words.theirs, input).ok()?;
    let mut ours = data.clone();
    ours.insert("tool_name", words.ours);
    ours.insert("tool_input", input);
    Some(ours)
}
