//! What a session sets for its coordinator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits and policies of a session. The defaults are safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// The longest injection, in characters; none means no limit. A longer one is refused.
    pub injection_size_limit: Option<usize>,
    /// How many tokens hooks may inject in one turn; none means no limit.
    pub injection_budget_per_turn: Option<usize>,
    /// What happens to an injection beyond the budget.
    pub over_budget: OverBudget,
    /// Whether hooks may not have operations run because nobody answered.
    pub forbid_default_allow: bool,
    /// Whether gated operations are denied when they cannot be recorded.
    pub audit_required: bool,
}

/// What happens to an injection beyond the budget of its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverBudget {
    /// It is injected, and the person is warned.
    #[default]
    Warn,
    /// It is dropped, and the person is warned.
    Drop,
    /// It is cut to what is left of the budget, and the person is warned.
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
