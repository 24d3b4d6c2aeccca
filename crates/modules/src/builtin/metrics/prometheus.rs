//! Metrics in the text format of Prometheus.

use amplifier_audit::prometheus::{MetricKind, MetricsText};

use super::store::{BOUNDS, Labels, Metric, Store};

pub(super) fn text(store: &Store) -> String {
    let mut text = MetricsText::default();
    for ((metric, labels), count) in &store.counters {
        let (name, help) = describe(*metric, "total");
        text.metric(&name, MetricKind::Counter, help).value(&borrowed(labels), count);
    }
    for ((metric, labels), histogram) in &store.histograms {
        let (name, help) = describe(*metric, "seconds");
        let counts = histogram.buckets.iter().scan(0, |so_far, count| {
            *so_far += count;
            Some(*so_far)
        });
        let buckets: Vec<(f64, u64)> = BOUNDS.into_iter().zip(counts).collect();
        let text = text.metric(&name, MetricKind::Histogram, help);
        text.histogram(&borrowed(labels), &buckets, histogram.count(), histogram.sum);
    }
    text.finish()
}

fn describe(metric: Metric, unit: &str) -> (String, &'static str) {
    let (name, _, help) = metric.describe();
    (format!("{}_{unit}", name.replace('.', "_")), help)
}

fn borrowed(labels: &Labels) -> Vec<(&str, &str)> {
    labels.iter().map(|(label, value)| (*label, value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::store::{Metric, Store};
    use super::text;

    #[test]
    fn metrics_are_rendered_in_the_text_format_of_prometheus() {
        let mut store = Store::default();
        store.add(Metric::ToolCalls, &[("tool", "a\"b\\c\nd"), ("success", "true")], 2);
        store.observe(Metric::ToolDuration, &[("tool", "Bash")], 0.03);
        store.observe(Metric::ToolDuration, &[("tool", "Bash")], 1000.0);
        let text = text(&store);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "# HELP amplifier_tool_calls_total Tools that ran, by tool and success.",
                "# TYPE amplifier_tool_calls_total counter",
                r#"amplifier_tool_calls_total{tool="a\"b\\c\nd",success="true"} 2"#,
                "# HELP amplifier_tool_duration_seconds Duration of tool calls.",
                "# TYPE amplifier_tool_duration_seconds histogram",
                r#"amplifier_tool_duration_seconds_bucket{tool="Bash",le="0.005"} 0"#,
            ]
        );
        assert_eq!(
            lines[lines.len() - 4..],
            [
                r#"amplifier_tool_duration_seconds_bucket{tool="Bash",le="300"} 1"#,
                r#"amplifier_tool_duration_seconds_bucket{tool="Bash",le="+Inf"} 2"#,
                r#"amplifier_tool_duration_seconds_sum{tool="Bash"} 1000.03"#,
                r#"amplifier_tool_duration_seconds_count{tool="Bash"} 2"#,
            ]
        );
    }
}
