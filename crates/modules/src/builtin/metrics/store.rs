//! Counters and histograms, limited in number.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of values of one label; all others become `other`.
const MOST_VALUES: usize = 100;

/// Longest value of a label, in characters.
const LONGEST_VALUE: usize = 100;

/// Upper bounds of the histogram buckets, in seconds.
pub(super) const BOUNDS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

// INVARIANT: in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    Events,
    ToolCalls,
    ToolDuration,
    ModelCalls,
    ModelDuration,
    Tokens,
    Denials,
    Approvals,
}

impl Metric {
    /// Returns the name for OpenTelemetry, the unit, and a description.
    pub(super) fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Events => ("amplifier.events", "{event}", "Events, by their name."),
            Self::ToolCalls => ("amplifier.tool.calls", "{call}", "Tools that ran, by tool and success."),
            Self::ToolDuration => ("amplifier.tool.duration", "s", "Duration of tool calls."),
            Self::ModelCalls => ("amplifier.model.calls", "{call}", "Calls to the model, by model and success."),
            Self::ModelDuration => ("amplifier.model.duration", "s", "Duration of calls to the model."),
            Self::Tokens => ("amplifier.tokens", "{token}", "Tokens that models read and wrote."),
            Self::Denials => ("amplifier.denials", "{denial}", "Denied operations, by event."),
            Self::Approvals => ("amplifier.approvals", "{approval}", "Approval requests, by decision."),
        }
    }
}

pub(super) type Series = (Metric, Labels);
pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) counters: BTreeMap<Series, u64>,
    pub(super) histograms: BTreeMap<Series, Histogram>,
    values: BTreeMap<&'static str, BTreeSet<String>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Histogram {
    /// One bucket for each bound, and one for larger values.
    pub(super) buckets: [u64; BOUNDS.len() + 1],
    pub(super) sum: f64,
}

impl Histogram {
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Store {
    pub(super) fn add(&mut self, metric: Metric, labels: &[(&'static str, &str)], count: u64) {
        let series = (metric, self.bounded(labels));
        *self.counters.entry(series).or_default() += count;
    }

    pub(super) fn observe(&mut self, metric: Metric, labels: &[(&'static str, &str)], seconds: f64) {
        let series = (metric, self.bounded(labels));
        let histogram = self.histograms.entry(series).or_default();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        histogram.buckets[bucket] += 1;
        histogram.sum += seconds;
    }

    /// Limits the number of label values: models invent names, which must not create an unlimited number of series.
    fn bounded(&mut self, labels: &[(&'static str, &str)]) -> Labels {
        let mut bound = |(label, value): &(&'static str, &str)| {
            let known = self.values.entry(label).or_default();
            let value: String = value.chars().take(LONGEST_VALUE).collect();
            if !known.contains(&value) {
                if known.len() >= MOST_VALUES {
                    return (*label, "other".to_owned());
                }
                known.insert(value.clone());
            }
            (*label, value)
        };
        labels.iter().map(&mut bound).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Metric, Store};

    #[test]
    fn label_values_beyond_the_limit_become_one_series() {
        let mut store = Store::default();
        for number in 0..1_000 {
            store.add(Metric::Events, &[("event", &format!("made:up{number}"))], 1);
        }
        assert_eq!(store.counters.len(), 101);
        assert_eq!(store.counters[&(Metric::Events, vec![("event", "other".to_owned())])], 900);
    }
}
