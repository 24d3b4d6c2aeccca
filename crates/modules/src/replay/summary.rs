//! Summaries of decisions.

use std::collections::BTreeMap;

use amplifier_core::{ActionKind, DecisionKind, EmissionReport, EventData, Outcome};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::builtin::MARKER_IN_INPUT;

/// A decision of hooks on an event, with the hooks that made it and their reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecisionSummary {
    /// Kind of the decision.
    pub decision: DecisionKind,
    /// Names of the hooks that made the decision.
    pub decided_by: Vec<String>,
    /// The reason for a denial, the prompts, or the injected texts.
    pub reason: Option<String>,
    /// The modified fields by JSON Pointer, with their new values; `null` for a removed field.
    pub fields: BTreeMap<String, Value>,
}

impl DecisionSummary {
    /// Summarizes a report; `None` if the log no longer has the decision. A report does not list modified fields.
    pub fn new(report: &EmissionReport) -> Option<Self> {
        report.decision.map(|decision| Self::summarize(decision, report))
    }

    /// Summarizes an outcome, with its modifications of `data`.
    pub(super) fn from_outcome(outcome: &Outcome, data: &EventData) -> Self {
        let report = outcome.report_with(None);
        let is_changed = outcome.denial().is_none() && report.answered(ActionKind::Modify).next().is_some();
        let fields = if is_changed { changes(data, &outcome.data) } else { BTreeMap::new() };
        Self { fields, ..Self::summarize(outcome.decision.kind(), &report) }
    }

    /// Returns `true` if the decision is about a redaction marker in the input of a tool, which the log has in place of a secret.
    pub fn is_about_marker(&self) -> bool {
        self.decision == DecisionKind::Deny && self.reason.as_deref() == Some(MARKER_IN_INPUT)
    }

    fn summarize(decision: DecisionKind, report: &EmissionReport) -> Self {
        let answered = |answer| report.answered(answer).map(str::to_owned).collect();
        let (decided_by, reason) = match decision {
            DecisionKind::Deny => (report.denied_by.iter().cloned().collect(), report.reason.clone()),
            DecisionKind::AskUser => {
                let requested: Vec<_> = report.approvals.iter().filter(|one| report.requests(one)).collect();
                let prompts = requested.iter().filter_map(|approval| approval.prompt.as_deref());
                // A record without approvals still has the answers of hooks.
                let by = match requested.is_empty() {
                    true => answered(ActionKind::AskUser),
                    false => requested.iter().map(|approval| approval.hook.clone()).collect(),
                };
                (by, joined(prompts))
            }
            DecisionKind::InjectContext => {
                let texts = report.injections.iter().map(|injection| injection.text.as_str());
                (answered(ActionKind::InjectContext), joined(texts))
            }
            DecisionKind::Modify => (answered(ActionKind::Modify), None),
            DecisionKind::Continue | DecisionKind::Cancelled => Default::default(),
        };
        Self { decision, decided_by, reason, fields: BTreeMap::new() }
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Returns the modified fields with their new values.
fn changes(old: &EventData, new: &EventData) -> BTreeMap<String, Value> {
    let (mut old, mut new) = (old.clone().into_map(), new.clone().into_map());
    // Set by the kernel at every emission.
    old.remove("timestamp");
    new.remove("timestamp");
    let mut found = BTreeMap::new();
    compare(&old, &new, "", &mut found);
    found
}

fn compare(old: &Map<String, Value>, new: &Map<String, Value>, at: &str, found: &mut BTreeMap<String, Value>) {
    let pointer = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(before), value) if before == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => compare(before, after, &pointer(key), found),
            (_, value) => _ = found.insert(pointer(key), value.clone()),
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        found.insert(pointer(key), Value::Null);
    }
}
