//! Conditions: expressions in CEL about one event.
//!
//! The grammar and its macros are those of the `cel` crate. Evaluation happens here, directly on the event's JSON: values are copied only when
//! needed, a missing field is `null`, and every evaluation has a budget. `docs/reference/rules.md` describes the language.

mod binary;
mod changes;
mod check;
mod error;
mod evaluate;
mod functions;
mod lower;
mod node;
mod operators;
mod overlap;
mod parse;
mod path;
mod scope;
mod suggest;
mod syntax_error;

use std::collections::BTreeSet;
use std::fmt;

use amplifier_core::{EventData, HookError};
use serde_json::Value;

pub(crate) use self::check::{CheckContext, Facts, Finding, matches_no_tool, pattern_problem, tool_name_mistake};
pub use self::error::{ConditionError, Span};
pub(crate) use self::parse::outside_strings;
pub(crate) use self::path::globs;
pub(crate) use self::scope::resolve_path;
pub use self::scope::{Scope, ShellAnalysis};
pub(crate) use self::suggest::{did_you_mean, known_as, nearest_field, suggestion};

use self::evaluate::Evaluation;
use self::node::Node;

/// A condition about an event: a CEL expression, parsed and checked.
///
/// ```
/// use amplifier_core::data;
/// use amplifier_modules::{Condition, Scope};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let condition = Condition::compile("tool_name in ['Write', 'Edit'] && !in_workspace(tool_input.file_path)")?;
/// let scope = Scope::new(".")?;
///
/// let data = data! { "tool_name": "Write", "tool_input": { "file_path": "../../etc/passwd" } };
/// assert_eq!(condition.holds("tool:pre", &data, &scope), Ok(true));
/// # Ok(()) }
/// ```
pub struct Condition {
    source: String,
    node: Node,
    counted: BTreeSet<String>,
}

impl Condition {
    /// Parses an expression and checks every name in it.
    ///
    /// # Errors
    /// If the expression is invalid, with the position and a similar known name.
    pub fn compile(source: &str) -> Result<Self, ConditionError> {
        let (node, counted) = parse::parse(source)?;
        Ok(Self { node, counted, source: source.to_owned() })
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn counted_events(&self) -> &BTreeSet<String> {
        &self.counted
    }

    /// Returns `true` if the condition holds for an event; `null` counts as false.
    ///
    /// # Errors
    /// If an operation does not fit its values, as in `1 < 'a'`, if the result is neither true nor false, or if the budget is used up.
    pub fn holds(&self, event: &str, data: &EventData, scope: &Scope) -> Result<bool, HookError> {
        let mut evaluation = Evaluation::new(event, data, scope);
        let holds = evaluation.truth(&self.node);
        holds.map_err(|failure| self.failed(failure))
    }

    pub(crate) fn value(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Value, HookError> {
        let mut evaluation = Evaluation::new(event, data, scope);
        let value = evaluation.value(&self.node).and_then(|value| evaluation.own(value, self.node.span));
        value.map_err(|failure| self.failed(failure))
    }

    /// Checks the expression for the events of its hook. Returns the findings, and what is known about the event when the expression is true.
    pub(crate) fn check(&self, context: &CheckContext<'_>, facts: &Facts, is_condition: bool) -> (Vec<Finding>, Facts) {
        check::check(&self.node, &self.source, context, facts, is_condition)
    }

    // Without the event's values: errors are logged, and values may be secret.
    fn failed(&self, failure: evaluate::EvalError) -> HookError {
        let error = ConditionError::new(&self.source, failure.span, failure.message);
        HookError::failed(format!("the expression cannot be evaluated: {}", error.in_one_line()))
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}
