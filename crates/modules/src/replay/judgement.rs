//! What hooks made of an event.

use std::collections::BTreeMap;

use amplifier_audit::RecordedEmission;
use amplifier_core::{ActionKind, Decision, EventData, Outcome};
use serde::Serialize;
use serde_json::{Map, Value};

/// What hooks made of an event: the decision, whose it is, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// `continue`, `modify`, `inject_context`, `ask_user` or `deny`.
    pub decision: String,
    /// The hooks that wanted it so.
    pub by: Vec<String>,
    /// In their words: the reason, the question, or what the agent is told.
    pub why: Option<String>,
    /// The fields that were changed, by JSON Pointer, with what they became (`null` for those that were removed).
    pub fields: BTreeMap<String, Value>,
}

impl Judgement {
    /// What hooks made of this data.
    pub(super) fn of(outcome: &Outcome, data: &EventData) -> Self {
        let answered = |answer: ActionKind| {
            let reports = outcome.reports().filter(move |report| report.answer == answer);
            reports.map(|report| report.hook.to_owned()).collect::<Vec<_>>()
        };
        let (by, why) = match &outcome.decision {
            Decision::Continue => Default::default(),
            Decision::Modify => (answered(ActionKind::Modify), None),
            Decision::InjectContext => said(outcome.injections().iter().map(|told| (&*told.hook, &*told.value.text))),
            Decision::AskUser => said(outcome.approvals().iter().map(|asked| (&*asked.hook, &*asked.prompt))),
            Decision::Deny(denial) => (vec![denial.by.to_string()], denial.reason.clone()),
        };
        let is_changed = outcome.denial().is_none() && outcome.reports().any(|one| one.answer == ActionKind::Modify);
        let fields = if is_changed { changes(data, &outcome.data) } else { BTreeMap::new() };
        Self { decision: outcome.decision.as_str().to_owned(), by, why, fields }
    }

    /// What hooks made of a recorded event; none if the log does not have it any more. Which fields they changed is not recorded.
    pub fn recorded(emission: &RecordedEmission) -> Option<Self> {
        let decision = emission.decision.clone()?;
        let (by, why) = match decision.as_str() {
            "deny" => (emission.denied_by.iter().cloned().collect(), emission.reason.clone()),
            "ask_user" => {
                let by = emission.answered("ask_user").map(str::to_owned).collect();
                (by, said(emission.approvals.iter().filter_map(|one| Some(("", one.prompt.as_deref()?)))).1)
            }
            "inject_context" => {
                let by = emission.answered("inject_context").map(str::to_owned).collect();
                (by, said(emission.injections.iter().map(|one| ("", one.text.as_str()))).1)
            }
            "modify" => (emission.answered("modify").map(str::to_owned).collect(), None),
            _ => Default::default(),
        };
        Some(Self { decision, by, why, fields: BTreeMap::new() })
    }
}

/// Who said something, and what, one after another.
fn said<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> (Vec<String>, Option<String>) {
    let (by, texts): (Vec<String>, Vec<&str>) = all.map(|(hook, text)| (hook.to_owned(), text)).unzip();
    let why = (!texts.is_empty()).then(|| texts.join("; "));
    (by, why)
}

/// The fields that differ, with what they became.
fn changes(old: &EventData, new: &EventData) -> BTreeMap<String, Value> {
    let (mut old, mut new) = (old.clone().into_map(), new.clone().into_map());
    // The kernel's own, at every emission.
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
