//! Sums of the costs that hooks report.

use amplifier_core::{CallCost, HookReportEntry};

use crate::api_types::Cost;

/// Limit of currencies in a sum.
const MOST_CURRENCIES: usize = 4;

/// Millionths by currency.
#[derive(Clone, Debug, Default)]
pub(super) struct CostSum {
    costs: Vec<CallCost>,
    /// Number of calls with a known price, and of all calls that used tokens.
    priced: u64,
    calls: u64,
}

/// The cost of a session. Only one hook is counted: several may know the prices, each of all calls.
#[derive(Debug, Default)]
pub(super) struct SessionCost {
    hook: Option<Box<str>>,
    sum: CostSum,
}

impl CostSum {
    /// Counts a call that used tokens. Its price, if known, follows with the report of a hook.
    pub(super) fn count_call(&mut self) {
        self.calls += 1;
    }

    /// Adds the cost of a call.
    pub(super) fn add(&mut self, cost: &CallCost) {
        self.priced += 1;
        self.add_amount(cost);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.priced += other.priced;
        self.calls += other.calls;
        other.costs.iter().for_each(|cost| self.add_amount(cost));
    }

    /// Returns the costs, one for each currency.
    pub(super) fn costs(&self) -> Vec<Cost> {
        let cost = |CallCost { millionths, currency, .. }: &CallCost| Cost {
            amount: *millionths as f64 / 1e6,
            currency: currency.clone(),
            incomplete: self.priced < self.calls,
        };
        self.costs.iter().map(cost).collect()
    }

    fn add_amount(&mut self, cost: &CallCost) {
        if let Some(sum) = self.costs.iter_mut().find(|sum| sum.currency == cost.currency) {
            sum.millionths = sum.millionths.saturating_add(cost.millionths);
        } else if self.costs.len() < MOST_CURRENCIES {
            self.costs.push(cost.clone());
        }
    }
}

impl SessionCost {
    /// Counts a call that used tokens.
    pub(super) fn count_call(&mut self) {
        self.sum.count_call();
    }

    /// Counts the report of a hook at `provider:response`; returns its cost if it is counted.
    pub(super) fn count(&mut self, report: &HookReportEntry) -> Option<CallCost> {
        let cost = report.reason.as_deref()?.parse::<CallCost>().ok()?;
        if **self.hook.get_or_insert_with(|| report.hook.as_str().into()) != report.hook {
            return None;
        }
        self.sum.add(&cost);
        Some(cost)
    }

    /// Returns the cost, in the currency of the first call.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.sum.costs().into_iter().next()
    }
}
