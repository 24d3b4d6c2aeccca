//! Checks a parsed expression: names, functions and literal patterns.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use amplifier_core::text::counted;
use amplifier_core::{EventName, catalog};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, SelectExpr,
    SourceInfo, operators,
};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::error::{ConditionError, Span};
use super::node::{Function, Kind, Loop, LoopBody, Node, Operator, SHELL_FIELDS};
use super::{did_you_mean, known_as, overlap, path, suggestion};
use crate::counters::{BEGIN, TURN};

/// Maximum depth of an expression, including operators, which limits the evaluator's stack.
const MAX_DEPTH: usize = 100;
pub(super) const TOO_DEEP: &str = "the expression is nested too deeply: split it into several rules";
const MAX_REGEX_SIZE: usize = 256 << 10;

/// Top-level names: the documented fields of all events, and the common ones.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let fields = catalog().iter().flat_map(|spec| spec.fields).map(|field| field.name);
    let mut names: Vec<_> = fields.chain(["data", "event", "session_id", "timestamp"]).collect();
    names.sort_unstable();
    names.dedup();
    names
});

/// `true` if an event has a field of this name.
pub(super) fn is_event_field(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// Names of other tools and languages, and the field or function of this language.
const OTHER_NAMES: [(&[&str], &str); 8] = [
    (&["tool", "name"], "tool_name"),
    (&["input", "args", "arguments", "params"], "tool_input"),
    (&["result"], "tool_result"),
    (&["output"], "tool_result.output"),
    (&["command"], "tool_input.command"),
    (&["file_path"], "tool_input.file_path"),
    (&["event_name"], "event"),
    (&["cwd"], "workspace()"),
];

const OTHER_FUNCTIONS: [(&[&str], &str); 9] = [
    (&["not"], "!"),
    (&["includes", "has_substring"], "contains"),
    (&["begins_with", "starts_with", "has_prefix"], "startsWith"),
    (&["ends_with", "has_suffix"], "endsWith"),
    (&["len", "length", "count"], "size"),
    (&["lower", "toLowerCase"], "lowerAscii"),
    (&["regex", "match", "test"], "matches"),
    (&["glob"], "path_matches"),
    (&["any", "some"], "exists"),
];

const LOOPS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];

/// Converts a parsed expression into an evaluable tree, with the events whose counts it uses.
pub(super) fn lower(
    source: &str,
    info: &SourceInfo,
    expression: IdedExpr,
) -> Result<(Node, BTreeSet<String>), ConditionError> {
    let mut lowering = Lowering { source, info, items: Vec::new(), depth: 0, counted: BTreeSet::new() };
    let node = lowering.node(expression)?;
    Ok((node, lowering.counted))
}

pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    let regex =
        RegexBuilder::new(pattern).size_limit(MAX_REGEX_SIZE).dfa_size_limit(MAX_REGEX_SIZE).nest_limit(50).build();
    regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the regular expression is too large: use smaller counts".to_owned(),
        // The last line has the error; those before it show the pattern.
        other => {
            let text = other.to_string();
            let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("invalid regular expression: {what}")
        }
    })
}

struct Lowering<'a> {
    source: &'a str,
    info: &'a SourceInfo,
    /// Variable names of the surrounding loops, from the outside.
    items: Vec<String>,
    depth: usize,
    counted: BTreeSet<String>,
}

type LowerResult<T> = Result<T, ConditionError>;

impl Lowering<'_> {
    fn node(&mut self, expression: IdedExpr) -> LowerResult<Node> {
        let span = self.span(expression.id);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(span, TOO_DEEP, None);
        }
        let (kind, span) = match expression.expr {
            Expr::Unspecified => self.fail(span, "the expression is incomplete", None)?,
            Expr::Struct(_) => self.fail(span, "messages are not supported", None)?,
            Expr::Literal(literal) => (Kind::Constant(self.literal(literal, span)?), span),
            Expr::Ident(name) => (self.name(&name, span)?, span),
            Expr::Select(select) => self.select(select, span)?,
            Expr::List(list) => (self.list(list)?, span),
            Expr::Map(map) => (self.map(map.entries, span)?, span),
            Expr::Comprehension(comprehension) => (self.comprehension(*comprehension, span)?, span),
            Expr::Call(call) => self.call(call, span)?,
        };
        self.depth -= 1;
        Ok(Node { kind, span })
    }

    fn boxed(&mut self, expression: IdedExpr) -> LowerResult<Box<Node>> {
        self.node(expression).map(Box::new)
    }

    fn literal(&self, literal: LiteralValue, span: Span) -> LowerResult<Value> {
        Ok(match literal {
            LiteralValue::Boolean(value) => value.into_inner().into(),
            LiteralValue::Double(value) => value.into_inner().into(),
            LiteralValue::Int(value) => value.into_inner().into(),
            LiteralValue::UInt(value) => value.into_inner().into(),
            LiteralValue::String(value) => value.into_inner().into(),
            LiteralValue::Null => Value::Null,
            LiteralValue::Bytes(_) => return self.fail(span, "bytes are not supported", Some("write a text".into())),
        })
    }

    fn name(&self, name: &str, span: Span) -> LowerResult<Kind> {
        let name = name.trim_start_matches('.');
        if let Some(at) = self.items.iter().rposition(|item| item == name) {
            return Ok(Kind::Item(at));
        }
        match name {
            "event" => Ok(Kind::Event),
            "data" => Ok(Kind::Data),
            field if NAMES.binary_search(&field).is_ok() => Ok(Kind::Field(field.to_owned())),
            _ => {
                let known = NAMES.iter().copied().chain(self.items.iter().map(String::as_str));
                let help = known_as(name, &OTHER_NAMES).map(suggestion).or_else(|| did_you_mean(name, known));
                let help = help.unwrap_or_else(|| format!("a field of your own events is `data.{name}`"));
                self.fail(span, format!("unknown name `{name}`"), Some(help))
            }
        }
    }

    fn select(&mut self, select: SelectExpr, dot: Span) -> LowerResult<(Kind, Span)> {
        let SelectExpr { operand, field, test } = select;
        // The parser stores the position of the dot, and the end of `has(`.
        let span = if test { dot } else { self.after(dot, &field) };
        let operand = self.boxed(*operand)?;
        if let Kind::Call(Function::Shell, _) = operand.kind
            && !SHELL_FIELDS.contains(&field.as_str())
        {
            let help = did_you_mean(&field, SHELL_FIELDS);
            let help = help.unwrap_or_else(|| format!("expected one of {}", SHELL_FIELDS.join(", ")));
            return self.fail(span, format!("unknown field `{field}` of `shell`"), Some(help));
        }
        let kind = match (operand.kind, test) {
            (Kind::Data, false) => Kind::Field(field),
            (Kind::Data, true) => Kind::HasField(field),
            (kind, false) => Kind::Select(Box::new(Node { kind, ..*operand }), field),
            (kind, true) => Kind::Has(Box::new(Node { kind, ..*operand }), field),
        };
        Ok((kind, span))
    }

    fn list(&mut self, list: ListExpr) -> LowerResult<Kind> {
        let nodes = list.elements.into_iter().map(|element| self.node(element)).collect::<LowerResult<Vec<_>>>()?;
        if nodes.iter().any(|node| !matches!(node.kind, Kind::Constant(_))) {
            return Ok(Kind::List(nodes));
        }
        // A list of literals is made once, not at every event.
        let constants = nodes.into_iter().filter_map(|node| match node.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        });
        Ok(Kind::Constant(constants.collect()))
    }

    fn map(&mut self, entries: Vec<IdedEntryExpr>, span: Span) -> LowerResult<Kind> {
        let mut nodes = Vec::new();
        for entry in entries {
            let EntryExpr::MapEntry(entry) = entry.expr else {
                return self.fail(span, "messages are not supported", None);
            };
            nodes.push((self.node(entry.key)?, self.node(entry.value)?));
        }
        Ok(if nodes.is_empty() { Kind::Constant(Map::new().into()) } else { Kind::Map(nodes) })
    }

    /// Recognises the macro behind a comprehension by its step.
    fn comprehension(&mut self, comprehension: ComprehensionExpr, span: Span) -> LowerResult<Kind> {
        let ComprehensionExpr { iter_range, iter_var, loop_step, .. } = comprehension;
        let range = self.node(iter_range)?;
        self.items.push(iter_var);
        let body = self.body(loop_step)?;
        self.items.pop();
        match body {
            Some(body) => Ok(Kind::Loop(Box::new(Loop { range, body }))),
            None => self.fail(span, "this kind of loop is not supported", None),
        }
    }

    fn body(&mut self, step: IdedExpr) -> LowerResult<Option<LoopBody>> {
        let Some((name, arguments)) = into_call(step) else { return Ok(None) };
        match (name.as_str(), <[IdedExpr; 2]>::try_from(arguments)) {
            (operators::LOGICAL_AND, Ok([_, test])) => Ok(Some(LoopBody::All(self.node(test)?))),
            (operators::LOGICAL_OR, Ok([_, test])) => Ok(Some(LoopBody::Exists(self.node(test)?))),
            (operators::ADD, Ok([_, made])) => self.collect(None, made),
            (operators::CONDITIONAL, Err(arguments)) => {
                let Ok([test, then, _]) = <[IdedExpr; 3]>::try_from(arguments) else { return Ok(None) };
                let sum = into_call(then).and_then(|(_, sum)| <[IdedExpr; 2]>::try_from(sum).ok());
                match sum {
                    Some([_, made]) if matches!(made.expr, Expr::List(_)) => self.collect(Some(test), made),
                    Some(_) => Ok(Some(LoopBody::ExistsOne(self.node(test)?))),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn collect(&mut self, filter: Option<IdedExpr>, made: IdedExpr) -> LowerResult<Option<LoopBody>> {
        let Expr::List(ListExpr { mut elements, .. }) = made.expr else { return Ok(None) };
        let Some(make) = elements.pop() else { return Ok(None) };
        let filter = filter.map(|filter| self.node(filter)).transpose()?;
        Ok(Some(LoopBody::Collect { filter, make: self.node(make)? }))
    }

    fn call(&mut self, call: CallExpr, span: Span) -> LowerResult<(Kind, Span)> {
        let CallExpr { func_name, target, args } = call;
        let mut arguments = Vec::with_capacity(args.len() + 1);
        for argument in target.map(|target| *target).into_iter().chain(args) {
            arguments.push(self.node(argument)?);
        }
        let count = arguments.len();
        if let Some(kind) = operation(&func_name, &mut arguments) {
            return Ok((kind, span));
        }
        // The parser stores the position of the bracket, which follows the name.
        let span = self.before(span, &func_name);
        let Some((name, function, expected)) = Function::ALL.into_iter().find(|(name, ..)| *name == func_name) else {
            if LOOPS.contains(&func_name.as_str()) {
                let help = format!("write `list.{func_name}(item, …)`");
                return self.fail(span, format!("`{func_name}` takes a list, a name and an expression"), Some(help));
            }
            if func_name == "has" {
                return self.fail(span, "`has` takes one field", Some("write `has(tool_input.path)`".into()));
            }
            let known = Function::ALL.iter().map(|(name, ..)| *name).chain(LOOPS);
            let help =
                known_as(&func_name, &OTHER_FUNCTIONS).map(suggestion).or_else(|| did_you_mean(&func_name, known));
            return self.fail(span, format!("unknown function `{func_name}`"), help);
        };
        if function == Function::SessionCount {
            return self.session_count(arguments, span);
        }
        self.counted.extend(match function {
            Function::Turn => Some(TURN.to_owned()),
            Function::SessionMinutes => Some(BEGIN.to_owned()),
            _ => None,
        });
        if count != expected {
            let expected = counted(expected, "argument");
            return self.fail(span, format!("`{name}` takes {expected}, not {count}"), None);
        }
        let kind = match (function, arguments.pop()) {
            (Function::Matches, Some(Node { kind: Kind::Constant(Value::String(pattern)), span })) => {
                let regex = regex(&pattern).or_else(|message| self.fail(span, message, None))?;
                arguments.pop().map(|text| Kind::Matches(Box::new(text), regex))
            }
            (Function::PathMatches, Some(Node { kind: Kind::Constant(patterns), span })) => {
                let patterns = texts(&patterns).or_else(|message| self.fail(span, message, None))?;
                let globs = path::globs(patterns.iter().copied()).or_else(|message| self.fail(span, message, None))?;
                let patterns = patterns.into_iter().map(str::to_owned).collect();
                arguments.pop().map(|text| Kind::PathMatches(Box::new(text), patterns, globs))
            }
            (Function::Changes, Some(Node { kind: Kind::Constant(patterns), span })) => {
                let patterns = texts(&patterns).or_else(|message| self.fail(span, message, None))?;
                let checked = patterns.iter().try_for_each(|pattern| overlap::check(pattern));
                checked.or_else(|message| self.fail(span, message, None))?;
                Some(Kind::Changes(patterns.into_iter().map(str::to_owned).collect()))
            }
            (_, last) => {
                arguments.extend(last);
                Some(Kind::Call(function, arguments))
            }
        };
        match kind {
            Some(kind) => Ok((kind, span)),
            None => self.fail(span, "the expression is incomplete", None),
        }
    }

    /// Lowers `session_count(event)` and `session_count(event, tool)`. The event must be a literal, so that it can be counted from the start.
    fn session_count(&mut self, mut arguments: Vec<Node>, span: Span) -> LowerResult<(Kind, Span)> {
        if !matches!(arguments.len(), 1 | 2) {
            let help = "write `session_count('tool:pre', 'Bash')`";
            return self.fail(span, "`session_count` takes an event and an optional tool", Some(help.into()));
        }
        let tool = (arguments.len() == 2).then(|| arguments.pop()).flatten().map(Box::new);
        let Some(Node { kind: Kind::Constant(Value::String(event)), span: place }) = arguments.pop() else {
            let help = "write `session_count('tool:pre')`";
            return self.fail(span, "`session_count` needs the name of an event", Some(help.into()));
        };
        let name = match event.parse::<EventName>() {
            Ok(name) => name,
            Err(error) => return self.fail(place, error.to_string(), None),
        };
        if name.spec().is_none()
            && let Some(help) = did_you_mean(name.canonical(), catalog().iter().map(|spec| spec.name))
        {
            return self.fail(place, format!("unknown event `{event}`"), Some(help));
        }
        let name = name.canonical().to_owned();
        self.counted.insert(name.clone());
        Ok((Kind::SessionCount(name, tool), span))
    }

    fn fail<T>(&self, span: Span, message: impl Into<String>, help: Option<String>) -> LowerResult<T> {
        Err(ConditionError::new(self.source, span, message).with_help(help))
    }

    fn span(&self, id: u64) -> Span {
        let Some((start, stop)) = self.info.offset_for(id) else { return Span::new(0, self.source.len()) };
        let boundary = |from: u32| self.source.ceil_char_boundary(from as usize);
        let (start, end) = (boundary(start), boundary(stop.saturating_add(1)));
        Span::new(start, end.saturating_sub(start))
    }

    /// Returns the span of the name before this position.
    fn before(&self, span: Span, name: &str) -> Span {
        let before = self.source.get(..span.offset).unwrap_or_default().trim_end();
        if before.ends_with(name) { Span::new(before.len() - name.len(), name.len()) } else { span }
    }

    /// Returns the span of the name after this position.
    fn after(&self, span: Span, name: &str) -> Span {
        let from = span.offset + span.length;
        let found = self.source.get(from..).and_then(|rest| rest.find(name));
        found.map_or(span, |at| Span::new(from + at, name.len()))
    }
}

fn into_call(expression: IdedExpr) -> Option<(String, Vec<IdedExpr>)> {
    match expression.expr {
        Expr::Call(CallExpr { func_name, target: None, args }) => Some((func_name, args)),
        _ => None,
    }
}

/// Returns the operation of an operator, and takes its arguments.
fn operation(name: &str, arguments: &mut Vec<Node>) -> Option<Kind> {
    let operator = match name {
        operators::LOGICAL_NOT => return Some(Kind::Not(Box::new(arguments.pop()?))),
        operators::NEGATE => return Some(Kind::Negate(Box::new(arguments.pop()?))),
        operators::CONDITIONAL => return Some(Kind::If(take(arguments)?)),
        operators::LOGICAL_AND => return Some(Kind::And(take(arguments)?)),
        operators::LOGICAL_OR => return Some(Kind::Or(take(arguments)?)),
        operators::INDEX => return Some(Kind::Index(take(arguments)?)),
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        _ => return None,
    };
    Some(Kind::Binary(operator, take(arguments)?))
}

fn take<const N: usize>(arguments: &mut Vec<Node>) -> Option<Box<[Node; N]>> {
    std::mem::take(arguments).into_boxed_slice().try_into().ok()
}

pub(super) fn texts(value: &Value) -> Result<Vec<&str>, String> {
    let texts = match value {
        Value::String(text) => Some(vec![text.as_str()]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    };
    texts.ok_or_else(|| "patterns are a text or a list of texts".to_owned())
}
