//! `hooks-cost`: what a session uses, and a budget for it.

mod budget;
mod price;

use std::sync::Arc;

use amplifier_core::{Approval, EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use self::budget::{Budget, Step};
use self::price::{Price, Prices, Usage};
use super::families::Families;
use super::settings::seconds;
use super::{GUARDS, Part, Place, options};

/// What can be said about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// What models cost; the first entry whose `model` matches counts. Of other models only tokens are counted.
    prices: Vec<Price>,
    /// What the prices are in.
    currency: String,
    /// What a session may use, together with its sub-agents.
    budget: Option<Budget>,
    /// Whether the end of a session tells what it used.
    summary: bool,
    /// How long the person has to answer, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { prices: Vec::new(), currency: "USD".to_owned(), budget: None, summary: true, timeout: 300.0 }
    }
}

pub(super) fn make(config: &Map, place: &Place<'_>) -> Result<Vec<Part>, String> {
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
        sessions: place.host.counted(place.who),
    });
    let mut parts =
        vec![Part::observer(&["session:start", "provider:response", "session:end"], Counting(cost.clone()))];
    if cost.budget.is_some() {
        parts.push(Part::guard(&["provider:request"], Keeping(cost)).priority(GUARDS));
    }
    Ok(parts)
}

struct Cost {
    prices: Prices,
    currency: String,
    budget: Option<Budget>,
    summary: bool,
    timeout: std::time::Duration,
    sessions: Arc<Families<Spent>>,
}

/// What a session has used, with its sub-agents.
#[derive(Clone, Debug, Default, PartialEq)]
struct Spent {
    calls: u64,
    usage: Usage,
    /// Of the calls whose price is known.
    money: f64,
    /// A model without a price.
    unpriced: Option<String>,
    /// Whether a provider did not tell what a call used.
    is_uncounted: bool,
    is_warned: bool,
}

/// Counts, and tells what was counted. An observer, so that answers are shown while they come.
struct Counting(Arc<Cost>);

impl Hook for Counting {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let cost = &*self.0;
        match event {
            "session:start" => cost.sessions.begin(data),
            "session:end" => {
                let spent = cost.sessions.end(data).filter(|spent| cost.summary && spent.calls > 0);
                return Ok(
                    spent.map_or_else(HookResult::proceed, |spent| HookResult::proceed().info(cost.told(&spent)))
                );
            }
            _ => return Ok(cost.count(data)),
        }
        Ok(HookResult::proceed())
    }
}

/// Keeps to the budget.
struct Keeping(Arc<Cost>);

impl Hook for Keeping {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let cost = &*self.0;
        let Some(budget) = &cost.budget else { return Ok(HookResult::proceed()) };
        let spent = cost.sessions.with(data, |spent| spent.clone());
        if let Some(limit) = budget.reached(Step::Deny, &spent) {
            let (limit, used) = (limit.told(&cost.currency), cost.told(&spent));
            return Ok(HookResult::deny(format!("the session has reached its limit of {limit}: {used}")));
        }
        // A lasting answer is remembered by the question, so the question does not say how much was used: the reason does.
        let question = if let Some(limit) = budget.reached(Step::Ask, &spent) {
            format!("The session has reached {} of its budget. Go on?", limit.told(&cost.currency))
        } else if spent.is_uncounted {
            "The provider does not tell how many tokens it uses, so the budget cannot be kept. Go on?".to_owned()
        } else if let Some(model) = cost.unpriced(budget, data) {
            format!("The price of `{model}` is not known, so the budget cannot be kept. Go on?")
        } else {
            return Ok(HookResult::proceed());
        };
        let question = Approval::new(question).options(["Allow once", "Allow always", "Deny"]).timeout(cost.timeout);
        Ok(HookResult::ask(question).because(cost.told(&spent)))
    }
}

impl Cost {
    fn count(&self, data: &EventData) -> HookResult {
        let model = data.text("model").unwrap_or_default();
        let usage = Usage::read(&data["usage"]);
        let limit = self.sessions.with(data, |spent| {
            spent.calls += 1;
            match (usage, self.prices.of(model)) {
                (None, _) => spent.is_uncounted = true,
                (Some(usage), price) => {
                    spent.usage.add(&usage);
                    match price {
                        Some(price) => spent.money += usage.costs(price),
                        None => spent.unpriced = Some(model.to_owned()),
                    }
                }
            }
            let limit = self.budget.as_ref().and_then(|budget| budget.reached(Step::Warn, spent));
            let limit = limit.filter(|_| !spent.is_warned);
            spent.is_warned |= limit.is_some();
            limit.map(|limit| (limit, spent.clone()))
        });
        match limit {
            Some((limit, spent)) => {
                let limit = limit.told(&self.currency);
                HookResult::proceed().warning(format!("the session has reached {limit}: {}", self.told(&spent)))
            }
            None => HookResult::proceed(),
        }
    }

    /// The model that is about to be asked, if there is a budget in money and it has no price.
    fn unpriced<'a>(&self, budget: &Budget, data: &'a EventData) -> Option<&'a str> {
        let model = data.text("model").unwrap_or_default();
        (budget.is_in_money() && self.prices.of(model).is_none()).then_some(model)
    }

    fn told(&self, spent: &Spent) -> String {
        let Spent { calls, usage, money, unpriced, is_uncounted, .. } = spent;
        let times = if *calls == 1 { "call" } else { "calls" };
        let mut told = format!(
            "{} tokens in {calls} {times} ({} read, {} written)",
            usage.tokens(),
            usage.input_tokens,
            usage.output_tokens
        );
        if self.prices.are_given() {
            told.push_str(&format!(", {}", price::amount(*money, &self.currency)));
        }
        if let Some(model) = unpriced.as_ref().filter(|_| self.prices.are_given()) {
            told.push_str(&format!(", without `{model}`, whose price is not known"));
        }
        if *is_uncounted {
            told.push_str("; the provider did not tell about every call");
        }
        told
    }
}
