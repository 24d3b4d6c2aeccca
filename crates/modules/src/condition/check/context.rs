//! The events and tools that a condition is checked against.

use amplifier_core::{EventPattern, EventSpec, catalog};
use serde_json::Value;

use super::Facts;
use super::types::{ObjectType, Type};
use crate::condition::{did_you_mean, suggestion};
use crate::tool_schema::ToolSchema;

/// The events and tools of a hook.
#[derive(Clone, Debug)]
pub(crate) struct CheckContext<'a> {
    /// The events of the hook, as its bundle names them.
    pub(crate) on: &'a [String],
    /// The known events among them; `None` if it also has events with unknown fields.
    pub(crate) events: Option<Vec<&'static EventSpec>>,
    /// The known tools; without any, tools are not checked.
    pub(crate) tools: &'a [ToolSchema],
}

/// The problem with a field of an event.
pub(super) struct FieldProblem {
    pub(super) message: String,
    pub(super) help: String,
    /// `true` if the help suggests a name.
    pub(super) is_misspelled: bool,
}

/// Returns the events that have a field.
fn elsewhere(field: &str) -> Option<String> {
    let has = |spec: &&EventSpec| spec.fields.iter().any(|known| known.name == field);
    let events: Vec<String> = catalog().iter().filter(has).take(3).map(|spec| format!("`{}`", spec.name)).collect();
    (!events.is_empty()).then(|| format!("it is a field of {}", events.join(", ")))
}

/// Texts that agents add to several events.
const COMMON: [&str; 3] = ["session_id", "timestamp", "tool_call_id"];

impl CheckContext<'_> {
    /// `true` if the hook runs at this event.
    pub(super) fn runs_at(&self, event: &str) -> bool {
        let patterns = self.on.iter().filter_map(|on| on.parse::<EventPattern>().ok());
        self.on.is_empty() || patterns.into_iter().any(|pattern| pattern.matches(event))
    }

    /// Returns the problem of a field that none of the events has.
    pub(super) fn field_problem(&self, field: &str) -> Option<FieldProblem> {
        let specs = self.events.as_ref().filter(|specs| !specs.is_empty())?;
        let names = || specs.iter().flat_map(|spec| spec.fields).map(|field| field.name);
        if COMMON.contains(&field) || names().any(|name| name == field) {
            return None;
        }
        let events: Vec<String> = specs.iter().take(3).map(|spec| format!("`{}`", spec.name)).collect();
        let more = if specs.len() > 3 { ", …" } else { "" };
        let message = format!("unknown field `{field}` of {}{more}", events.join(", "));
        let inputs = || self.tools.iter().filter_map(|tool| tool.input["properties"].as_object());
        let of_input = names().any(|name| name == "tool_input") && inputs().any(|input| input.contains_key(field));
        let suggested = match of_input {
            true => Some(suggestion(&format!("tool_input.{field}"))),
            false => did_you_mean(field, names()),
        };
        let (help, is_misspelled) = match (elsewhere(field).filter(|_| !of_input), suggested) {
            (Some(place), _) => (place, false),
            (None, Some(suggested)) => (suggested, true),
            (None, None) => {
                let mut names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                names.dedup();
                names.truncate(8);
                (format!("expected one of {}", names.join(", ")), false)
            }
        };
        Some(FieldProblem { message, help, is_misspelled })
    }

    /// Returns the type of a field.
    pub(super) fn field_type(&self, field: &str, facts: &Facts) -> Type {
        match field {
            common if COMMON.contains(&common) => return Type::Text,
            "tool_input" if self.has_tools() => return self.tool_type(facts, "the input of", |tool| &tool.input),
            "tool_result" if self.has_tools() => {
                return match self.tool_type(facts, "the result of", |tool| &tool.result) {
                    Type::Object(kinds) => Type::Object(kinds.into_iter().map(ObjectType::with_error).collect()),
                    other => other,
                };
            }
            _ => {}
        }
        let specs = self.events.iter().flatten().filter(|spec| spec.fields.iter().any(|known| known.name == field));
        let types = specs.map(|spec| Type::from_schema(&format!("`{field}`"), &spec.schema()["properties"][field]));
        types.reduce(Type::or).unwrap_or(Type::Any)
    }

    /// `true` if `tool_input` and `tool_result` are those of a tool at all events.
    fn has_tools(&self) -> bool {
        !self.tools.is_empty() && self.events.is_some()
    }

    fn tool_type(&self, facts: &Facts, what: &str, part: impl Fn(&ToolSchema) -> &Value) -> Type {
        let object = |tool: &ToolSchema| ObjectType::from_schema(&format!("{what} `{}`", tool.name), part(tool));
        let mut kinds: Vec<ObjectType> = match facts.values("tool_name") {
            None => {
                // Of an MCP server, or of another program.
                let other = ObjectType::open(format!("{what} another tool"));
                self.tools.iter().map(object).chain([other]).collect()
            }
            Some(names) => {
                let find = |name: &Value| self.tools.iter().find(|tool| name == tool.name.as_str());
                let kind = |name: &Value| find(name).map_or_else(|| ObjectType::open(format!("{what} {name}")), object);
                names.iter().map(kind).collect()
            }
        };
        // A result without a schema says nothing about its fields.
        kinds.dedup();
        Type::Object(kinds)
    }
}
