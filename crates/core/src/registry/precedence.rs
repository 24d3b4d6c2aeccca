//! The decision of an emission, and the precedence among the decisions of its hooks.

use std::fmt;
use std::sync::Arc;

use crate::result::DecisionKind;

/// The decision on the operation: `deny > ask_user > inject_context > modify > continue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The operation proceeds.
    Continue,
    /// The operation proceeds with changed data.
    Modify,
    /// The operation proceeds, and text is added to the conversation.
    InjectContext,
    /// The operation proceeds if an approver agrees.
    AskUser,
    /// The operation is denied.
    Deny(Box<Denial>),
}

/// A denial, with its source and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The hook.
    pub by: Arc<str>,
    /// The reason.
    pub reason: Option<String>,
}

impl Denial {
    /// The text for a missing reason.
    pub const NO_REASON: &str = "no reason given";

    /// Returns the reason, or the text for a missing one.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(Self::NO_REASON)
    }
}

/// The text that the agent reads as the result of a denied operation.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denied by hook {}: {}", self.by, self.reason())
    }
}

impl Decision {
    /// Replaces the decision with another one that takes precedence. Of two equal ones, the first stays.
    pub(super) fn raise(&mut self, other: Self) {
        if other.precedence() > self.precedence() {
            *self = other;
        }
    }

    fn precedence(&self) -> u8 {
        match self {
            Self::Continue => 0,
            Self::Modify => 1,
            Self::InjectContext => 2,
            Self::AskUser => 3,
            Self::Deny(_) => 4,
        }
    }

    /// Returns the denial, if there is one.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Deny(denial) => Some(denial),
            _ => None,
        }
    }

    /// Returns the decision without its denial.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Continue => DecisionKind::Continue,
            Self::Modify => DecisionKind::Modify,
            Self::InjectContext => DecisionKind::InjectContext,
            Self::AskUser => DecisionKind::AskUser,
            Self::Deny(_) => DecisionKind::Deny,
        }
    }

    /// Returns the word of its kind.
    pub fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }
}
