//! Session settings of a coordinator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits and policies of a session. The defaults are safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// The longest injection, in characters; `None` for no limit. A longer one is refused.
    pub injection_size_limit: Option<usize>,
    /// The number of tokens that hooks may inject in one turn; `None` for no limit.
    pub injection_budget_per_turn: Option<usize>,
    /// The treatment of an injection beyond the budget.
    pub over_budget: OverBudget,
    /// `true` if an approval request is never granted by its default.
    pub forbid_default_allow: bool,
    /// `true` if gated operations are denied when they cannot be recorded.
    pub audit_required: bool,
}

/// The treatment of an injection beyond the budget of its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverBudget {
    /// Inject, and warn the user.
    #[default]
    Warn,
    /// Drop, and warn the user.
    Drop,
    /// Truncate to the rest of the budget, and warn the user.
    Truncate,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            injection_size_limit: Some(10_240),
            injection_budget_per_turn: Some(10_000),
            over_budget: OverBudget::default(),
            forbid_default_allow: false,
            audit_required: false,
        }
    }
}
