//! Names in comparisons: tools, events and days.

use jiff::civil::Weekday;
use serde_json::Value;

use super::Checker;
use super::facts::{constant, path};
use crate::condition::error::Span;
use crate::condition::functions::name_of;
use crate::condition::node::{Node, Operator};
use crate::condition::{did_you_mean, known_as, suggestion};
use crate::mistake::{MistakeCode, Severity};

impl Checker<'_> {
    /// Checks the constants that a name is compared with.
    pub(super) fn compared_names(&mut self, operator: Operator, pair: &[Node; 2]) {
        let [one, other] = pair;
        let (path, constant, span) = match (path(one), constant(other), path(other), constant(one)) {
            (Some(path), Some(value), ..) => (path, value, other.span),
            (_, _, Some(path), Some(value)) => (path, value, one.span),
            _ => return,
        };
        let names = match (operator, constant) {
            (Operator::In, Value::Array(names)) => names.as_slice(),
            (Operator::Equal | Operator::NotEqual, name) => std::slice::from_ref(name),
            _ => return self.hour(operator, &path, constant, span),
        };
        for name in names {
            // A list of constants has one span; within it, the name has its own.
            let span = self.within(span, name);
            self.pattern_as_text(&path, name, span);
            match path.as_str() {
                "tool_name" | "selected_tool" if name.as_str().is_some_and(|name| name.contains('*')) => {}
                "tool_name" | "selected_tool" => self.tool_name(name, span),
                "event" => self.event_name(name, span),
                "weekday()" => self.day(name, span),
                _ => self.hour(operator, &path, name, span),
            }
        }
    }

    /// Checks for a pattern that is compared as a text.
    fn pattern_as_text(&mut self, path: &str, value: &Value, span: Span) {
        let Some(pattern) = value.as_str().filter(|value| value.contains('*')) else { return };
        let field = path.rsplit('.').next().unwrap_or(path);
        let help = match field {
            "file_path" | "path" | "folder" | "notebook_path" => {
                format!(
                    "write `path_matches({path}, [\"{pattern}\"])`, or `changes([\"{pattern}\"])` for commands, too"
                )
            }
            "tool_name" | "selected_tool" => {
                let text = pattern.trim_end_matches('*');
                match text.contains('*') {
                    true => format!("write `{path}.matches(r\"…\")`, with a regular expression"),
                    false => format!("write `{path}.startsWith(\"{text}\")`"),
                }
            }
            // A command can have a `*` of its own, so this may be meant.
            "command" => {
                let Some(text) = pattern.strip_suffix('*').filter(|text| !text.contains('*')) else { return };
                let message = format!("`{pattern}` is compared as a text, and `*` is no wildcard in it");
                let help = format!("write `{path}.startsWith(\"{}\")`", text.trim_end());
                return self.warning(MistakeCode::NeverTrue, span, message, Some(help));
            }
            _ => return,
        };
        let message = format!("`{pattern}` is a pattern, and is compared as a text");
        self.error(MistakeCode::NeverTrue, span, message, Some(help));
    }

    /// Returns the span of a constant within that of its list.
    fn within(&self, span: Span, name: &Value) -> Span {
        let (Some(name), Some(source)) = (name.as_str(), self.source.get(span.offset..)) else { return span };
        let found = source.find(name).filter(|at| *at > 0);
        found.map_or(span, |at| Span::new(span.offset + at - 1, name.len() + 2))
    }

    /// Checks the name of a tool. Other programs may have tools of their own, so an unknown name is an error only if it is misspelled.
    pub(super) fn tool_name(&mut self, name: &Value, span: Span) {
        let known = || self.context.tools.iter().map(|tool| tool.name.as_str());
        let Some(name) = name.as_str().filter(|name| !name.starts_with("mcp__") && known().next().is_some()) else {
            return;
        };
        let names: Vec<&str> = known().collect();
        if let Some((severity, message, help)) = tool_name_mistake(name, &names) {
            self.find(severity, MistakeCode::UnknownTool, span, message, Some(help));
        }
    }

    fn event_name(&mut self, name: &Value, span: Span) {
        if let Some(name) = name.as_str().filter(|name| !self.context.runs_at(name)) {
            let message = format!("never true: this hook does not run at `{name}`");
            let help = format!("add it to `on`, which has {}", self.context.on.join(", "));
            self.error(MistakeCode::NeverTrue, span, message, Some(help));
        }
    }

    fn day(&mut self, name: &Value, span: Span) {
        let days: Vec<&str> = Weekday::Monday.cycle_forward().take(7).map(name_of).collect();
        if let Some(name) = name.as_str().filter(|name| !days.contains(name)) {
            let help = did_you_mean(name, days.iter().copied());
            let help = help.unwrap_or_else(|| format!("expected one of {}", days.join(", ")));
            self.error(MistakeCode::NeverTrue, span, format!("unknown day `{name}`"), Some(help));
        }
    }

    fn hour(&mut self, operator: Operator, path: &str, limit: &Value, span: Span) {
        let Some(limit) = limit.as_f64().filter(|_| path == "hour()") else { return };
        let is_possible = match operator {
            Operator::Equal | Operator::NotEqual | Operator::In => (0.0..24.0).contains(&limit),
            Operator::Greater => limit < 23.0,
            Operator::GreaterOrEqual => limit <= 23.0,
            Operator::Less => limit > 0.0,
            _ => limit >= 0.0,
        };
        if !is_possible {
            let message = format!("never true: `hour()` is 0 to 23, and compared with {limit}");
            self.error(MistakeCode::NeverTrue, span, message, None);
        }
    }
}

/// Returns the problem of a tool's name that is not among the known ones: an error if it is misspelled, else a warning.
pub(crate) fn tool_name_mistake(name: &str, known: &[&str]) -> Option<(Severity, String, String)> {
    if known.contains(&name) || name.starts_with("mcp__") {
        return None;
    }
    let message = format!("unknown tool `{name}`");
    match did_you_mean(name, known.iter().copied()).or_else(|| known_as(name, &OTHER_TOOLS).map(suggestion)) {
        Some(help) => Some((Severity::Error, message, help)),
        None => {
            let help = format!("known tools are {}; a tool of an MCP server is `mcp__SERVER__TOOL`", known.join(", "));
            Some((Severity::Warning, message, help))
        }
    }
}

/// Returns the problem of a pattern that matches the name of no known tool.
pub(crate) fn matches_no_tool(pattern: &str, known: &[&str]) -> Option<(Severity, String, String)> {
    let matcher = globset::Glob::new(pattern).ok()?.compile_matcher();
    if pattern.starts_with("mcp__") || known.iter().any(|name| matcher.is_match(name)) || matcher.is_match("mcp__a__b")
    {
        return None;
    }
    let message = format!("no known tool matches `{pattern}`");
    Some((Severity::Warning, message, format!("known tools are {}; capital letters count", known.join(", "))))
}

/// Tools of other programs, and those with the same effect.
const OTHER_TOOLS: [(&[&str], &str); 6] = [
    (&["shell", "execute", "run_command", "terminal", "exec", "sh"], "Bash"),
    (&["write_file", "create_file", "WriteFile", "create"], "Write"),
    (&["edit_file", "str_replace", "EditFile", "patch"], "Edit"),
    (&["read_file", "ReadFile", "cat", "view"], "Read"),
    (&["search", "ripgrep", "rg"], "Grep"),
    (&["find", "LS", "ls", "list_files"], "Glob"),
];
