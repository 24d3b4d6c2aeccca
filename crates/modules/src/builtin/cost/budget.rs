//! Budgets of sessions.

use schemars::JsonSchema;
use serde::Deserialize;

use super::SessionUsage;
use super::price::amount;

/// Budget of a session. Each step has a limit in money, in tokens, or both.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CostBudget {
    /// Limits that show the user a warning, once.
    warn: Limits,
    /// Limits that request approval before each further call to the model.
    ask: Limits,
    /// Limits that deny all further calls to the model.
    deny: Limits,
}

/// Limits; the first that is reached applies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// Amount of money, in the currency of the prices.
    money: Option<f64>,
    /// Number of tokens read and written.
    tokens: Option<u64>,
}

#[derive(Clone, Copy)]
pub(super) enum BudgetStep {
    Warn,
    Ask,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReachedLimit {
    Money(f64),
    Tokens(u64),
}

impl ReachedLimit {
    pub(super) fn describe(self, currency: &str) -> String {
        match self {
            Self::Money(money) => amount(money, currency),
            Self::Tokens(tokens) => format!("{tokens} tokens"),
        }
    }
}

impl CostBudget {
    /// Checks that the limits are valid and that each step comes after the previous one.
    pub(super) fn check(&self, has_prices: bool) -> Result<(), String> {
        let steps = [("warn", &self.warn), ("ask", &self.ask), ("deny", &self.deny)];
        if steps.iter().all(|(_, limits)| limits.money.is_none() && limits.tokens.is_none()) {
            return Err("`budget` has no limit: give `warn`, `ask` or `deny`, each with `money` or `tokens`".to_owned());
        }
        let wrong = |money: &f64| !money.is_finite() || *money <= 0.0;
        for (step, limits) in steps {
            if limits.money.as_ref().is_some_and(wrong) || limits.tokens == Some(0) {
                return Err(format!("invalid limit in `budget.{step}`; give a number above zero"));
            }
        }
        if self.is_in_money() && !has_prices {
            return Err("a `budget` in `money` needs `prices`".to_owned());
        }
        let tokens = steps.map(|(step, limits)| (step, limits.tokens.map(|tokens| tokens as f64)));
        for limits in [steps.map(|(step, limits)| (step, limits.money)), tokens] {
            let given: Vec<(&str, f64)> = limits.iter().filter_map(|(step, limit)| Some((*step, (*limit)?))).collect();
            if let Some([(first, _), (second, _)]) = given.array_windows().find(|[one, next]| one.1 > next.1) {
                return Err(format!("`budget.{first}` is above `budget.{second}`, so it would never be reached"));
            }
        }
        Ok(())
    }

    pub(super) fn is_in_money(&self) -> bool {
        [&self.warn, &self.ask, &self.deny].iter().any(|limits| limits.money.is_some())
    }

    pub(super) fn reached_limit(&self, step: BudgetStep, spent: &SessionUsage) -> Option<ReachedLimit> {
        let limits = match step {
            BudgetStep::Warn => &self.warn,
            BudgetStep::Ask => &self.ask,
            BudgetStep::Deny => &self.deny,
        };
        let money = limits.money.filter(|limit| spent.money >= *limit).map(ReachedLimit::Money);
        let tokens = limits.tokens.filter(|limit| spent.usage.tokens() >= *limit).map(ReachedLimit::Tokens);
        money.or(tokens)
    }
}
