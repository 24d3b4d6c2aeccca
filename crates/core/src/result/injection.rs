//! What a hook tells the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// Text for the agent's conversation.
///
/// ```
/// use amplifier_core::{Injection, Placement, Role};
///
/// let reminder = Injection::new("3 todos left").ephemeral();
/// assert_eq!(reminder.role, Role::System);
/// assert_eq!(reminder.placement, Placement::NextCall);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// What to tell.
    pub text: String,
    /// As whom.
    pub role: Role,
    /// Where it lands.
    pub placement: Placement,
}

/// As whom a message speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageRole))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The environment; right for nearly every injection.
    #[default]
    System,
    /// The person.
    User,
    /// The agent itself.
    Assistant,
}

/// Where an injection lands, and how long it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In the stored history.
    #[default]
    History,
    /// In the next call to the model only.
    NextCall,
    /// In the next call only, at the end of the last tool's result.
    LastToolResult,
}

impl Placement {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::NextCall => "next_call",
            Self::LastToolResult => "last_tool_result",
        }
    }

    /// Whether it is part of the next call only.
    pub fn is_ephemeral(self) -> bool {
        self != Self::History
    }
}

impl Role {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl Injection {
    /// An injection that stays in the history and speaks as the system.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), role: Role::default(), placement: Placement::default() }
    }

    /// Speaks as someone else.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Shows it to the next call of the model only.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.placement = Placement::NextCall;
        self
    }

    /// Shows it to the next call of the model only, at the end of the last tool's result.
    #[must_use]
    pub fn append_to_last_tool_result(mut self) -> Self {
        self.placement = Placement::LastToolResult;
        self
    }
}

impl<T: Into<String>> From<T> for Injection {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

words! {
    /// The status of an injection after the session's limits were applied.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum InjectionStatus("status of an injection") {
        /// Added to the conversation.
        Injected = "injected",
        /// Added although the budget of the turn is used up.
        OverBudget = "over_budget",
        /// Shortened to what was left of the budget.
        Truncated = "truncated",
        /// Dropped: the budget of the turn is used up.
        Dropped = "dropped",
        /// Refused: larger than the session allows.
        Refused = "refused",
        /// Dropped: the session has no context manager.
        NoContext = "no_context",
    }
}
