//! What is wrong with a rule.

use crate::condition::{ConditionError, Span};

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// An expression or a template is wrong.
    #[error("rule error: {error}\n  in `{field}`")]
    Expression {
        /// The field that holds it, such as `when` or `modify.set./tool_input/path`.
        field: String,
        /// What is wrong, and where in the field's text.
        #[source]
        error: ConditionError,
    },
    /// A field has a value that makes no sense, or stands beside one that it does not go with.
    #[error("rule error: `{field}` {problem}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The rule answers nothing.
    #[error("rule error: the rule does nothing: give it `deny`, `ask`, `modify`, `inject` or `message`")]
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

    /// The field that is wrong, unless it is all of the rule.
    pub fn field_name(&self) -> Option<&str> {
        match self {
            Self::Expression { field, .. } | Self::Field { field, .. } => Some(field),
            Self::Empty => None,
        }
    }

    /// The part of the field's text that is wrong, if only a part is.
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Expression { error, .. } => Some(error.span()),
            Self::Field { .. } | Self::Empty => None,
        }
    }
}
