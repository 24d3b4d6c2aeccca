//! `hooks-cost`: usage of a session, and a budget.

mod budget;
mod price;

use std::sync::Arc;

use amplifier_core::{Approval, CallCost, EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use self::budget::{BudgetStep, CostBudget};
use self::price::{Price, Prices, TokenUsage};
use super::shared::session_tree::SessionTree;
use super::shared::settings::seconds;
use super::{GUARDS, ModuleContext, ModuleHook, options};

/// Options of `hooks-cost`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Prices of models; the first entry with a matching `model` applies. For models without a price, only tokens are counted.
    prices: Vec<Price>,
    /// Currency of the prices.
    currency: String,
    /// Budget of a session, including its sub-agents.
    budget: Option<CostBudget>,
    /// Show the usage at the end of a session.
    summary: bool,
    /// Time limit for an approval, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { prices: Vec::new(), currency: "USD".to_owned(), budget: None, summary: true, timeout: 300.0 }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { prices, currency, budget, summary, timeout } = options(config)?;
    if let Some(budget) = &budget {
        budget.check(!prices.is_empty())?;
    }
    let cost = Arc::new(Cost {
        prices: Prices::new(prices)?,
        currency,
        budget,
        summary,
        timeout: seconds("timeout", timeout)?,
        sessions: context.host.module_state(context.who),
    });
    let mut parts =
        vec![ModuleHook::observer(&["session:start", "provider:response", "session:end"], UsageCounter(cost.clone()))];
    if cost.budget.is_some() {
        parts.push(ModuleHook::guard(&["provider:request"], BudgetGuard(cost)).priority(GUARDS));
    }
    Ok(parts)
}

struct Cost {
    prices: Prices,
    currency: String,
    budget: Option<CostBudget>,
    summary: bool,
    timeout: std::time::Duration,
    sessions: Arc<SessionTree<SessionUsage>>,
}

/// Usage of a session, including its sub-agents.
#[derive(Clone, Debug, Default, PartialEq)]
struct SessionUsage {
    calls: u64,
    usage: TokenUsage,
    /// Cost of the calls with a known price.
    money: f64,
    unpriced: Option<String>,
    /// `true` if a provider did not report the usage of a call.
    is_uncounted: bool,
    is_warned: bool,
}

/// Counts usage. An observer, so that streaming is not delayed.
struct UsageCounter(Arc<Cost>);

impl Hook for UsageCounter {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let cost = &*self.0;
        match event {
            "session:start" => cost.sessions.begin(data),
            "session:end" => {
                let spent = cost.sessions.end(data).filter(|spent| cost.summary && spent.calls > 0);
                return Ok(
                    spent.map_or_else(HookResult::proceed, |spent| HookResult::proceed().info(cost.summary_of(&spent)))
                );
            }
            _ => return Ok(cost.count(data)),
        }
        Ok(HookResult::proceed())
    }
}

struct BudgetGuard(Arc<Cost>);

impl Hook for BudgetGuard {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let cost = &*self.0;
        let Some(budget) = &cost.budget else { return Ok(HookResult::proceed()) };
        let spent = cost.sessions.with(data, |spent| spent.clone());
        if let Some(limit) = budget.reached_limit(BudgetStep::Deny, &spent) {
            let (limit, used) = (limit.describe(&cost.currency), cost.summary_of(&spent));
            return Ok(HookResult::deny(format!("the session has reached its limit of {limit}: {used}")));
        }
        // An approval rule is remembered by the prompt, so the usage is part of the reason, not of the prompt.
        let question = if let Some(limit) = budget.reached_limit(BudgetStep::Ask, &spent) {
            format!("The session has reached {} of its budget. Go on?", limit.describe(&cost.currency))
        } else if spent.is_uncounted {
            "The provider does not report token usage, so the budget cannot be enforced. Go on?".to_owned()
        } else if let Some(model) = cost.unpriced(budget, data) {
            format!("The price of `{model}` is unknown, so the budget cannot be enforced. Go on?")
        } else {
            return Ok(HookResult::proceed());
        };
        let approval = Approval::new(question).options(["Allow once", "Allow always", "Deny"]).timeout(cost.timeout);
        Ok(HookResult::ask(approval).because(cost.summary_of(&spent)))
    }
}

impl Cost {
    fn count(&self, data: &EventData) -> HookResult {
        let model = data.text("model").unwrap_or_default();
        let usage = TokenUsage::parse(&data["usage"]);
        let price = self.prices.for_model(model);
        let cost = usage.zip(price).and_then(|(usage, price)| CallCost::new(usage.cost(price), &self.currency));
        let limit = self.sessions.with(data, |spent| {
            spent.calls += 1;
            match (usage, price) {
                (None, _) => spent.is_uncounted = true,
                (Some(usage), price) => {
                    spent.usage.add(&usage);
                    match price {
                        Some(price) => spent.money += usage.cost(price),
                        None => spent.unpriced = Some(model.to_owned()),
                    }
                }
            }
            let limit = self.budget.as_ref().and_then(|budget| budget.reached_limit(BudgetStep::Warn, spent));
            let limit = limit.filter(|_| !spent.is_warned);
            spent.is_warned |= limit.is_some();
            limit.map(|limit| (limit, spent.clone()))
        });
        // The record keeps the reason, and the console sums it.
        let counted = match cost {
            Some(cost) => HookResult::proceed().because(cost.to_string()),
            None => HookResult::proceed(),
        };
        match limit {
            Some((limit, spent)) => {
                let limit = limit.describe(&self.currency);
                counted.warning(format!("the session has reached {limit}: {}", self.summary_of(&spent)))
            }
            None => counted,
        }
    }

    /// Returns the model of the next call if the budget has limits in money and the model has no price.
    fn unpriced<'a>(&self, budget: &CostBudget, data: &'a EventData) -> Option<&'a str> {
        let model = data.text("model").unwrap_or_default();
        (budget.is_in_money() && self.prices.for_model(model).is_none()).then_some(model)
    }

    fn summary_of(&self, spent: &SessionUsage) -> String {
        let SessionUsage { calls, usage, money, unpriced, is_uncounted, .. } = spent;
        let times = if *calls == 1 { "call" } else { "calls" };
        let mut summary = format!(
            "{} tokens in {calls} {times} ({} read, {} written)",
            usage.tokens(),
            usage.input_tokens,
            usage.output_tokens
        );
        if self.prices.are_given() {
            summary.push_str(&format!(", {}", price::amount(*money, &self.currency)));
        }
        if let Some(model) = unpriced.as_ref().filter(|_| self.prices.are_given()) {
            summary.push_str(&format!(", without `{model}`, whose price is unknown"));
        }
        if *is_uncounted {
            summary.push_str("; the provider did not report the usage of every call");
        }
        summary
    }
}
