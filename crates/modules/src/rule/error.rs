//! Errors in rules.

use crate::condition::{ConditionError, Span};

/// An error in a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// An invalid expression or template.
    #[error("rule error: {error}\n  in `{field}`")]
    Expression {
        /// The field with the text, such as `when` or `modify.set./tool_input/path`.
        field: String,
        /// The error, with its position in the field's text.
        #[source]
        error: ConditionError,
    },
    /// An invalid value, or a field that conflicts with another.
    #[error("rule error: `{field}` {problem}")]
    Field {
        /// Name of the field.
        field: String,
        /// The cause, and what to do.
        problem: String,
    },
    /// A rule without an action or message.
    #[error("rule error: missing action: expected `deny`, `ask`, `modify`, `inject` or `message`")]
    Empty,
}

impl RuleError {
    pub(super) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    pub(super) fn expression(field: impl Into<String>) -> impl FnOnce(ConditionError) -> Self {
        let field = field.into();
        |error| Self::Expression { field, error }
    }

    /// Returns the invalid field; `None` if the error concerns the whole rule.
    pub fn field_name(&self) -> Option<&str> {
        match self {
            Self::Expression { field, .. } | Self::Field { field, .. } => Some(field),
            Self::Empty => None,
        }
    }

    /// Returns the invalid part of the field's text, if the error concerns a part.
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Expression { error, .. } => Some(error.span()),
            Self::Field { .. } | Self::Empty => None,
        }
    }
}
