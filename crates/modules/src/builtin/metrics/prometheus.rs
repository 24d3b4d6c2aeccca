//! Metrics in the text format of Prometheus.

use std::fmt::Write;

use super::store::{BOUNDS, Labels, Metric, Store};

/// What the text is.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that was measured.
pub(super) fn text(store: &Store) -> String {
    let mut text = String::new();
    let mut shown = None;
    for ((metric, labels), count) in &store.counters {
        let name = format!("{}_total", name(*metric));
        head(&mut text, &mut shown, *metric, &name, "counter");
        line(&mut text, &name, labels, None, &count.to_string());
    }
    for ((metric, labels), histogram) in &store.histograms {
        let name = format!("{}_seconds", name(*metric));
        head(&mut text, &mut shown, *metric, &name, "histogram");
        let mut so_far = 0;
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(histogram.buckets) {
            so_far += count;
            line(&mut text, &format!("{name}_bucket"), labels, Some(&bound), &so_far.to_string());
        }
        line(&mut text, &format!("{name}_sum"), labels, None, &histogram.sum.to_string());
        line(&mut text, &format!("{name}_count"), labels, None, &histogram.count().to_string());
    }
    text
}

fn name(metric: Metric) -> String {
    metric.describe().0.replace('.', "_")
}

/// A metric is described before its first line.
fn head(text: &mut String, shown: &mut Option<Metric>, metric: Metric, name: &str, kind: &str) {
    if shown.replace(metric) != Some(metric) {
        // Writing to a text never fails.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", metric.describe().2);
    }
}

fn line(text: &mut String, name: &str, labels: &Labels, bound: Option<&str>, value: &str) {
    let labels = labels.iter().map(|(label, value)| (*label, value.as_str())).chain(bound.map(|bound| ("le", bound)));
    let labels: Vec<String> = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::store::{Metric, Store};
    use super::text;

    #[test]
    fn what_was_measured_is_told_in_the_words_of_prometheus() {
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
                "# HELP amplifier_tool_duration_seconds How long tools ran.",
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
