//! The text format of Prometheus.

use std::fmt::{Display, Write};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

/// Metrics as text, one after another.
///
/// ```
/// use amplifier_audit::prometheus::{MetricKind, MetricsText};
///
/// let mut text = MetricsText::default();
/// text.metric("calls_total", MetricKind::Counter, "Calls.").value(&[("tool", "a\"b")], 2);
/// assert_eq!(text.finish(), "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{tool=\"a\\\"b\"} 2\n");
/// ```
#[derive(Debug, Default)]
pub struct MetricsText {
    text: String,
    name: String,
}

// Writing to a text never fails.
impl MetricsText {
    /// Begins a metric, whose values follow. Nothing happens if it has begun already.
    pub fn metric(&mut self, name: &str, kind: MetricKind, help: &str) -> &mut Self {
        if self.name != name {
            name.clone_into(&mut self.name);
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        self
    }

    /// Adds the value for these labels.
    pub fn value(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, value)
    }

    /// Adds the counts of a histogram: how many values there are in all and up to each bound, and their sum.
    pub fn histogram(&mut self, labels: &[(&str, &str)], buckets: &[(f64, u64)], count: u64, sum: f64) -> &mut Self {
        let buckets = buckets.iter().map(|(bound, count)| (bound.to_string(), *count));
        for (bound, count) in buckets.chain([("+Inf".to_owned(), count)]) {
            self.line("_bucket", &[labels, &[("le", &bound)]].concat(), count);
        }
        self.line("_sum", labels, sum).line("_count", labels, count)
    }

    /// Returns all of it.
    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{text}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
        self
    }
}
