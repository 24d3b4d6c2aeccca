//! Sums of the costs that hooks report.

use amplifier_core::{CallCost, HookReportEntry};

use crate::api_types::Cost;

/// Limit of currencies in a sum.
const MOST_CURRENCIES: usize = 4;

/// Millionths by currency.
#[derive(Clone, Debug, Default)]
pub(super) struct CostSum(Vec<CallCost>);

/// The cost of a session. Only one hook is counted: several may know the prices, each of all calls.
#[derive(Debug, Default)]
pub(super) struct SessionCost {
    hook: Option<Box<str>>,
    sum: CostSum,
    /// Number of calls with a known price, and of all calls that used tokens.
    priced: u64,
    pub(super) calls: u64,
}

impl CostSum {
    pub(super) fn add(&mut self, cost: &CallCost) {
        if let Some(sum) = self.0.iter_mut().find(|sum| sum.currency == cost.currency) {
            sum.millionths = sum.millionths.saturating_add(cost.millionths);
        } else if self.0.len() < MOST_CURRENCIES {
            self.0.push(cost.clone());
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|cost| self.add(cost));
    }

    /// Returns the costs, one for each currency.
    pub(super) fn costs(&self, incomplete: bool) -> Vec<Cost> {
        let cost = |CallCost { millionths, currency, .. }: &CallCost| Cost {
            amount: *millionths as f64 / 1e6,
            currency: currency.clone(),
            incomplete,
        };
        self.0.iter().map(cost).collect()
    }
}

impl SessionCost {
    /// Counts the report of a hook at `provider:response`; returns its cost if it is counted.
    pub(super) fn count(&mut self, report: &HookReportEntry) -> Option<CallCost> {
        let cost = report.reason.as_deref()?.parse::<CallCost>().ok()?;
        if **self.hook.get_or_insert_with(|| report.hook.as_str().into()) != report.hook {
            return None;
        }
        self.priced += 1;
        self.sum.add(&cost);
        Some(cost)
    }

    /// Returns the cost, in the currency of the first call.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.sum.costs(self.priced < self.calls).into_iter().next()
    }
}
