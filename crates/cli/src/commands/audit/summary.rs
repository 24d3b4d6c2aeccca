//! One-line summaries of records.

use amplifier_audit::{Kind, Record};
use amplifier_core::text::counted;
use amplifier_core::{
    ActionKind, Actor, ApprovalDecisionEntry, AuditEntry, EventEntry, HookReportEntry, InjectionEntry, Level,
    MessageEntry, OutcomeEntry,
};
use serde_json::Value;

/// The emphasis of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Plain,
    Bad,
    Good,
}

/// Summarizes a record with its body. The text is untrusted and unescaped.
pub(crate) fn summary(record: &Record<'_>, body: &str) -> (Weight, String) {
    let fields: Value = serde_json::from_str(body).unwrap_or_default();
    if let Some(blob) = fields["blob"].as_str() {
        return (Weight::Plain, format!("{}, stored as {blob}", number(&fields["bytes"], "byte")));
    }
    match record.entry(body) {
        Ok(Some(entry)) => entry_summary(record, &entry),
        Ok(None) => log_summary(record, &fields),
        Err(_) => (Weight::Plain, plain(&fields)),
    }
}

fn entry_summary(record: &Record<'_>, entry: &AuditEntry) -> (Weight, String) {
    let because = |text: Option<&str>| text.map(|text| format!(": {text}")).unwrap_or_default();
    let by =
        |actor: &Option<Actor>| actor.as_ref().map(|by| format!(", {} by {}", by.name, by.via)).unwrap_or_default();
    let bad_if = |bad: bool| if bad { Weight::Bad } else { Weight::Plain };
    match entry {
        AuditEntry::Event(EventEntry { data, decision, denied_by, reason }) => {
            let is_denial = decision.denies_at(record.event.as_deref().unwrap_or_default());
            let data = serde_json::to_string(data).unwrap_or_default();
            let decided = denied_by.as_ref().map_or_else(
                || decision.to_string(),
                |hook| {
                    let word = if is_denial { "denied" } else { "denied too late" };
                    format!("{word} by {hook}{}", because(reason.as_deref()))
                },
            );
            (bad_if(is_denial), format!("{decided}; {data}"))
        }
        AuditEntry::HookReport(HookReportEntry { hook, answer, took, reason, error, .. }) => {
            let why = because(error.as_deref().or(reason.as_deref()));
            let weight = bad_if(*answer == ActionKind::Deny || error.is_some());
            (weight, format!("{hook} answered {answer} in {took:.1?}{why}"))
        }
        AuditEntry::ApprovalRequest(asked) => {
            (Weight::Plain, format!("#{} {} asks: {}", asked.id, asked.hook, asked.prompt))
        }
        AuditEntry::ApprovalDecision(ApprovalDecisionEntry { id, hook, decision, .. }) => {
            let (weight, word) = if decision.granted { (Weight::Good, "granted") } else { (Weight::Bad, "denied") };
            let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let (basis, by, why) = (decision.basis, by(&decision.by), &decision.reason);
            let rule = decision.rule.as_ref().map(|rule| format!(" `{rule}`")).unwrap_or_default();
            (weight, format!("#{id} {word} to {hook} ({basis}{rule}{by}): {why}"))
        }
        AuditEntry::LateAnswer(late) => {
            let text = format!("#{} to {}, too late{}: {}", late.id, late.hook, by(&late.by), late.answer);
            (Weight::Plain, text)
        }
        AuditEntry::Injection(InjectionEntry { hook, role, placement, tokens, status, text, .. }) => {
            let tokens = counted(*tokens as u64, "token");
            (Weight::Plain, format!("{hook} as {role}, {placement}, {tokens}, {status}: {text}"))
        }
        AuditEntry::Message(MessageEntry { source, level, text, .. }) => {
            (bad_if(*level == Level::Error), format!("{level} from {source}: {text}"))
        }
        AuditEntry::Intent(intent) => (Weight::Plain, format!("started{}", because(intent.tool_call_id.as_deref()))),
        AuditEntry::Outcome(OutcomeEntry { success, tool_call_id }) => {
            let word = success.map_or("finished", |success| if success { "succeeded" } else { "failed" });
            (bad_if(*success == Some(false)), format!("{word}{}", because(tool_call_id.as_deref())))
        }
        AuditEntry::Failure(failure) => (Weight::Bad, format!("{}: {}", failure.part, failure.error)),
    }
}

fn log_summary(record: &Record<'_>, body: &Value) -> (Weight, String) {
    let text = |field: &str| plain(&body[field]);
    let said = |field: &str| if body[field].is_null() { String::new() } else { format!(": {}", text(field)) };
    match record.kind {
        Kind::Gap => (Weight::Bad, format!("{} lost{}", number(&body["lost"], "record"), said("why"))),
        Kind::Breach => (Weight::Bad, format!("the log was tampered with{}", said("what"))),
        Kind::Recovery => {
            (Weight::Plain, format!("{} of segment {}", number(&body["bytes"], "torn byte"), text("segment")))
        }
        Kind::Seal => (Weight::Plain, format!("{}, after {}", text("reason"), number(&body["records"], "record"))),
        Kind::Genesis | Kind::KeyRotation => (Weight::Plain, format!("public key {}", text("public_key"))),
        Kind::Segment | Kind::Checkpoint => (Weight::Plain, format!("covers {}", counted(record.seq, "record"))),
        _ => (Weight::Plain, plain(body)),
    }
}

fn number(value: &Value, thing: &str) -> String {
    value.as_u64().map_or_else(|| format!("{} {thing}s", plain(value)), |number| counted(number, thing))
}

/// Formats a value: text without quotes, null as a dash, all else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}
