//! The `Todo` tool: a list of tasks.

use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{ActionPreview, Map};
use futures::future::{self, BoxFuture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::preview::preview_or_error;
use super::{Tool, ToolError, ToolOutput, input};
use crate::provider::ToolSpec;

pub(super) const NAME: &str = "Todo";

/// A list of tasks. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct TodoTool {
    // A std lock: nothing awaits while it is held.
    todos: Arc<Mutex<Vec<TodoItem>>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The whole list, which replaces the one before.
    todos: Vec<TodoItem>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct TodoOutput {
    /// The list, one task per line, for the model.
    output: String,
    /// The list.
    todos: Vec<TodoItem>,
}

/// A task.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    /// The task.
    content: String,
    /// The status. At most one task is `in_progress`.
    status: TodoStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl TodoTool {
    /// A tool with an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the list as text, one line per task.
    pub fn list(&self) -> String {
        let todos = self.todos.lock().unwrap_or_else(PoisonError::into_inner);
        as_text(&todos)
    }

    fn replace(&self, input: Map) -> Result<ToolOutput, ToolError> {
        let todos = read(input)?;
        let output = if todos.is_empty() { "(the list is empty)".to_owned() } else { as_text(&todos) };
        let result = ToolOutput::new(&TodoOutput { output, todos: todos.clone() });
        *self.todos.lock().unwrap_or_else(PoisonError::into_inner) = todos;
        Ok(result)
    }
}

pub(super) fn preview(input: &Map) -> Result<ActionPreview, ToolError> {
    Ok(ActionPreview::new(NAME).lines(&as_text(&read(input.clone())?)))
}

fn read(input: Map) -> Result<Vec<TodoItem>, ToolError> {
    let Input { todos } = input::read(NAME, input)?;
    if let Some(index) = todos.iter().position(|todo| todo.content.trim().is_empty()) {
        return Err(input::invalid(NAME, format!("`todos[{index}].content` is empty; describe the task")));
    }
    let in_progress = todos.iter().filter(|todo| todo.status == TodoStatus::InProgress).count();
    if in_progress > 1 {
        return Err(input::invalid(NAME, format!("{in_progress} tasks are `in_progress`; at most one is allowed")));
    }
    Ok(todos)
}

impl Tool for TodoTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Keeps the list of what is to be done, for work that has several steps. Give the whole list each time; have one of them \
             `in_progress` while you work on it, and `completed` as soon as it is done.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<TodoOutput>())
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(future::lazy(move |_| self.replace(input)))
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview_or_error(NAME, input, preview(input)))
    }
}

impl Display for TodoItem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Completed => 'x',
        };
        write!(formatter, "[{mark}] {}", self.content)
    }
}

fn as_text(todos: &[TodoItem]) -> String {
    todos.iter().map(TodoItem::to_string).collect::<Vec<_>>().join("\n")
}
