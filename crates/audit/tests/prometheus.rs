//! The text format of Prometheus, read by its own client library.

use std::io::Write;
use std::process::{Command, Stdio};

use amplifier_audit::prometheus::{MetricKind, MetricsText};
use serde_json::{Value, json};

const READER: &str = "import json, sys
from prometheus_client.parser import text_string_to_metric_families as parse
text = sys.stdin.buffer.read().decode()
json.dump([[m.name, m.type, m.documentation, [[s.name, s.labels, float(s.value)] for s in m.samples]] for m in parse(text)], sys.stdout)";

/// The values that `prometheus_client` reads, which `./test` installs.
fn read(text: &str) -> Value {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");
    let mut python = Command::new(installed)
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`./test` makes target/python");
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "`prometheus_client` does not read:\n{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn another_program_reads_every_label_and_help_text_as_it_was_written() {
    let odd = ["a\"b\\c\nd", "\\n", "\\\\\"", "} 1", ",x=\"", "", " é\t", "#"];
    let mut text = MetricsText::default();
    for odd in odd {
        let help = format!("Help {odd}!");
        text.metric("odd_total", MetricKind::Counter, &help).value(&[("odd", odd), ("second", "2")], 2);
    }
    text.metric("help", MetricKind::Gauge, "One \\ and \"two\"\nlines, \\n").value(&[], 0.5);
    let samples: Vec<Value> = odd.map(|odd| json!(["odd_total", { "odd": odd, "second": "2" }, 2.0])).to_vec();
    assert_eq!(
        read(&text.finish()),
        json!([
            ["odd", "counter", "Help a\"b\\c\nd!", samples],
            ["help", "gauge", "One \\ and \"two\"\nlines, \\n", [["help", {}, 0.5]]],
        ])
    );
}

#[test]
fn another_program_reads_the_buckets_of_a_histogram() {
    let mut text = MetricsText::default();
    let metric = text.metric("took_seconds", MetricKind::Histogram, "Times.");
    metric.histogram(&[("hook", "h")], &[(0.000001, 1), (0.5, 3)], 4, 61.25).histogram(&[], &[], 0, 0.0);
    let of = |suffix: &str, labels: Value, value: f64| json!([format!("took_seconds{suffix}"), labels, value]);
    assert_eq!(
        read(&text.finish()),
        json!([[
            "took_seconds",
            "histogram",
            "Times.",
            [
                of("_bucket", json!({ "hook": "h", "le": "0.000001" }), 1.0),
                of("_bucket", json!({ "hook": "h", "le": "0.5" }), 3.0),
                of("_bucket", json!({ "hook": "h", "le": "+Inf" }), 4.0),
                of("_sum", json!({ "hook": "h" }), 61.25),
                of("_count", json!({ "hook": "h" }), 4.0),
                of("_bucket", json!({ "le": "+Inf" }), 0.0),
                of("_sum", json!({}), 0.0),
                of("_count", json!({}), 0.0),
            ]
        ]])
    );
}
