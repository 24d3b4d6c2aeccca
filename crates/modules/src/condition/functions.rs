//! The functions of the language.

use std::borrow::Cow;

use globset::GlobSet;
use jiff::Zoned;
use jiff::civil::Weekday;
use regex::Regex;
use serde_json::Value;

use super::changes::ChangedPaths;
use super::error::Span;
use super::evaluate::{COPIED, EvalResult, Evaluation, Operand, SEARCHED, fail, truth};
use super::lower::{regex, texts};
use super::node::{Function, Node};
use super::operators::describe;
use super::overlap;
use super::path::{self, MAX_PATTERN};
use crate::counters::{BEGIN, TURN};

/// Cost of a file system access, of compiling a pattern, or of analysing a command.
const EXPENSIVE: usize = 5_000;

impl<'a> Evaluation<'a> {
    pub(super) fn call(&mut self, function: Function, nodes: &'a [Node], span: Span) -> EvalResult<Operand<'a>> {
        let mut arguments = Vec::with_capacity(nodes.len());
        for node in nodes {
            arguments.push(self.value(node)?);
        }
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().unwrap_or_default();
        let (one, other) = (next(), next());
        Ok(match function {
            Function::Changes => {
                let globs = texts(&one).or_else(|message| fail(span, message))?;
                globs
                    .iter()
                    .try_for_each(|glob| overlap::check(glob))
                    .or_else(|_| fail(span, "invalid path patterns"))?;
                truth(self.changes(globs.into_iter(), span)?)
            }
            Function::Contains => {
                truth(self.texts(&one, &other, span)?.is_some_and(|(one, other)| one.contains(other)))
            }
            Function::StartsWith => {
                truth(self.texts(&one, &other, span)?.is_some_and(|(one, other)| one.starts_with(other)))
            }
            Function::EndsWith => {
                truth(self.texts(&one, &other, span)?.is_some_and(|(one, other)| one.ends_with(other)))
            }
            Function::LowerAscii => match text(&one, span)? {
                Some(text) => {
                    self.spend(text.len() / COPIED, span)?;
                    Cow::Owned(text.to_ascii_lowercase().into())
                }
                None => one,
            },
            Function::Size => match &*one {
                Value::String(text) => {
                    self.spend_read(text, span)?;
                    Cow::Owned(text.chars().count().into())
                }
                Value::Array(items) => Cow::Owned(items.len().into()),
                Value::Object(fields) => Cow::Owned(fields.len().into()),
                Value::Null => Cow::Owned(0.into()),
                other => return fail(span, format!("`size` does not work with {}", describe(other))),
            },
            Function::String => match &*one {
                Value::String(_) => one,
                other => {
                    self.spend_copy(other, span)?;
                    Cow::Owned(other.to_string().into())
                }
            },
            Function::Int => return whole(one, span),
            Function::Matches => {
                let Some(pattern) = text(&other, span)? else { return Ok(truth(false)) };
                self.spend(EXPENSIVE, span)?;
                if pattern.len() > MAX_PATTERN {
                    return fail(span, format!("the pattern is longer than {MAX_PATTERN} bytes"));
                }
                // The error would repeat a pattern that may come from the event.
                let regex = regex(pattern).or_else(|_| fail(span, "invalid regular expression"))?;
                truth(self.search(&one, &regex, span)?)
            }
            Function::PathMatches => {
                self.spend(EXPENSIVE, span)?;
                let globs = texts(&other).and_then(path::globs);
                let globs = globs.or_else(|_| fail(span, "invalid path patterns"))?;
                truth(self.path_matches(&one, &globs, span)?)
            }
            Function::InWorkspace => match text(&one, span)? {
                Some(path) => {
                    self.spend(EXPENSIVE, span)?;
                    truth(path::is_inside(self.scope, path).or_else(|message| fail(span, message))?)
                }
                None => truth(false),
            },
            Function::HasSecret => truth(self.has_secret(&one, span)?),
            Function::Shell => {
                let Some(command) = text(&one, span)? else { return Ok(Cow::Owned(Value::Null)) };
                self.spend(EXPENSIVE + command.len(), span)?;
                let analyse = self.scope.shell;
                Cow::Owned(analyse(command))
            }
            Function::Date => Cow::Owned(self.now(span)?.date().to_string().into()),
            Function::Hour => Cow::Owned(self.now(span)?.hour().into()),
            Function::Minute => Cow::Owned(self.now(span)?.minute().into()),
            Function::Weekday => Cow::Owned(name_of(self.now(span)?.weekday()).into()),
            Function::Turn => {
                self.require_counted(TURN, span)?;
                Cow::Owned(self.scope.counts.turn(self.data).into())
            }
            Function::SessionMinutes => {
                self.require_counted(BEGIN, span)?;
                Cow::Owned(self.scope.counts.minutes(self.data, self.scope.timer().wall()).into())
            }
            // Lowered to `Kind::SessionCount`.
            Function::SessionCount => return fail(span, "the event has to be written out"),
            Function::Workspace => Cow::Owned(self.scope.workspace().to_string_lossy().into()),
        })
    }

    pub(super) fn session_count(&mut self, event: &str, tool: Option<&'a Node>, span: Span) -> EvalResult<Operand<'a>> {
        self.require_counted(event, span)?;
        let counts = &self.scope.counts;
        let count = match tool {
            None => counts.count(self.data, event),
            Some(tool) => {
                let name = self.value(tool)?;
                text(&name, tool.span)?.map_or(0, |name| counts.tool_count(self.data, event, name))
            }
        };
        Ok(Cow::Owned(count.into()))
    }

    /// Fails if an event is not counted: a zero would disable rules with limits.
    fn require_counted(&self, event: &str, span: Span) -> EvalResult<()> {
        match self.scope.counts.is_counted(event) {
            true => Ok(()),
            false => fail(span, format!("event `{event}` is not counted")),
        }
    }

    fn now(&self, span: Span) -> EvalResult<Zoned> {
        self.scope.now().map_or_else(|| fail(span, "the clock shows no time"), Ok)
    }

    pub(super) fn search(&mut self, searched: &Value, regex: &Regex, span: Span) -> EvalResult<bool> {
        let Some(text) = text(searched, span)? else { return Ok(false) };
        self.spend(text.len() / SEARCHED, span)?;
        Ok(regex.is_match(text))
    }

    pub(super) fn path_matches(&mut self, path: &Value, globs: &GlobSet, span: Span) -> EvalResult<bool> {
        let Some(path) = text(path, span)? else { return Ok(false) };
        self.spend(EXPENSIVE, span)?;
        path::matches(self.scope, path, globs).or_else(|message| fail(span, message))
    }

    pub(super) fn changes<'g>(&mut self, globs: impl Iterator<Item = &'g str>, span: Span) -> EvalResult<bool> {
        let command = self.data.text_at("/tool_input/command").map_or(0, str::len);
        self.spend(EXPENSIVE + command, span)?;
        Ok(ChangedPaths::new(globs, self.scope).may_be_changed_by(self.data))
    }

    fn has_secret(&mut self, value: &Value, span: Span) -> EvalResult<bool> {
        self.spend_copy(value, span)?;
        let mut redacted = value.clone();
        self.scope.redact(&mut redacted);
        Ok(redacted != *value)
    }

    /// Returns two texts; `None` if one is missing.
    fn texts<'v>(&mut self, one: &'v Value, other: &'v Value, span: Span) -> EvalResult<Option<(&'v str, &'v str)>> {
        let (Some(one), Some(other)) = (text(one, span)?, text(other, span)?) else { return Ok(None) };
        self.spend_read(one, span)?;
        Ok(Some((one, other)))
    }
}

fn text(value: &Value, span: Span) -> EvalResult<Option<&str>> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        other => fail(span, format!("expected text, found {}", describe(other))),
    }
}

fn whole(value: Operand<'_>, span: Span) -> EvalResult<Operand<'_>> {
    let number: Option<i64> = match &*value {
        Value::Number(number) if number.is_i64() || number.is_u64() => return Ok(value),
        // Doubles beyond 2^53 are not exact whole numbers.
        Value::Number(number) => number.as_f64().filter(|it| it.abs() <= (1_u64 << 53) as f64).map(|it| it as i64),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null => return Ok(value),
        _ => None,
    };
    match number {
        Some(number) => Ok(Cow::Owned(number.into())),
        None => fail(span, format!("{} is not a whole number", describe(&value))),
    }
}

pub(super) fn name_of(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "monday",
        Weekday::Tuesday => "tuesday",
        Weekday::Wednesday => "wednesday",
        Weekday::Thursday => "thursday",
        Weekday::Friday => "friday",
        Weekday::Saturday => "saturday",
        Weekday::Sunday => "sunday",
    }
}
