//! Metrics in OTLP JSON: 64-bit numbers are strings, enumerations are numbers.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::store::{BOUNDS, Labels, Metric, Series, Store};

/// Cumulative temporality: every point counts from the start.
const CUMULATIVE: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportRequest<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: Resource<'a>,
    scope_metrics: [ScopeMetrics; 1],
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: [Attribute<'a>; 1],
}

#[derive(Serialize)]
struct ScopeMetrics {
    scope: InstrumentationScope,
    metrics: Vec<OtlpMetric>,
}

#[derive(Serialize)]
struct InstrumentationScope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct OtlpMetric {
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    #[serde(flatten)]
    data: MetricData,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum MetricData {
    #[serde(rename_all = "camelCase")]
    Sum { aggregation_temporality: u8, is_monotonic: bool, data_points: Vec<Point> },
    #[serde(rename_all = "camelCase")]
    Histogram { aggregation_temporality: u8, data_points: Vec<Point> },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    attributes: Vec<Attribute<'static>>,
    start_time_unix_nano: String,
    time_unix_nano: String,
    #[serde(flatten)]
    value: PointValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PointValue {
    #[serde(rename_all = "camelCase")]
    Count { as_int: String },
    #[serde(rename_all = "camelCase")]
    Durations { count: String, sum: f64, bucket_counts: Vec<String>, explicit_bounds: [f64; BOUNDS.len()] },
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: StringValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StringValue {
    string_value: String,
}

/// Returns the metrics measured in this period.
pub(super) fn request<'a>(store: &Store, service: &str, from: SystemTime, now: SystemTime) -> ExportRequest<'a> {
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let point = |labels: &Labels, value| Point {
        attributes: labels.iter().map(|(key, value)| attribute(key, value)).collect(),
        start_time_unix_nano: nanos(from),
        time_unix_nano: nanos(now),
        value,
    };
    let counters =
        by_metric(store.counters.iter().map(|((metric, labels), count)| {
            (*metric, point(labels, PointValue::Count { as_int: count.to_string() }))
        }));
    let histograms = by_metric(store.histograms.iter().map(|((metric, labels), histogram): (&Series, _)| {
        let value = PointValue::Durations {
            count: histogram.count().to_string(),
            sum: histogram.sum,
            bucket_counts: histogram.buckets.iter().map(u64::to_string).collect(),
            explicit_bounds: BOUNDS,
        };
        (*metric, point(labels, value))
    }));
    let sums = counters.into_iter().map(|(metric, data_points)| {
        otlp_metric(metric, MetricData::Sum { aggregation_temporality: CUMULATIVE, is_monotonic: true, data_points })
    });
    let histograms = histograms.into_iter().map(|(metric, data_points)| {
        otlp_metric(metric, MetricData::Histogram { aggregation_temporality: CUMULATIVE, data_points })
    });
    let scope = InstrumentationScope { name: "amplifier-modules", version: env!("CARGO_PKG_VERSION") };
    let scope_metrics = [ScopeMetrics { scope, metrics: sums.chain(histograms).collect() }];
    let resource = Resource { attributes: [attribute("service.name", service)] };
    ExportRequest { resource_metrics: [ResourceMetrics { resource, scope_metrics }] }
}

fn by_metric(points: impl Iterator<Item = (Metric, Point)>) -> Vec<(Metric, Vec<Point>)> {
    let mut metrics: Vec<(Metric, Vec<Point>)> = Vec::new();
    for (metric, point) in points {
        match metrics.last_mut().filter(|(last, _)| *last == metric) {
            Some((_, points)) => points.push(point),
            None => metrics.push((metric, vec![point])),
        }
    }
    metrics
}

fn otlp_metric(metric: Metric, data: MetricData) -> OtlpMetric {
    let (name, unit, description) = metric.describe();
    OtlpMetric { name, unit, description, data }
}

fn attribute<'a>(key: &'a str, value: &str) -> Attribute<'a> {
    Attribute { key, value: StringValue { string_value: value.to_owned() } }
}
