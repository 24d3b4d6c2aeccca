//! Finds conditions that fail or are never true, before any event.

mod context;
mod facts;
mod functions;
mod names;
mod truth;
mod types;

pub(crate) use self::context::CheckContext;
pub(crate) use self::facts::Facts;
pub(crate) use self::functions::pattern_problem;
pub(crate) use self::names::{matches_no_tool, tool_name_mistake};

use serde_json::Value;

use self::facts::{Conflict, constant};
use self::types::{ObjectType, Type};
use super::error::Span;
use super::lower::is_event_field;
use super::node::{Kind, Loop, LoopBody, Node, Operator};
use crate::mistake::{MistakeCode, Severity};

/// A finding in an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) code: MistakeCode,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Checks an expression. Returns the findings, and what is known when it is true.
pub(super) fn check(
    node: &Node,
    source: &str,
    context: &CheckContext<'_>,
    facts: &Facts,
    is_condition: bool,
) -> (Vec<Finding>, Facts) {
    let own = facts.when(node);
    let find = |guesses| {
        let mut checker = Checker { context, source, guesses, items: Vec::new(), findings: Vec::new() };
        match is_condition {
            true => checker.condition(node, &own),
            false => drop(checker.value(node, facts)),
        }
        checker
    };
    let mut checker = find(false);
    let is_explained = checker.findings.iter().any(|finding| finding.severity == Severity::Error);
    if is_condition && !is_explained && truth::truth(node) == Some(false) {
        checker.error(MistakeCode::NeverTrue, node.span, "this condition is never true", None);
    }
    // What would be a mistake with the known tools only is a warning, because there may be others.
    for guess in find(true).findings {
        if !checker.findings.iter().any(|known| known.span == guess.span) {
            checker.findings.push(Finding { severity: Severity::Warning, ..guess });
        }
    }
    (checker.findings, own)
}

struct Checker<'a> {
    context: &'a CheckContext<'a>,
    source: &'a str,
    /// `true` if a field that all known tools have with one type has that type, even if there may be other tools.
    guesses: bool,
    /// Types of the items of the surrounding loops.
    items: Vec<Type>,
    findings: Vec<Finding>,
}

impl Checker<'_> {
    fn error(&mut self, code: MistakeCode, span: Span, message: impl Into<String>, help: Option<String>) {
        self.find(Severity::Error, code, span, message, help);
    }

    fn warning(&mut self, code: MistakeCode, span: Span, message: impl Into<String>, help: Option<String>) {
        self.find(Severity::Warning, code, span, message, help);
    }

    fn find(
        &mut self,
        severity: Severity,
        code: MistakeCode,
        span: Span,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let finding = Finding { severity, code, span, message: message.into(), help };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Checks an expression whose value must be true or false.
    fn condition(&mut self, node: &Node, facts: &Facts) {
        let kind = self.value(node, facts);
        if !kind.can_equal(&Type::Bool) {
            let help = match node.kind {
                Kind::Constant(Value::String(_)) => {
                    "compare each value: `a == \"x\" || a == \"y\"`, or write `a in [\"x\", \"y\"]`"
                }
                _ => "write a comparison, such as `tool_name == \"Bash\"`",
            };
            let message = format!("expected true or false, found {}", kind.in_words());
            self.error(MistakeCode::Type, node.span, message, Some(help.to_owned()));
        }
    }

    fn value(&mut self, node: &Node, facts: &Facts) -> Type {
        match &node.kind {
            Kind::Constant(value) => Type::from_value(value),
            Kind::Event => Type::Text,
            Kind::Data => Type::Object(Vec::new()),
            Kind::Field(name) => self.field(name, node.span, facts),
            Kind::HasField(name) => {
                self.field(name, node.span, facts);
                Type::Bool
            }
            Kind::Item(at) => self.items.get(*at).cloned().unwrap_or(Type::Any),
            Kind::Select(operand, field) => {
                let operand = self.value(operand, facts);
                self.select(&operand, field, node.span)
            }
            Kind::Has(operand, field) => {
                let operand = self.value(operand, facts);
                self.select(&operand, field, node.span);
                Type::Bool
            }
            Kind::Index(pair) => self.index(pair, node.span, facts),
            Kind::Not(operand) => {
                self.condition(operand, facts);
                Type::Bool
            }
            Kind::Negate(operand) => {
                self.expect(operand, &Type::Number, facts);
                Type::Number
            }
            Kind::And(pair) => self.and(node, pair, facts),
            Kind::Or(pair) => {
                pair.iter().for_each(|side| self.condition(side, &facts.when(side)));
                Type::Bool
            }
            Kind::If(parts) => {
                let [test, then, otherwise] = &**parts;
                self.condition(test, facts);
                let then = self.value(then, &facts.when(test));
                then.or(self.value(otherwise, facts))
            }
            Kind::Binary(operator, pair) => self.binary(*operator, pair, node.span, facts),
            Kind::List(nodes) => {
                let types: Vec<Type> = nodes.iter().map(|node| self.value(node, facts)).collect();
                Type::List(Box::new(types.into_iter().reduce(Type::or).unwrap_or(Type::Any)))
            }
            Kind::Map(entries) => {
                entries.iter().for_each(|(_, value)| drop(self.value(value, facts)));
                Type::Object(Vec::new())
            }
            Kind::Loop(repeated) => self.repeat(repeated, facts),
            Kind::Call(function, arguments) => self.call(*function, arguments, node.span, facts),
            Kind::Matches(text, regex) => self.matches(text, regex, facts),
            Kind::PathMatches(path, patterns, _) => self.path_matches(path, patterns, node.span, facts),
            Kind::Changes(patterns) => {
                self.tool_call(node.span, facts);
                self.patterns(patterns, node.span);
                Type::Bool
            }
            Kind::SessionCount(_, tool) => {
                if let Some(tool) = tool {
                    self.expect(tool, &Type::Text, facts);
                    constant(tool).into_iter().for_each(|name| self.tool_name(name, tool.span));
                }
                Type::Number
            }
        }
    }

    fn and(&mut self, node: &Node, pair: &[Node; 2], facts: &Facts) -> Type {
        let sides = [Facts::of(&pair[0]), Facts::of(&pair[1])];
        let mut own = facts.clone();
        // A conflict within one side is found there.
        if let [Ok(one), Ok(other)] = &sides {
            match one.clone().and(other).and_then(|both| facts.clone().and(&both)) {
                Ok(both) => own = both,
                Err(Conflict { path, values: [one, other] }) => {
                    let help = format!("write `||` between the comparisons, or `{path} in [{one}, {other}]`");
                    let message = format!("never true: `{path}` cannot be both {one} and {other}");
                    self.error(MistakeCode::NeverTrue, node.span, message, Some(help));
                }
            }
        }
        pair.iter().for_each(|side| self.condition(side, &own));
        Type::Bool
    }

    fn field(&mut self, name: &str, span: Span, facts: &Facts) -> Type {
        if let Some(problem) = self.context.field_problem(name) {
            if is_event_field(name) {
                self.error(MistakeCode::UnknownField, span, problem.message, Some(problem.help));
            } else if problem.is_misspelled {
                // A field of the program's own, unless it is misspelled.
                self.warning(MistakeCode::UnknownField, span, problem.message, Some(problem.help));
            }
            return Type::Any;
        }
        self.context.field_type(name, facts)
    }

    fn select(&mut self, operand: &Type, field: &str, span: Span) -> Type {
        let kinds = match operand {
            Type::Object(kinds) if !kinds.is_empty() => kinds,
            Type::Object(_) | Type::Any | Type::Null => return Type::Any,
            other => {
                let message = format!("{} has no field `{field}`", other.in_words());
                self.error(MistakeCode::UnknownField, span, message, None);
                return Type::Any;
            }
        };
        let found: Vec<&Type> = kinds.iter().filter_map(|kind| kind.fields.get(field)).collect();
        if let Some((first, rest)) = found.split_first() {
            let is_certain = self.guesses || kinds.iter().all(|kind| kind.is_closed);
            return if is_certain && rest.iter().all(|kind| kind == first) { (*first).clone() } else { Type::Any };
        }
        self.unknown_field(kinds, field, span);
        Type::Any
    }

    fn unknown_field(&mut self, kinds: &[ObjectType], field: &str, span: Span) {
        let known = || kinds.iter().flat_map(|kind| kind.fields.keys()).map(String::as_str);
        let owners: Vec<&str> = kinds.iter().map(|kind| kind.owner.as_str()).take(3).collect();
        let message = format!("unknown field `{field}` of {}", owners.join(", "));
        let other = || super::known_as(field, &OTHER_FIELDS).filter(|field| known().any(|known| known == *field));
        if kinds.iter().all(|kind| kind.is_closed) {
            let help = other().map(super::suggestion).or_else(|| super::did_you_mean(field, known()));
            let help = help.unwrap_or_else(|| {
                let mut names: Vec<String> = known().map(|name| format!("`{name}`")).collect();
                names.sort_unstable();
                names.dedup();
                format!("expected one of {}", names.join(", "))
            });
            self.error(MistakeCode::UnknownField, span, message, Some(help));
        } else if let Some(nearest) = super::nearest_field(field, known()).or_else(other) {
            let message = match kinds {
                [_] => message,
                _ => format!("unknown field `{field}` of the tools' data"),
            };
            self.warning(MistakeCode::UnknownField, span, message, Some(super::suggestion(nearest)));
        }
    }

    fn index(&mut self, pair: &[Node; 2], span: Span, facts: &Facts) -> Type {
        let (operand, index) = (self.value(&pair[0], facts), self.value(&pair[1], facts));
        if let Some(Value::String(field)) = constant(&pair[1]) {
            return match &pair[0].kind {
                Kind::Data => self.field(field, span, facts),
                _ => self.select(&operand, field, span),
            };
        }
        match operand {
            Type::List(item) => {
                if !index.can_equal(&Type::Number) {
                    let message = format!("a list has no item for {}", index.in_words());
                    self.error(MistakeCode::Type, span, message, Some("write the number of the item".to_owned()));
                }
                *item
            }
            _ => Type::Any,
        }
    }

    fn repeat(&mut self, repeated: &Loop, facts: &Facts) -> Type {
        let Loop { range, body } = repeated;
        let item = match self.value(range, facts) {
            Type::List(item) => *item,
            Type::Object(_) => Type::Text,
            Type::Any | Type::Null => Type::Any,
            other => {
                let message = format!("expected a list, found {}", other.in_words());
                self.error(MistakeCode::Type, range.span, message, None);
                Type::Any
            }
        };
        self.items.push(item.clone());
        let kind = match body {
            LoopBody::All(test) | LoopBody::Exists(test) | LoopBody::ExistsOne(test) => {
                self.condition(test, facts);
                Type::Bool
            }
            LoopBody::Collect { filter, make } => {
                filter.iter().for_each(|filter| self.condition(filter, facts));
                Type::List(Box::new(self.value(make, facts)))
            }
        };
        self.items.pop();
        kind
    }

    /// Checks that a value has a type.
    fn expect(&mut self, node: &Node, expected: &Type, facts: &Facts) -> Type {
        let kind = self.value(node, facts);
        if !kind.can_equal(expected) {
            let message = format!("expected {}, found {}", expected.in_words(), kind.in_words());
            self.error(MistakeCode::Type, node.span, message, None);
        }
        kind
    }

    fn binary(&mut self, operator: Operator, pair: &[Node; 2], span: Span, facts: &Facts) -> Type {
        let (one, other) = (self.value(&pair[0], facts), self.value(&pair[1], facts));
        self.compared_names(operator, pair);
        let symbol = operator.symbol();
        match operator {
            Operator::Equal | Operator::NotEqual => {
                if !one.can_equal(&other) {
                    let result = if operator == Operator::Equal { "never" } else { "always" };
                    let (one, other) = (one.in_words(), other.in_words());
                    let message = format!("`{symbol}` is {result} true for {one} and {other}");
                    self.error(MistakeCode::Type, span, message, Some("compare values of one type".to_owned()));
                }
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let is_ordered = |kind: &Type| !matches!(kind, Type::List(_) | Type::Object(_));
                if !one.can_equal(&other) || !is_ordered(&one) || !is_ordered(&other) {
                    self.mismatch(symbol, &one, &other, span);
                }
            }
            Operator::In => match (&one, &other) {
                (_, Type::List(item)) if !one.can_equal(item) => {
                    let message = format!("never true: a list of {} has no {}", plural(item), one.in_words());
                    self.error(MistakeCode::Type, span, message, Some("compare values of one type".to_owned()));
                }
                (_, Type::List(_) | Type::Object(_) | Type::Any | Type::Null) => {}
                (Type::Text, Type::Text) => {
                    let help = "for a part of a text, write `text.contains(part)`".to_owned();
                    self.error(MistakeCode::Type, span, "`in` does not work with text and text", Some(help));
                }
                _ => self.mismatch(symbol, &one, &other, span),
            },
            Operator::Add => {
                let is_sum = |kind: &Type| matches!(kind, Type::Any | Type::Number | Type::Text | Type::List(_));
                if !is_sum(&one) || !is_sum(&other) || !one.can_equal(&other) {
                    self.mismatch(symbol, &one, &other, span);
                }
                return if one == Type::Any { other } else { one };
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
                let is_number = |kind: &Type| matches!(kind, Type::Any | Type::Number);
                if !is_number(&one) || !is_number(&other) {
                    self.mismatch(symbol, &one, &other, span);
                }
                return Type::Number;
            }
        }
        Type::Bool
    }

    fn mismatch(&mut self, symbol: &str, one: &Type, other: &Type, span: Span) {
        let message = format!("`{symbol}` does not work with {} and {}", one.in_words(), other.in_words());
        let help = match (one, other) {
            (Type::Text, Type::Number) | (Type::Number, Type::Text) => {
                Some("for the length of a text, write `size(text)`".to_owned())
            }
            _ => None,
        };
        self.error(MistakeCode::Type, span, message, help);
    }
}

/// Fields of other programs' tools, and those with the same content.
const OTHER_FIELDS: [(&[&str], &str); 6] = [
    (&["stdout", "stderr", "content", "text", "result", "message"], "output"),
    (&["status", "code", "returncode", "return_code", "exitCode", "exit_status"], "exit_code"),
    (&["file", "filename", "file_name", "filePath", "target"], "file_path"),
    (&["cmd", "script"], "command"),
    (&["old_text", "old_str", "search"], "old_string"),
    (&["new_text", "new_str", "replace"], "new_string"),
];

/// Describes the items of a list.
fn plural(item: &Type) -> &'static str {
    match item {
        Type::Text => "texts",
        Type::Number => "numbers",
        Type::Bool => "booleans",
        Type::List(_) => "lists",
        Type::Object(_) => "objects",
        Type::Any | Type::Null => "values",
    }
}
