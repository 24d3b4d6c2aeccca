//! Counts of what happened in each hour.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::cost::CostSum;
use crate::api_types::{Activity, ActivityCounts, ActivityHour, HookDenials};

/// Number of hours that are counted; older ones are dropped.
pub(crate) const MOST_HOURS: usize = 31 * 24;

/// Limit of hooks by name in an hour; others are counted as [`OTHERS`].
const MOST_HOOKS: usize = 64;
const OTHERS: &str = "(others)";

/// The hours of the last month, by their number since 1970.
#[derive(Debug, Default)]
pub(super) struct HourlyCounts {
    hours: BTreeMap<u64, Hour>,
}

#[derive(Debug, Default)]
pub(super) struct Hour {
    pub(super) counts: ActivityCounts,
    pub(super) costs: CostSum,
    denials: HashMap<Box<str>, u64>,
}

impl HourlyCounts {
    /// Returns the counts of the hour of this minute since 1970.
    pub(super) fn hour(&mut self, minute: u64) -> &mut Hour {
        let hour = minute / 60;
        // Records are in order, so the oldest hour is only dropped for a newer one; a clock that was set back changes an old hour.
        if self.hours.len() >= MOST_HOURS && !self.hours.contains_key(&hour) {
            self.hours.pop_first();
        }
        self.hours.entry(hour).or_default()
    }

    /// Returns the last hours, the oldest first; hours without records are included.
    pub(super) fn report(&self, now: Timestamp, hours: usize) -> Activity {
        let last = u64::try_from(now.as_second() / 3600).unwrap_or(0);
        let first = (last + 1).saturating_sub(hours as u64);
        let mut denials: HashMap<&str, u64> = HashMap::new();
        let mut costs = CostSum::default();
        let hours = (first..=last)
            .map(|number| {
                let counted = self.hours.get(&number);
                for (hook, count) in counted.into_iter().flat_map(|hour| &hour.denials) {
                    *denials.entry(hook).or_default() += count;
                }
                if let Some(hour) = counted {
                    costs.add_all(&hour.costs);
                }
                let seconds = i64::try_from(number * 3600).unwrap_or(i64::MAX);
                let at = Timestamp::from_second(seconds).unwrap_or(now);
                ActivityHour {
                    at,
                    counts: counted.map(|hour| hour.counts.clone()).unwrap_or_default(),
                    costs: counted.map(|hour| hour.costs.costs()).unwrap_or_default(),
                }
            })
            .collect();
        let mut denials: Vec<HookDenials> =
            denials.into_iter().map(|(hook, denials)| HookDenials { hook: hook.to_owned(), denials }).collect();
        denials.sort_unstable_by(|a, b| (b.denials, &a.hook).cmp(&(a.denials, &b.hook)));
        Activity { hours, denials_by_hook: denials, costs: costs.costs() }
    }
}

impl Hour {
    /// Counts a denial by a hook; without one, by the program itself.
    pub(super) fn deny(&mut self, hook: Option<&str>) {
        self.counts.denials += 1;
        let Some(hook) = hook else { return };
        let is_known = self.denials.len() < MOST_HOOKS || self.denials.contains_key(hook);
        *self.denials.entry(if is_known { hook } else { OTHERS }.into()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3600 + 59).unwrap()
    }

    #[test]
    fn hours_without_records_are_reported_and_denials_are_summed_by_hook() {
        let mut activity = HourlyCounts::default();
        activity.hour(100 * 60).counts.tokens += 7;
        for hook in ["guard", "lint", "guard"] {
            activity.hour(102 * 60 + 59).deny(Some(hook));
        }
        activity.hour(99 * 60).deny(Some("older"));
        let report = activity.report(at(102), 3);
        let tokens: Vec<u64> = report.hours.iter().map(|hour| hour.counts.tokens).collect();
        let denials: Vec<u64> = report.hours.iter().map(|hour| hour.counts.denials).collect();
        assert_eq!((tokens, denials), (vec![7, 0, 0], vec![0, 0, 3]));
        assert_eq!(report.hours[0].at, Timestamp::from_second(360_000).unwrap());
        let by_hook: Vec<(&str, u64)> =
            report.denials_by_hook.iter().map(|one| (one.hook.as_str(), one.denials)).collect();
        assert_eq!(by_hook, [("guard", 2), ("lint", 1)]);
    }

    #[test]
    fn hours_and_hooks_are_bounded() {
        let mut activity = HourlyCounts::default();
        for hour in 0..2_000 {
            activity.hour(hour * 60).counts.prompts += 1;
        }
        assert_eq!(activity.hours.len(), MOST_HOURS);
        (0..500).for_each(|n| activity.hour(1_999 * 60).deny(Some(&format!("hook-{n}"))));
        let report = activity.report(at(1_999), 1);
        assert_eq!((report.denials_by_hook.len(), report.hours[0].counts.denials), (MOST_HOOKS + 1, 500));
        assert_eq!(report.denials_by_hook[0].hook, OTHERS);
    }
}
