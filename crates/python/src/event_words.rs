//! Tool events of Amplifier's loops in our words, for native hooks. Handlers in Python receive the loop's own words.

use amplifier_core::{DataChange, EventData, Map};
use amplifier_modules::tool_words::{self, ToolWords, Vocabulary};
use serde_json::Value;

/// The field with the result of a tool: theirs, ours.
const RESULT: (&str, &str) = ("result", "tool_result");

/// Words that any other loop may use in another sense.
const GENERAL: [&str; 3] = ["todo", "task", "delegate"];

/// The differences between an event's words and ours.
pub(crate) struct EventWords {
    tool: Option<&'static ToolWords>,
    has_result: bool,
    lacks_success: bool,
}

impl EventWords {
    /// Returns the differences; `None` if there are none. `is_amplifier` is `true` for events of a loop that is known to be Amplifier's.
    pub(crate) fn find(event: &str, data: &EventData, is_amplifier: bool) -> Option<Self> {
        if !event.starts_with("tool:") {
            return None;
        }
        let tool = data.text("tool_name").filter(|name| is_amplifier || !GENERAL.contains(name));
        let tool = tool.and_then(|name| tool_words::find(Vocabulary::Amplifier, name));
        // A tool with an ambiguous input stays unknown, which guards treat with more care.
        let tool = tool.filter(|words| renamed_input(words, data).is_ok());
        let has_result = data.get(RESULT.0).is_some() && data.get(RESULT.1).is_none();
        let lacks_success = has_result && data.get("success").is_none();
        (tool.is_some() || has_result).then_some(Self { tool, has_result, lacks_success })
    }

    /// Returns the data in our words.
    pub(crate) fn to_ours(&self, data: &EventData) -> EventData {
        let mut ours = data.clone();
        if let Some(words) = self.tool {
            ours.insert("tool_name", words.ours);
            if let Ok(Some(input)) = renamed_input(words, data) {
                ours.insert("tool_input", input);
            }
        }
        if self.has_result {
            ours.insert(RESULT.1, data[RESULT.0].clone());
            ours.remove(RESULT.0);
        }
        if self.lacks_success
            && let Some(success) = data.pointer("/result/success").filter(|success| success.is_boolean())
        {
            ours.insert("success", success.clone());
        }
        ours
    }

    /// Returns a change of the data in the event's own words.
    pub(crate) fn to_theirs(&self, change: DataChange) -> DataChange {
        match change {
            DataChange::Set(field, value) => {
                let value = self.value_to_theirs(&field, value);
                DataChange::Set(self.field_to_theirs(&field).to_owned().into(), value)
            }
            DataChange::Replace(data) => {
                let fields = data.into_iter().filter(|(field, _)| !(self.lacks_success && field == "success"));
                let theirs = |(field, value): (String, Value)| {
                    let value = self.value_to_theirs(&field, value);
                    (self.field_to_theirs(&field).to_owned(), value)
                };
                DataChange::Replace(fields.map(theirs).collect())
            }
        }
    }

    fn field_to_theirs<'a>(&self, field: &'a str) -> &'a str {
        if self.has_result && field == RESULT.1 { RESULT.0 } else { field }
    }

    fn value_to_theirs(&self, field: &str, value: Value) -> Value {
        match (self.tool, field, value) {
            (Some(words), "tool_name", Value::String(name)) if name == words.ours => words.theirs.into(),
            (Some(words), "tool_input", Value::Object(input)) => {
                tool_words::to_theirs(words.vocabulary, words.theirs, &input).into()
            }
            (_, _, value) => value,
        }
    }
}

/// Returns the input of a tool with our names of its fields; none if it is no object.
fn renamed_input(words: &ToolWords, data: &EventData) -> Result<Option<Map>, String> {
    let input = data.get("tool_input").and_then(Value::as_object);
    input.map(|input| tool_words::to_ours(words.vocabulary, words.theirs, input)).transpose()
}
