//! What a record says, in a few words.

use std::time::Duration;

use amplifier_audit::{Kind, Record, RecordedDecision};
use amplifier_core::text::counted;
use serde_json::Value;

/// How a summary is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// As any other.
    Plain,
    /// Something was denied, failed or is wrong.
    Bad,
    /// A person agreed.
    Good,
}

/// What a record with that body says. The text is as the log has it: it can contain anything.
pub(crate) fn summary(record: &Record<'_>, body: &str) -> (Weight, String) {
    let is_denial = RecordedDecision::from_body(record, body).is_some_and(RecordedDecision::is_denial);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |field: &str| plain(&body[field]);
    let number = |field: &str, thing: &str| match body[field].as_u64() {
        Some(number) => counted(number, thing),
        None => format!("{} {thing}s", text(field)),
    };
    let said = |field: &str| match &body[field] {
        Value::Null => String::new(),
        value => format!(": {}", plain(value)),
    };
    let bad_if = |bad: bool| if bad { Weight::Bad } else { Weight::Plain };
    if let Some(blob) = body["blob"].as_str() {
        return (Weight::Plain, format!("{}, kept as {blob}", number("bytes", "byte")));
    }
    match record.kind {
        Kind::Event => match body["denied_by"].as_str() {
            Some(hook) => {
                let word = if is_denial { "denied" } else { "denied too late" };
                (bad_if(is_denial), format!("{word} by {hook}{}; {}", said("reason"), text("data")))
            }
            None => (bad_if(is_denial), format!("{}; {}", text("decision"), text("data"))),
        },
        Kind::HookReport => {
            let took = Duration::from_nanos(body["took_ns"].as_u64().unwrap_or(0));
            let bad = body["answer"] == "deny" || !body["error"].is_null();
            let why = if body["error"].is_null() { said("reason") } else { said("error") };
            (bad_if(bad), format!("{} answered {} in {took:.1?}{why}", text("hook"), text("answer")))
        }
        Kind::ApprovalRequest => (Weight::Plain, format!("#{} {} asks{}", text("id"), text("hook"), said("prompt"))),
        Kind::ApprovalDecision => {
            let (weight, word) = match body["granted"].as_bool() {
                Some(true) => (Weight::Good, "granted"),
                _ => (Weight::Bad, "refused"),
            };
            let by = by(&body["by"]);
            (weight, format!("#{} {word} to {} ({}{by}){}", text("id"), text("hook"), text("basis"), said("reason")))
        }
        Kind::LateAnswer => {
            let by = by(&body["by"]);
            (Weight::Plain, format!("#{} to {}, too late{by}{}", text("id"), text("hook"), said("answer")))
        }
        Kind::Injection => {
            let placed = format!("{} as {}, {}", text("hook"), text("role"), text("placement"));
            (Weight::Plain, format!("{placed}, {}, {}{}", number("tokens", "token"), text("fate"), said("text")))
        }
        Kind::Message => {
            let weight = bad_if(body["level"] == "error");
            (weight, format!("{} from {}{}", text("level"), text("source"), said("text")))
        }
        Kind::Intent => (Weight::Plain, format!("may begin{}", said("tool_call_id"))),
        Kind::Outcome => {
            let word = match body["success"].as_bool() {
                Some(true) => "succeeded",
                Some(false) => "failed",
                None => "ended",
            };
            (bad_if(word == "failed"), format!("{word}{}", said("tool_call_id")))
        }
        Kind::Failure => (Weight::Bad, format!("{}{}", text("part"), said("error"))),
        Kind::Gap => (Weight::Bad, format!("{} lost{}", number("lost", "record"), said("why"))),
        Kind::Breach => (Weight::Bad, format!("someone was at the log{}", said("what"))),
        Kind::Recovery => (Weight::Plain, format!("{} of segment {}", number("bytes", "torn byte"), text("segment"))),
        Kind::Seal => (Weight::Plain, format!("{}, after {}", text("reason"), number("records", "record"))),
        Kind::Genesis | Kind::KeyRotation => (Weight::Plain, format!("public key {}", text("public_key"))),
        Kind::Segment | Kind::Checkpoint => (Weight::Plain, format!("covers {}", counted(record.seq, "record"))),
        Kind::PolicyChange => (Weight::Plain, plain(&body)),
    }
}

/// Who answered, if the record says.
fn by(by: &Value) -> String {
    match (by["name"].as_str(), by["via"].as_str()) {
        (Some(name), Some(via)) => format!(", {name} by {via}"),
        _ => String::new(),
    }
}

/// A value as people write it: text without quotes, nothing as a dash, the rest as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}
