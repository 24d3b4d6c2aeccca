//! Errors in expressions, with their positions.

use std::fmt;

/// A part of a source text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub offset: usize,
    /// Length.
    pub length: usize,
}

impl Span {
    pub(crate) fn new(offset: usize, length: usize) -> Self {
        Self { offset, length }
    }

    /// Returns the span in a text that contains the source at a later offset.
    pub(crate) fn shifted(self, by: usize) -> Self {
        Self { offset: self.offset + by, ..self }
    }
}

/// An invalid expression or template. The text shows the line and marks the position.
///
/// ```
/// use amplifier_modules::Condition;
///
/// let error = Condition::compile("tool_nam == 'Bash'").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "unknown name `tool_nam` at column 1: did you mean `tool_name`?\n  tool_nam == 'Bash'\n  ^^^^^^^^",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    message: String,
    help: Option<String>,
    source: String,
    span: Span,
}

impl ConditionError {
    pub(crate) fn new(source: &str, span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, source: source.to_owned(), span }
    }

    pub(crate) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// Converts the error to a text that contains the source at this offset.
    pub(crate) fn within(mut self, text: &str, offset: usize) -> Self {
        self.source = text.to_owned();
        self.span = self.span.shifted(offset);
        self
    }

    /// Returns the message without the position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns a suggestion, if there is one.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the whole text of the expression or template.
    pub(crate) fn source_text(&self) -> &str {
        &self.source
    }

    /// Returns the invalid part of the source.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.line().1 + 1
    }

    /// Returns the line of the invalid part, and the number of characters before it.
    fn line(&self) -> (&str, usize) {
        let offset = self.source.floor_char_boundary(self.span.offset);
        let (before, after) = self.source.split_at(offset);
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(self.source.len(), |at| offset + at);
        (&self.source[begin..end], self.source[begin..offset].chars().count())
    }
}

impl ConditionError {
    /// Returns the message in one line, with the invalid part: for records and tables.
    pub(crate) fn in_one_line(&self) -> String {
        let part = self.source.get(self.span.offset..self.span.offset + self.span.length).unwrap_or_default();
        let shown = if part.len() < 4 { self.line().0 } else { part };
        let shown: Vec<&str> = shown.split_whitespace().collect();
        let shown: String = shown.join(" ").chars().filter(|c| !c.is_control()).take(2 * SHOWN).collect();
        let at = format!("{} at column {}", self.message, self.column());
        if shown.is_empty() { at } else { format!("{at}, in `{shown}`") }
    }
}

/// Number of characters shown before and after the position.
const SHOWN: usize = 60;

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, before) = self.line();
        write!(f, "{} at column {}", self.message, before + 1)?;
        if let Some(help) = &self.help {
            write!(f, ": {help}")?;
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        let skipped = before.saturating_sub(SHOWN);
        // One character for each, so that the caret stays below its position.
        let shown = line.chars().skip(skipped).take(2 * SHOWN).map(|c| if c.is_control() { ' ' } else { c });
        let length = self.source.get(self.span.offset..self.span.offset + self.span.length);
        let length = length.map_or(1, |part| part.lines().next().unwrap_or_default().chars().count());
        let carets = "^".repeat(length.clamp(1, SHOWN));
        write!(f, "\n  {}\n  {}{carets}", shown.collect::<String>(), " ".repeat(before - skipped))
    }
}

impl std::error::Error for ConditionError {}
