//! Statistics of hooks.

use std::collections::HashMap;
use std::sync::LazyLock;

use amplifier_core::{ActionKind, HookReportEntry};

use crate::api_types::HookStats;

/// Limit of hooks; others are counted as [`OTHERS`], because names from bundles are unlimited.
const MOST_HOOKS: usize = 256;

/// Name of the hooks beyond the limit.
const OTHERS: &str = "(others)";

/// Limit of listed events per hook.
const MOST_EVENTS: usize = 32;

/// Number of buckets: two for every doubling, from 250 ns on.
const BUCKETS: usize = 64;

const MINUTES: usize = 30;

/// Upper bounds of the buckets, in nanoseconds.
static BOUNDS: LazyLock<[u64; BUCKETS]> =
    LazyLock::new(|| std::array::from_fn(|index| (250.0 * 2f64.powf(index as f64 / 2.0)).round() as u64));

#[derive(Debug, Default)]
pub(super) struct Hooks {
    hooks: HashMap<Box<str>, HookCounters>,
}

#[derive(Debug)]
struct HookCounters {
    events: Vec<Box<str>>,
    calls: u64,
    denials: u64,
    asks: u64,
    modifies: u64,
    injects: u64,
    errors: u64,
    max_ns: u64,
    total_ns: u64,
    times: [u32; BUCKETS],
    /// Calls in each minute, by the minute modulo 30; and the last counted minute.
    recent: [u32; MINUTES],
    minute: u64,
}

/// Totals of a hook, for metrics.
pub(super) struct Totals<'a> {
    pub(super) hook: &'a str,
    pub(super) calls: u64,
    pub(super) denials: u64,
    pub(super) errors: u64,
    pub(super) total_ns: u64,
    /// Number of calls up to each duration in seconds.
    pub(super) seconds: [(f64, u64); 14],
}

impl Hooks {
    pub(super) fn count(&mut self, report: &HookReportEntry, event: &str, minute: u64) {
        // Looked up first, because the entry nearly always exists.
        let mut name = &*report.hook;
        if !self.hooks.contains_key(name) {
            if self.hooks.len() >= MOST_HOOKS {
                name = OTHERS;
            }
            self.hooks.entry(name.into()).or_default();
        }
        if let Some(counts) = self.hooks.get_mut(name) {
            counts.count(report, event, minute);
        }
    }

    pub(super) fn list(&self, now: u64) -> Vec<HookStats> {
        let mut list: Vec<HookStats> = self.hooks.iter().map(|(hook, counts)| counts.stats(hook, now)).collect();
        list.sort_unstable_by(|a, b| a.hook.cmp(&b.hook));
        list
    }

    pub(super) fn totals(&self) -> Vec<Totals<'_>> {
        let mut totals: Vec<Totals<'_>> = self
            .hooks
            .iter()
            .map(|(hook, counts)| Totals {
                hook,
                calls: counts.calls,
                denials: counts.denials,
                errors: counts.errors,
                total_ns: counts.total_ns,
                seconds: counts.seconds(),
            })
            .collect();
        totals.sort_unstable_by(|a, b| a.hook.cmp(b.hook));
        totals
    }
}

impl Default for HookCounters {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            calls: 0,
            denials: 0,
            asks: 0,
            modifies: 0,
            injects: 0,
            errors: 0,
            max_ns: 0,
            total_ns: 0,
            times: [0; BUCKETS],
            recent: [0; MINUTES],
            minute: 0,
        }
    }
}

impl HookCounters {
    fn count(&mut self, report: &HookReportEntry, event: &str, minute: u64) {
        self.calls += 1;
        match report.answer {
            ActionKind::Deny => self.denials += 1,
            ActionKind::AskUser => self.asks += 1,
            ActionKind::Modify => self.modifies += 1,
            ActionKind::InjectContext => self.injects += 1,
            _ => {}
        }
        self.errors += u64::from(report.error.is_some());
        if self.events.len() < MOST_EVENTS && !self.events.iter().any(|known| &**known == event) {
            self.events.push(event.into());
        }
        let took_ns = report.took.as_nanos().try_into().unwrap_or(u64::MAX);
        self.max_ns = self.max_ns.max(took_ns);
        self.total_ns = self.total_ns.saturating_add(took_ns);
        let bucket = BOUNDS.partition_point(|bound| *bound < took_ns).min(BUCKETS - 1);
        self.times[bucket] = self.times[bucket].saturating_add(1);
        if minute > self.minute {
            let passed = (minute - self.minute).min(MINUTES as u64);
            (0..passed).for_each(|back| self.recent[((minute - back) % MINUTES as u64) as usize] = 0);
            self.minute = minute;
        }
        if self.minute - minute < MINUTES as u64 {
            self.recent[(minute % MINUTES as u64) as usize] += 1;
        }
    }

    fn stats(&self, hook: &str, now: u64) -> HookStats {
        let mut events: Vec<String> = self.events.iter().map(|event| event.to_string()).collect();
        events.sort_unstable();
        let recent = (0..MINUTES as u64).rev().map(|back| {
            let minute = now.saturating_sub(back);
            let is_known = minute <= self.minute && self.minute - minute < MINUTES as u64;
            if is_known { self.recent[(minute % MINUTES as u64) as usize].into() } else { 0 }
        });
        HookStats {
            hook: hook.to_owned(),
            events,
            calls: self.calls,
            denials: self.denials,
            asks: self.asks,
            modifies: self.modifies,
            injects: self.injects,
            errors: self.errors,
            p50_ns: self.quantile(0.5),
            p95_ns: self.quantile(0.95),
            max_ns: self.max_ns,
            latency: self.latency().to_vec(),
            recent: recent.collect(),
        }
    }

    /// Buckets up to 1 µs, 2 µs, 4 µs, …, and longer.
    fn latency(&self) -> [u64; 16] {
        let mut latency = [0; 16];
        for (index, count) in self.times.iter().enumerate() {
            latency[(index.saturating_sub(3) / 2).min(15)] += u64::from(*count);
        }
        latency
    }

    /// Cumulative buckets up to 1 µs, 4 µs, 16 µs, … and 67 s.
    fn seconds(&self) -> [(f64, u64); 14] {
        std::array::from_fn(|power| {
            let last = 4 + 4 * power;
            let count = self.times[..=last].iter().map(|count| u64::from(*count)).sum();
            (BOUNDS[last] as f64 / 1e9, count)
        })
    }

    /// Returns a quantile of the duration, exact to about a fifth.
    fn quantile(&self, part: f64) -> u64 {
        let calls: u64 = self.times.iter().map(|count| u64::from(*count)).sum();
        let wanted = (calls as f64 * part).ceil().max(1.0);
        let mut before = 0.0;
        for (index, count) in self.times.iter().enumerate() {
            let count = f64::from(*count);
            if before + count >= wanted {
                let low = index.checked_sub(1).map_or(0, |index| BOUNDS[index]) as f64;
                let high = BOUNDS[index].min(self.max_ns).max(low as u64) as f64;
                return (low + (high - low) * (wanted - before) / count).round() as u64;
            }
            before += count;
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(answer: ActionKind, nanos: u64) -> HookReportEntry {
        let (hook, took) = ("h".to_owned(), std::time::Duration::from_nanos(nanos));
        HookReportEntry { hook, answer, took, reason: None, error: None, suppressed_output: false }
    }

    fn counted(times: &[u64]) -> HookStats {
        let mut hooks = Hooks::default();
        for took_ns in times {
            hooks.count(&report(ActionKind::Continue, *took_ns), "tool:pre", 100);
        }
        hooks.list(101).remove(0)
    }

    #[test]
    fn times_are_counted_in_doublings_of_a_microsecond() {
        let stats = counted(&[1, 1_000, 1_001, 2_000, 4_000, 16_384_000, 16_384_001, u64::MAX]);
        let mut expected = [0; 16];
        (expected[0], expected[1], expected[2], expected[14], expected[15]) = (2, 2, 1, 1, 2);
        assert_eq!(stats.latency, expected);
        assert_eq!(stats.max_ns, u64::MAX);
    }

    #[test]
    fn quantiles_are_close_and_never_above_the_slowest() {
        let stats = counted(&(1..=1000).map(|n| n * 1000).collect::<Vec<_>>());
        assert!((400_000..600_000).contains(&stats.p50_ns), "{}", stats.p50_ns);
        assert!((850_000..=1_000_000).contains(&stats.p95_ns), "{}", stats.p95_ns);
        assert_eq!(counted(&[777]).p50_ns, 777);
    }

    #[test]
    fn calls_are_counted_by_minute_and_forgotten_after_thirty() {
        let mut hooks = Hooks::default();
        let report = report(ActionKind::Deny, 1);
        for minute in [100, 101, 101, 129, 131] {
            hooks.count(&report, "tool:pre", minute);
        }
        let recent = hooks.list(132).remove(0).recent;
        assert_eq!(recent.iter().sum::<u64>(), 2);
        assert_eq!((recent[26], recent[28], recent[29]), (1, 1, 0));
    }
}
