//! Text templates with expressions.

use std::fmt;

use amplifier_core::{EventData, HookError, text};
use serde_json::Value;

use crate::condition::{Condition, ConditionError, Scope, Span, outside_strings};

const MAX_SHOWN: usize = 2_000;

/// Text with expressions between `{{` and `}}`, for messages to people and models.
///
/// An expression is CEL, as in a [`Condition`]. A text result is inserted as it is, everything else as JSON. Control characters are removed, and text
/// after 2,000 characters is replaced by `…`. `{{ '{{' }}` inserts two braces.
///
/// ```
/// use amplifier_core::data;
/// use amplifier_modules::{Scope, Template};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let template = Template::compile("Allow {{ tool_name }} to write {{ size(tool_input.content) }} characters?")?;
/// let data = data! { "tool_name": "Write", "tool_input": { "content": "hello" } };
/// let text = template.render("tool:pre", &data, &Scope::new(".")?);
/// assert_eq!(text, Ok("Allow Write to write 5 characters?".to_owned()));
/// # Ok(()) }
/// ```
pub struct Template {
    parts: Vec<TemplatePart>,
}

enum TemplatePart {
    Text(String),
    /// An expression, and its offset in the text.
    Expression(Condition, usize),
}

impl Template {
    /// Parses the text, and checks every expression in it.
    ///
    /// # Errors
    /// If the text or an expression is invalid, with the position in the text.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        let mut parts = Vec::new();
        let mut rest = 0;
        while let Some(open) = text[rest..].find("{{").map(|at| rest + at) {
            if open > rest {
                parts.push(TemplatePart::Text(text[rest..open].to_owned()));
            }
            let begin = open + 2;
            let Some(length) = expression_length(&text[begin..]) else {
                let error = ConditionError::new(text, Span::new(open, 2), "this `{{` is never closed");
                return Err(error.with_help(Some("end the expression with `}}`, or write `{{ '{{' }}`".into())));
            };
            let expression = Condition::compile(&text[begin..begin + length]);
            parts.push(TemplatePart::Expression(expression.map_err(|error| error.within(text, begin))?, begin));
            rest = begin + length + 2;
        }
        if rest < text.len() {
            parts.push(TemplatePart::Text(text[rest..].to_owned()));
        }
        Ok(Self { parts })
    }

    /// Returns the expressions with their offsets in the text.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = (&Condition, usize)> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Expression(expression, begin) => Some((expression, *begin)),
        })
    }

    pub(crate) fn counted_events(&self) -> impl Iterator<Item = &String> {
        self.expressions().flat_map(|(expression, _)| expression.counted_events())
    }

    /// Renders readable text for an event.
    ///
    /// # Errors
    /// If an expression cannot be evaluated.
    pub fn render(&self, event: &str, data: &EventData, scope: &Scope) -> Result<String, HookError> {
        self.write(event, data, scope, show)
    }

    /// Returns the complete value for an event. A template of one expression keeps the type of its value.
    ///
    /// # Errors
    /// If an expression cannot be evaluated.
    pub fn value(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Value, HookError> {
        if let [TemplatePart::Expression(expression, _)] = self.parts.as_slice() {
            return expression.value(event, data, scope);
        }
        self.write(event, data, scope, |value, text| text.push_str(&plain(value))).map(Value::String)
    }

    fn write(
        &self,
        event: &str,
        data: &EventData,
        scope: &Scope,
        put: impl Fn(Value, &mut String),
    ) -> Result<String, HookError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(part) => text.push_str(part),
                TemplatePart::Expression(expression, _) => put(expression.value(event, data, scope)?, &mut text),
            }
        }
        Ok(text)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text as &dyn fmt::Debug,
            TemplatePart::Expression(expression, _) => expression,
        });
        f.debug_list().entries(parts).finish()
    }
}

/// Returns the length of the expression at the start of the text: up to the braces that close none of its own.
fn expression_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = outside_strings(text).peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' if bytes.peek() == Some(&(at + 1, b'}')) => return Some(at),
            _ => {}
        }
    }
    None
}

fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn show(value: Value, text: &mut String) {
    let value = plain(value);
    let mut readable = value.chars().filter(|c| is_readable(*c));
    text.extend(readable.by_ref().take(MAX_SHOWN));
    if readable.next().is_some() {
        text.push('…');
    }
}

/// `true` for characters that are safe to show: no control characters except line breaks and tabs, and none that change the text direction, because
/// users must approve exactly the text that they read.
pub(crate) fn is_readable(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !turns && text::is_readable(c)
}
