//! The observations of all parties, as lines for assertions.

use amplifier_agent::TurnEnd;
use amplifier_core::Message;
use serde_json::Value;

use super::Run;

/// The observations of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Saw {
    /// The failed start of the session, or the ends of its turns.
    pub(crate) ends: Vec<String>,
    /// The messages of each request.
    pub(crate) model: Vec<Vec<String>>,
    /// The inputs of tools.
    pub(crate) tool: Vec<String>,
    /// The messages of hooks.
    pub(crate) shown: Vec<String>,
    /// The questions.
    pub(crate) asked: Vec<String>,
    /// The terminal.
    pub(crate) watched: Vec<String>,
    pub(crate) history: Vec<String>,
    /// The records of one event.
    pub(crate) audit: Vec<String>,
}

/// Lines of text.
pub(crate) fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

impl Run {
    /// The observations, with the records of that event.
    pub(crate) fn saw(&self, event: &str) -> Saw {
        let at_event = self.audit.iter().filter(|record| record["event"] == event);
        Saw {
            ends: match &self.begun {
                Ok(()) => self.ends.iter().map(end).collect(),
                Err(error) => vec![error.clone()],
            },
            model: self.requests.iter().map(|request| rendered(&request.messages)).collect(),
            tool: self.inputs.iter().map(|(tool, input)| format!("{tool} {input}")).collect(),
            shown: self.messages.iter().map(ToString::to_string).collect(),
            asked: self
                .questions
                .iter()
                .map(|asked| format!("{} at {}: {}", asked.hook, asked.event, asked.prompt))
                .collect(),
            watched: self.watched.iter().filter(|line| !line.is_empty()).cloned().collect(),
            history: rendered(&self.history),
            audit: at_event.filter_map(record).collect(),
        }
    }
}

fn end(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Answered(text) => format!("answered: {text}"),
        TurnEnd::Denied(refusal) => format!("refused: {refusal}"),
        TurnEnd::Interrupted => "interrupted".to_owned(),
        TurnEnd::Failed(reason) => format!("failed: {reason}"),
    }
}

/// Each message as a line: who, what, and the calls. What a sub-agent is told about itself is its name.
pub(crate) fn rendered(messages: &[Message]) -> Vec<String> {
    messages.iter().map(message).collect()
}

fn message(message: &Message) -> String {
    if let Some(name) = message.metadata.get("agent_name").and_then(Value::as_str) {
        return format!("agent {name}");
    }
    let role = serde_json::to_value(message.role).unwrap();
    let calls: String = message.tool_calls.iter().map(|call| format!(" [{}]", call.id)).collect();
    format!("{}: {}{calls}", role.as_str().unwrap(), message.content)
}

fn record(record: &Value) -> Option<String> {
    let body = &record["body"];
    let text = |field: &str| body[field].as_str().unwrap_or_default();
    Some(match record["kind"].as_str()? {
        "event" if body["denied_by"].is_string() => {
            format!("{} by {}: {}", text("decision"), text("denied_by"), text("reason"))
        }
        "event" => text("decision").to_owned(),
        "injection" => format!("injection of {}: {}", text("hook"), text("text")),
        "approval_decision" if body["granted"] == true => format!("granted to {}", text("hook")),
        "approval_decision" => format!("refused to {}: {}", text("hook"), text("reason")),
        kind @ ("intent" | "outcome") => kind.to_owned(),
        _ => return None,
    })
}
