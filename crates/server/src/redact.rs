//! Approval requests for viewers: without secrets, and without the nonce that an answer needs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use amplifier_audit::Redaction;
use amplifier_core::{ActionPreview, PreviewField, PreviewRow, PreviewRowKind};
use amplifier_link::{DecidedApproval, OpenApproval};
use serde_json::{Value, json};

use crate::access::Role;
use crate::api_types::{ApprovalFlood, ListedRule};

/// Placeholder for one line of a multi-line secret.
const REDACTED: &str = "[redacted]";

/// Removes secrets from what viewers receive. An approver sees the whole operation; a viewer sees no more than the
/// audit log has.
pub(crate) struct ViewerRedaction {
    // A std lock: nothing awaits while it is held.
    known: Mutex<HashMap<String, RedactedApproval>>,
}

/// Redacted form of an open approval request.
struct RedactedApproval {
    original: Weak<OpenApproval>,
    redacted: Arc<OpenApproval>,
}

impl ViewerRedaction {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default() }
    }

    /// Returns an approval request as this role sees it. The redacted form is made once and shared.
    pub(crate) fn approval(&self, approval: &Arc<OpenApproval>, role: Role) -> Arc<OpenApproval> {
        if sees_all(role) {
            return approval.clone();
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The nonce is new whenever a request is announced.
        if let Some(RedactedApproval { original, redacted }) = known().get(&approval.nonce)
            && original.as_ptr() == Arc::as_ptr(approval)
        {
            return redacted.clone();
        }
        let redacted = Arc::new(redacted(approval));
        let mut known = known();
        known.insert(
            approval.nonce.clone(),
            RedactedApproval { original: Arc::downgrade(approval), redacted: redacted.clone() },
        );
        // Drops closed requests now and then.
        if known.len().is_power_of_two() {
            known.retain(|_, one| one.original.strong_count() > 0);
        }
        redacted
    }
}

/// Returns `true` if this role sees approval requests unredacted.
pub(crate) fn sees_all(role: Role) -> bool {
    role >= Role::Approver
}

pub(crate) fn decision(mut decided: DecidedApproval, role: Role) -> DecidedApproval {
    if !sees_all(role) {
        redact(&mut decided.prompt);
        redact(&mut decided.reason);
        decided.operations.iter_mut().for_each(redact);
    }
    decided
}

/// Returns an approval rule as this role sees it.
pub(crate) fn rule(mut rule: ListedRule, role: Role) -> ListedRule {
    if !sees_all(role) {
        redact(&mut rule.rule.pattern);
        rule.rule.operation.iter_mut().for_each(redact);
        redact(&mut rule.explanation);
    }
    rule
}

/// Returns the report about too many requests as this role sees it.
pub(crate) fn flood(busy: Option<ApprovalFlood>, role: Role) -> Option<ApprovalFlood> {
    busy.map(|mut busy| {
        if !sees_all(role) {
            redact(&mut busy.pattern);
        }
        busy
    })
}

fn redacted(approval: &OpenApproval) -> OpenApproval {
    let mut approval = approval.clone();
    approval.nonce.clear();
    redact(&mut approval.prompt);
    approval.reason.iter_mut().for_each(redact);
    // Only approvers choose a rule.
    approval.offers.clear();
    let ActionPreview { target, warnings, body, fields, compared_with, .. } = &mut approval.preview;
    // The digest of a file with a short secret would reveal the secret.
    *compared_with = None;
    target.iter_mut().for_each(redact);
    warnings.iter_mut().for_each(redact);
    fields.iter_mut().for_each(redact_field);
    redact_rows(body);
    approval
}

/// Key of the redaction markers. It lives as long as the process: equal secrets have equal markers, and nobody outside
/// can test guesses.
fn key() -> Option<&'static [u8; 32]> {
    static KEY: LazyLock<Option<[u8; 32]>> = LazyLock::new(|| {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok().map(|()| key)
    });
    KEY.as_ref()
}

fn apply(value: &mut Value) {
    match key() {
        Some(key) => Redaction::standard().apply(key, value),
        None => *value = REDACTED.into(),
    }
}

fn redact(text: &mut String) {
    let mut value = Value::String(std::mem::take(text));
    apply(&mut value);
    *text = value.as_str().unwrap_or(REDACTED).to_owned();
}

/// Redacts a field. Its name can show that the value is a secret.
fn redact_field(PreviewField { name, value }: &mut PreviewField) {
    let read = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()));
    let mut named = json!({ name.as_str(): read });
    let before = named.clone();
    apply(&mut named);
    if named != before {
        *value = named.get(name.as_str()).map_or_else(|| REDACTED.to_owned(), Value::to_string);
    }
    redact(value);
}

/// Redacts the rows of a preview. Secrets may span lines, so the old and the new text are each redacted as a whole.
fn redact_rows(rows: &mut Vec<PreviewRow>) {
    if let Some(pretty) = redacted_json(rows) {
        *rows = pretty;
    }
    let side = |other: PreviewRowKind| {
        let lines: Vec<&str> = rows.iter().filter(|row| row.kind != other).map(|row| row.text.as_str()).collect();
        let mut text = lines.join("\n");
        redact(&mut text);
        text
    };
    let (old, new) = (side(PreviewRowKind::Added), side(PreviewRowKind::Removed));
    let (old, new): (HashSet<&str>, HashSet<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    for row in rows {
        let is_kept = (row.kind == PreviewRowKind::Added || old.contains(row.text.as_str()))
            && (row.kind == PreviewRowKind::Removed || new.contains(row.text.as_str()));
        if is_kept {
            continue;
        }
        let before = row.text.clone();
        redact(&mut row.text);
        if row.text == before {
            row.text = REDACTED.to_owned();
        }
    }
}

/// Redacts a tool's input shown as JSON, where field names show which values are secrets.
fn redacted_json(rows: &[PreviewRow]) -> Option<Vec<PreviewRow>> {
    if rows.iter().any(|row| row.kind != PreviewRowKind::Plain) || !rows.first()?.text.starts_with(['{', '[']) {
        return None;
    }
    let text = rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>().join("\n");
    let mut value: Value = serde_json::from_str(&text).ok()?;
    apply(&mut value);
    let text = serde_json::to_string_pretty(&value).ok()?;
    Some(text.split('\n').map(|line| PreviewRow::new(PreviewRowKind::Plain, line)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    fn redacted_body(rows: Vec<PreviewRow>) -> String {
        let mut rows = rows;
        redact_rows(&mut rows);
        rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn plain(text: &str) -> Vec<PreviewRow> {
        text.split('\n').map(|line| PreviewRow::new(PreviewRowKind::Plain, line)).collect()
    }

    #[test]
    fn a_key_of_several_lines_is_hidden_line_by_line_on_both_sides_of_a_diff() {
        let rows = vec![
            PreviewRow::new(PreviewRowKind::Gap, "@@ -1,4 +1,5 @@"),
            PreviewRow::new(PreviewRowKind::Context, "harmless"),
            PreviewRow::new(PreviewRowKind::Context, "-----BEGIN PRIVATE KEY-----"),
            PreviewRow::new(PreviewRowKind::Removed, "MIIEoldold"),
            PreviewRow::new(PreviewRowKind::Added, "MIIEnewnew"),
            PreviewRow::new(PreviewRowKind::Context, "-----END PRIVATE KEY-----"),
            PreviewRow::new(PreviewRowKind::Added, "also harmless"),
        ];
        let shown = redacted_body(rows);
        assert!(!shown.contains("MIIE"), "{shown}");
        assert!(shown.starts_with("@@ -1,4 +1,5 @@\nharmless\n") && shown.ends_with("\nalso harmless"), "{shown}");
        assert_eq!(shown.lines().count(), 7);
    }

    #[test]
    fn commands_and_json_keep_all_but_their_secrets() {
        let shown =
            redacted_body(plain(&format!("cd /srv\ncurl -H 'Authorization: Bearer {TOKEN}' https://x.example")));
        assert!(shown.starts_with("cd /srv\ncurl -H ") && shown.ends_with("https://x.example"), "{shown}");
        assert!(!shown.contains(TOKEN) && shown.contains("[redacted kind="), "{shown}");
        let shown = redacted_body(plain("{\n  \"password\": \"hunter2\",\n  \"to\": \"here\"\n}"));
        assert!(!shown.contains("hunter2") && shown.contains("\n  \"to\": \"here\"\n"), "{shown}");
        let harmless = "make\n{ not json";
        assert_eq!(redacted_body(plain(harmless)), harmless);
    }

    #[test]
    fn the_name_of_a_field_counts() {
        let redacted = |name: &str, value: &str| {
            let mut field = PreviewField { name: name.to_owned(), value: value.to_owned() };
            redact_field(&mut field);
            field.value
        };
        assert!(redacted("password", "\"hunter2\"").starts_with("\"[redacted kind=password "));
        assert!(!redacted("env", "{\"api_key\":\"xyz uvw\"}").contains("xyz"));
        assert_eq!(redacted("timeout", "60"), "60");
    }
}
