//! The list of the `Todo` tool, as hooks receive it.

use amplifier_core::EventData;
use serde::Deserialize;
use serde_json::Value;

use super::text::one_line;

/// Longest item, in characters.
const LONGEST: usize = 200;

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TodoItem {
    content: String,
    #[serde(default)]
    status: TodoStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    InProgress,
    Completed,
    /// Also any other status that a tool may use.
    #[default]
    #[serde(other)]
    Pending,
}

impl TodoItem {
    pub(crate) fn is_open(&self) -> bool {
        self.status != TodoStatus::Completed
    }

    /// Formats the item like the `Todo` tool.
    fn line(&self) -> String {
        let mark = match self.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Completed => 'x',
        };
        format!("[{mark}] {}", one_line(&self.content, LONGEST))
    }
}

/// Returns the list after a `tool:post` of one of these tools; `None` for another tool, or if the call failed.
pub(crate) fn updated(data: &EventData, tools: &[String]) -> Option<Vec<TodoItem>> {
    let tool = data.text("tool_name")?;
    if !tools.iter().any(|name| name == tool) || data.get("success") != Some(&Value::Bool(true)) {
        return None;
    }
    let given = data.pointer("/tool_result/todos").or_else(|| data.pointer("/tool_input/todos"))?;
    Vec::deserialize(given).ok()
}

/// Formats the list with at most this many items, open ones first if some are omitted.
pub(crate) fn readable(items: &[TodoItem], most: usize) -> String {
    let mut shown: Vec<&TodoItem> = items.iter().collect();
    if shown.len() > most {
        shown.sort_by_key(|item| !item.is_open());
        shown.truncate(most);
    }
    let mut lines: Vec<String> = shown.iter().map(|item| item.line()).collect();
    if items.len() > most {
        lines.push(format!("… and {} more", items.len() - most));
    }
    lines.join("\n")
}
