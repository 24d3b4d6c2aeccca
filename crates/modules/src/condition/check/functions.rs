//! Checks of function calls.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::Checker;
use super::facts::{Facts, path};
use super::types::{ObjectType, Type};
use crate::condition::error::Span;
use crate::condition::node::{Function, Kind, Node, SHELL_FIELDS};
use crate::mistake::MistakeCode;

/// The type of `shell(command)`.
static SHELL: LazyLock<Type> = LazyLock::new(|| {
    let texts = || Type::List(Box::new(Type::Text));
    let command = ObjectType::new(
        "a command of `shell`",
        &[("program", Type::Text), ("arguments", texts()), ("resolved", Type::Bool)],
    );
    let field = |name| {
        let kind = match name {
            "commands" => Type::List(Box::new(Type::Object(vec![command.clone()]))),
            "programs" | "writes" | "deletes" | "hosts" => texts(),
            "why" => Type::Text,
            _ => Type::Bool,
        };
        (name, kind)
    };
    let fields = SHELL_FIELDS.map(field);
    Type::Object(vec![ObjectType::new("`shell`", &fields)])
});

impl Checker<'_> {
    pub(super) fn call(&mut self, function: Function, arguments: &[Node], span: Span, facts: &Facts) -> Type {
        match function {
            Function::Changes => {
                self.tool_call(span, facts);
                self.values(arguments, facts);
                Type::Bool
            }
            Function::Contains | Function::StartsWith | Function::EndsWith | Function::Matches => {
                self.swapped(function, arguments, span);
                self.wildcard(function, arguments);
                self.texts(arguments, facts);
                Type::Bool
            }
            Function::LowerAscii => {
                self.texts(arguments, facts);
                Type::Text
            }
            Function::InWorkspace => {
                self.texts(arguments, facts);
                Type::Bool
            }
            Function::PathMatches => {
                self.swapped(function, arguments, span);
                self.texts(arguments.get(..1).unwrap_or_default(), facts);
                Type::Bool
            }
            Function::Shell => {
                self.texts(arguments, facts);
                SHELL.clone()
            }
            Function::HasSecret => {
                self.values(arguments, facts);
                Type::Bool
            }
            Function::Size => {
                for kind in self.values(arguments, facts) {
                    if matches!(kind, Type::Bool | Type::Number) {
                        let message = format!("`size` does not work with {}", kind.in_words());
                        self.error(MistakeCode::Type, span, message, None);
                    }
                }
                Type::Number
            }
            Function::Int => {
                self.values(arguments, facts);
                Type::Number
            }
            Function::String => {
                self.values(arguments, facts);
                Type::Text
            }
            Function::Hour | Function::Minute | Function::Turn | Function::SessionMinutes | Function::SessionCount => {
                Type::Number
            }
            Function::Date | Function::Weekday | Function::Workspace => Type::Text,
        }
    }

    fn values(&mut self, arguments: &[Node], facts: &Facts) -> Vec<Type> {
        arguments.iter().map(|argument| self.value(argument, facts)).collect()
    }

    fn texts(&mut self, arguments: &[Node], facts: &Facts) {
        for (at, argument) in arguments.iter().enumerate() {
            let kind = self.value(argument, facts);
            if kind.can_equal(&Type::Text) {
                continue;
            }
            let help = match &kind {
                Type::List(_) if at == 0 => Some("for an item of a list, write `item in list`".to_owned()),
                Type::Object(_) if at == 0 => Some("name a field of the object, or write `string(…)`".to_owned()),
                _ => None,
            };
            let message = format!("expected text, found {}", kind.in_words());
            self.error(MistakeCode::Type, argument.span, message, help);
        }
    }

    pub(super) fn matches(&mut self, text: &Node, regex: &Regex, facts: &Facts) -> Type {
        self.texts(std::slice::from_ref(text), facts);
        if regex.as_str().contains('\u{8}') {
            let at = self.source.find("\\b").unwrap_or(text.span.offset);
            let help = "for the end of a word, write `\\\\b`, or `r` before the text: `r\"\\bword\\b\"`".to_owned();
            self.error(MistakeCode::NeverTrue, Span::new(at, 2), "`\\b` in a text is a backspace", Some(help));
        }
        Type::Bool
    }

    pub(super) fn path_matches(&mut self, path: &Node, patterns: &[String], span: Span, facts: &Facts) -> Type {
        self.texts(std::slice::from_ref(path), facts);
        self.patterns(patterns, span);
        Type::Bool
    }

    /// Checks that a text from the event comes before the text that is searched in it.
    fn swapped(&mut self, function: Function, arguments: &[Node], span: Span) {
        let [one, other] = arguments else { return };
        let (Kind::Constant(Value::String(text)), Some(path)) = (&one.kind, path(other)) else { return };
        let Some((name, ..)) = Function::ALL.into_iter().find(|(_, known, _)| *known == function) else { return };
        // `"Write Edit".contains(tool_name)` is a way to write a list.
        if function == Function::Contains && matches!(path.as_str(), "tool_name" | "event") {
            return;
        }
        let help = match function {
            Function::Matches => format!("write `{path}.{name}(r\"{text}\")`"),
            Function::PathMatches => format!("write `{name}({path}, [\"{text}\"])`"),
            _ => format!("write `{path}.{name}(\"{text}\")`"),
        };
        let message = format!("`{name}` looks for `{path}` in the text \"{text}\"; the arguments are probably swapped");
        self.warning(MistakeCode::NeverTrue, span, message, Some(help));
    }

    /// Checks for a `*` at the open end of a text, where it is a character like any other.
    fn wildcard(&mut self, function: Function, arguments: &[Node]) {
        let [_, Node { kind: Kind::Constant(Value::String(text)), span, .. }] = arguments else { return };
        let rest = match function {
            Function::StartsWith => text.strip_suffix('*'),
            Function::EndsWith => text.strip_prefix('*'),
            _ => None,
        };
        let Some(rest) = rest.filter(|rest| !rest.is_empty()) else { return };
        let message = format!("`*` is no wildcard in \"{text}\": only a text with a `*` there matches");
        let help = format!("write \"{}\", or match a path with `path_matches`", rest.trim_matches('*'));
        self.warning(MistakeCode::NeverTrue, *span, message, Some(help));
    }

    /// Checks that the events of the hook are about a tool call.
    pub(super) fn tool_call(&mut self, span: Span, facts: &Facts) {
        self.field("tool_input", span, facts);
    }

    /// Checks patterns of paths.
    pub(super) fn patterns(&mut self, patterns: &[String], span: Span) {
        for pattern in patterns {
            let Some((problem, help)) = pattern_problem(pattern) else { continue };
            let at = self.source.find(pattern.as_str()).filter(|_| !pattern.is_empty());
            let span = at.map_or(span, |at| Span::new(at, pattern.len()));
            let message = format!("the pattern `{pattern}` never matches: it {problem}");
            self.error(MistakeCode::NeverTrue, span, message, Some(help));
        }
    }
}

/// Returns the reason why a pattern matches no path, and a remedy, if that is certain.
pub(crate) fn pattern_problem(pattern: &str) -> Option<(&'static str, String)> {
    Some(match pattern {
        "" => ("is empty", "name a path, such as `src/**`".to_owned()),
        home if home.starts_with('~') => {
            ("begins with `~`, which is not the home folder here", "write an absolute path".to_owned())
        }
        not if not.starts_with('!') => {
            ("begins with `!`, which excludes nothing here", "remove the `!`, and negate the condition".to_owned())
        }
        here if here.starts_with("./") => ("begins with `./`", format!("write `{}`", here.trim_start_matches("./"))),
        up if up.starts_with("../") => {
            ("begins with `../`, and paths are resolved", "write an absolute path".to_owned())
        }
        folder if folder.len() > 1 && folder.ends_with('/') => {
            ("ends with `/`, so no file matches", format!("write `{folder}**`"))
        }
        windows if windows.contains('\\') && windows.contains(':') => {
            ("is a path of Windows", "write `/` between folders".to_owned())
        }
        _ => return None,
    })
}
