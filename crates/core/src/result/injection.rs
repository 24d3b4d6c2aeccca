//! Injections.

use schemars::JsonSchema;

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
    /// The text.
    pub text: String,
    /// The role.
    pub role: Role,
    /// The position and lifetime.
    pub placement: Placement,
}

words! {
    /// The role of a message.
    #[derive(Default, JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageRole))]
    pub enum Role("role") {
        /// The environment; fits nearly every injection.
        #[default]
        System = "system",
        /// The user.
        User = "user",
        /// The agent itself.
        Assistant = "assistant",
    }
}

words! {
    /// The position and lifetime of an injection.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Placement("placement") {
        /// In the stored history.
        #[default]
        History = "history",
        /// In the next call to the model only.
        NextCall = "next_call",
        /// In the next call only, at the end of the last tool's result.
        LastToolResult = "last_tool_result",
    }
}

impl Placement {
    /// Returns `true` if the injection is part of the next call only.
    pub fn is_ephemeral(self) -> bool {
        self != Self::History
    }
}

impl Injection {
    /// Creates an injection with the role `system` that stays in the history.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), role: Role::default(), placement: Placement::default() }
    }

    /// Sets the role.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Adds it to the next call to the model only.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.placement = Placement::NextCall;
        self
    }

    /// Adds it to the next call to the model only, at the end of the last tool's result.
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
