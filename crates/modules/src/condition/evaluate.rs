//! Evaluates a checked expression for one event, within a budget.

use std::borrow::Cow;

use amplifier_core::EventData;
use serde_json::{Map, Value};

use super::Scope;
use super::error::Span;
use super::node::{Kind, Loop, LoopBody, Node};
use super::operators::{describe, negate};

/// Budget of one evaluation. A step costs one unit; texts cost by their length: see `docs/reference/rules.md`.
const BUDGET: usize = 1_000_000;
/// Bytes of text read for one unit.
const READ: usize = 256;
/// Bytes of text searched by a regular expression for one unit.
pub(super) const SEARCHED: usize = 32;
/// Bytes of text copied for one unit.
pub(super) const COPIED: usize = 16;

#[derive(Debug)]
pub(super) struct EvalError {
    pub(super) message: String,
    pub(super) span: Span,
}

pub(super) type EvalResult<T> = Result<T, EvalError>;
pub(super) type Operand<'a> = Cow<'a, Value>;

pub(super) fn fail<T>(span: Span, message: impl Into<String>) -> EvalResult<T> {
    Err(EvalError { message: message.into(), span })
}

/// One evaluation: the event, the scope, and the remaining budget.
pub(super) struct Evaluation<'a> {
    event: &'a str,
    pub(super) data: &'a EventData,
    pub(super) scope: &'a Scope,
    items: Vec<Operand<'a>>,
    left: usize,
}

static NULL: Value = Value::Null;

impl<'a> Evaluation<'a> {
    pub(super) fn new(event: &'a str, data: &'a EventData, scope: &'a Scope) -> Self {
        Self { event, data, scope, items: Vec::new(), left: BUDGET }
    }

    /// Takes from the budget. Once it is empty, every step fails, so that no operator can hide the failure.
    pub(super) fn spend(&mut self, units: usize, span: Span) -> EvalResult<()> {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                fail(span, "budget exceeded: the event is too large, or the expression has too many steps")
            }
        }
    }

    /// Evaluates to a boolean; `null` is false.
    pub(super) fn truth(&mut self, node: &'a Node) -> EvalResult<bool> {
        match *self.value(node)? {
            Value::Bool(truth) => Ok(truth),
            Value::Null => Ok(false),
            ref other => fail(node.span, format!("expected true or false, found {}", describe(other))),
        }
    }

    pub(super) fn value(&mut self, node: &'a Node) -> EvalResult<Operand<'a>> {
        let span = node.span;
        self.spend(1, span)?;
        Ok(match &node.kind {
            Kind::Constant(value) => Cow::Borrowed(value),
            Kind::Event => Cow::Owned(self.event.into()),
            Kind::Data => return self.all_data(span),
            Kind::Field(name) => self.data.get(name).map_or(Cow::Borrowed(&NULL), Cow::Borrowed),
            Kind::HasField(name) => truth(self.data.get(name).is_some()),
            Kind::Item(at) => return self.item(*at, span),
            Kind::Select(operand, field) => {
                let operand = self.value(operand)?;
                return select(operand, field, span);
            }
            Kind::Has(operand, field) => match &*self.value(operand)? {
                Value::Object(fields) => truth(fields.contains_key(field)),
                Value::Null => truth(false),
                other => return fail(span, format!("`has` looks into objects, not into {}", describe(other))),
            },
            Kind::Index(pair) => {
                let [operand, index] = &**pair;
                let (operand, index) = (self.value(operand)?, self.value(index)?);
                return select_at(operand, &index, span);
            }
            Kind::Not(operand) => truth(!self.truth(operand)?),
            Kind::Negate(operand) => match &*self.value(operand)? {
                Value::Number(number) => match negate(number) {
                    Ok(negated) => Cow::Owned(negated),
                    Err(message) => return fail(span, message),
                },
                other => return fail(span, format!("`-` needs a number, found {}", describe(other))),
            },
            Kind::And(pair) => truth(self.short_circuit(false, pair)?),
            Kind::Or(pair) => truth(self.short_circuit(true, pair)?),
            Kind::If(parts) => {
                let [test, then, otherwise] = &**parts;
                let part = if self.truth(test)? { then } else { otherwise };
                return self.value(part);
            }
            Kind::Binary(operator, pair) => {
                let [one, other] = &**pair;
                let (one, other) = (self.value(one)?, self.value(other)?);
                return self.binary(*operator, one, &other, span);
            }
            Kind::List(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                for node in nodes {
                    let value = self.value(node)?;
                    items.push(self.own(value, span)?);
                }
                Cow::Owned(Value::Array(items))
            }
            Kind::Map(entries) => return self.map(entries),
            Kind::Loop(repeated) => return self.repeat(repeated),
            Kind::Call(function, arguments) => return self.call(*function, arguments, span),
            Kind::Matches(text, regex) => {
                let text = self.value(text)?;
                truth(self.search(&text, regex, span)?)
            }
            Kind::SessionCount(event, tool) => return self.session_count(event, tool.as_deref(), span),
            Kind::Changes(patterns) => truth(self.changes(patterns.iter().map(String::as_str), span)?),
            Kind::PathMatches(path, _, globs) => {
                let path = self.value(path)?;
                truth(self.path_matches(&path, globs, span)?)
            }
        })
    }

    /// Evaluates `&&` and `||` as CEL does: one decisive side is enough, even if the other fails.
    fn short_circuit(&mut self, decisive: bool, pair: &'a [Node; 2]) -> EvalResult<bool> {
        let first = self.truth(&pair[0]);
        if matches!(first, Ok(first) if first == decisive) {
            return Ok(decisive);
        }
        let second = self.truth(&pair[1]);
        if matches!(second, Ok(second) if second == decisive) {
            return Ok(decisive);
        }
        first.and(second)
    }

    fn all_data(&mut self, span: Span) -> EvalResult<Operand<'a>> {
        let mut all = Map::new();
        for (key, value) in self.data.iter() {
            all.insert(key.to_owned(), self.own(Cow::Borrowed(value), span)?);
        }
        Ok(Cow::Owned(all.into()))
    }

    fn item(&mut self, at: usize, span: Span) -> EvalResult<Operand<'a>> {
        let item = match self.items.get_mut(at) {
            Some(Cow::Borrowed(value)) => return Ok(Cow::Borrowed(*value)),
            // Taken out while measured, because measuring uses the budget.
            Some(item) => std::mem::take(item),
            None => return Ok(Cow::Borrowed(&NULL)),
        };
        let copy = self.spend_copy(&item, span).map(|()| item.clone());
        self.items[at] = item;
        copy
    }

    fn map(&mut self, entries: &'a [(Node, Node)]) -> EvalResult<Operand<'a>> {
        let mut map = Map::new();
        for (key, value) in entries {
            let span = key.span;
            let key = match &*self.value(key)? {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                other => return fail(span, format!("a key is a text, not {}", describe(other))),
            };
            let value = self.value(value)?;
            map.insert(key, self.own(value, span)?);
        }
        Ok(Cow::Owned(map.into()))
    }

    fn repeat(&mut self, repeated: &'a Loop) -> EvalResult<Operand<'a>> {
        let span = repeated.range.span;
        let items: Vec<Operand<'a>> = match self.value(&repeated.range)? {
            Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
            Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
            range => match &*range {
                Value::Object(fields) => fields.keys().map(|key| Cow::Owned(key.as_str().into())).collect(),
                Value::Null => Vec::new(),
                other => return fail(span, format!("expected a list, found {}", describe(other))),
            },
        };
        self.spend(items.len(), span)?;
        match &repeated.body {
            LoopBody::All(test) => self.any(items, test, false).map(|found| truth(!found)),
            LoopBody::Exists(test) => self.any(items, test, true).map(truth),
            LoopBody::ExistsOne(test) => {
                let mut count = 0_usize;
                for item in items {
                    count += usize::from(self.with(item, |this| this.truth(test))?);
                }
                Ok(truth(count == 1))
            }
            LoopBody::Collect { filter, make } => {
                let mut made = Vec::new();
                for item in items {
                    let value = self.with(item, |this| {
                        let wanted = filter.as_ref().map_or(Ok(true), |filter| this.truth(filter))?;
                        let value = if wanted { Some(this.value(make)?) } else { None };
                        value.map(|value| this.own(value, make.span)).transpose()
                    })?;
                    made.extend(value);
                }
                Ok(Cow::Owned(Value::Array(made)))
            }
        }
    }

    /// Returns `true` if the test returns `wanted` for any item; a failure counts only if none does.
    fn any(&mut self, items: Vec<Operand<'a>>, test: &'a Node, wanted: bool) -> EvalResult<bool> {
        let mut failure = None;
        for item in items {
            match self.with(item, |this| this.truth(test)) {
                Ok(found) if found == wanted => return Ok(true),
                Ok(_) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    fn with<T>(&mut self, item: Operand<'a>, body: impl FnOnce(&mut Self) -> T) -> T {
        self.items.push(item);
        let result = body(self);
        self.items.pop();
        result
    }

    pub(super) fn own(&mut self, value: Operand<'a>, span: Span) -> EvalResult<Value> {
        if let Cow::Borrowed(value) = value {
            self.spend_copy(value, span)?;
        }
        Ok(value.into_owned())
    }

    pub(super) fn spend_copy(&mut self, value: &Value, span: Span) -> EvalResult<()> {
        match value {
            Value::String(text) => self.spend(1 + text.len() / COPIED, span),
            Value::Array(items) => {
                self.spend(1, span)?;
                items.iter().try_for_each(|item| self.spend_copy(item, span))
            }
            Value::Object(fields) => {
                self.spend(1, span)?;
                fields.iter().try_for_each(|(key, value)| {
                    self.spend(1 + key.len() / COPIED, span)?;
                    self.spend_copy(value, span)
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.spend(1, span),
        }
    }

    pub(super) fn spend_read(&mut self, text: &str, span: Span) -> EvalResult<()> {
        self.spend(text.len() / READ, span)
    }
}

pub(super) fn truth<'a>(truth: bool) -> Operand<'a> {
    Cow::Owned(truth.into())
}

fn select<'a>(operand: Operand<'a>, field: &str, span: Span) -> EvalResult<Operand<'a>> {
    let selected = match operand {
        Cow::Borrowed(Value::Object(fields)) => fields.get(field).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut fields)) => fields.remove(field).map(Cow::Owned),
        other if other.is_null() => None,
        other => return fail(span, format!("{} has no field `{field}`", describe(&other))),
    };
    Ok(selected.unwrap_or(Cow::Borrowed(&NULL)))
}

/// Returns the item of a list or the field of an object by a calculated index.
fn select_at<'a>(operand: Operand<'a>, index: &Value, span: Span) -> EvalResult<Operand<'a>> {
    let item = match (operand, index) {
        (operand, Value::String(field)) => return select(operand, field, span),
        (Cow::Borrowed(Value::Array(items)), Value::Number(at)) => {
            list_index(at).and_then(|at| items.get(at)).map(Cow::Borrowed)
        }
        (Cow::Owned(Value::Array(mut items)), Value::Number(at)) => {
            list_index(at).filter(|at| *at < items.len()).map(|at| Cow::Owned(items.swap_remove(at)))
        }
        (operand, _) if operand.is_null() || index.is_null() => None,
        (operand, index) => {
            return fail(span, format!("{} has no item for {}", describe(&operand), describe(index)));
        }
    };
    Ok(item.unwrap_or(Cow::Borrowed(&NULL)))
}

fn list_index(number: &serde_json::Number) -> Option<usize> {
    number.as_u64().and_then(|at| usize::try_from(at).ok())
}
