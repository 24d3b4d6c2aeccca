//! Compares what came of a step with what the case expects.

use amplifier_core::{EventData, Outcome, Verdict};
use serde_json::{Value, json};

use crate::conformance::case::Expect;
use crate::conformance::world::World;

/// The numbers of messages, records and requests before a step.
pub(super) struct Before {
    calls: usize,
    asked: usize,
    context: usize,
    shown: usize,
    records: usize,
}

impl Before {
    pub(super) fn new(world: &World) -> Self {
        Self {
            calls: world.hooks.calls.lock().unwrap().len(),
            asked: world.person.requests().len(),
            context: world.context.messages.lock().unwrap().len(),
            shown: world.display.shown.messages().len(),
            records: world.audit.log.records().len(),
        }
    }
}

/// The result of a step.
#[derive(Default)]
pub(super) struct Came {
    pub outcome: Option<Outcome>,
    pub verdict: Option<Verdict>,
    pub responses: Option<Vec<Value>>,
    pub names: Option<Vec<String>>,
    pub error: Option<&'static str>,
}

/// Every difference, in words.
pub(super) fn differences(expect: &Expect, came: &Came, world: &World, before: &Before) -> Vec<String> {
    let mut found = Differences::default();
    found.same("error", expect.error.as_deref(), came.error);
    if expect.error.is_none() && came.error.is_some() {
        found.add("error", json!(null), json!(came.error));
    }
    found.wanted("names", &expect.names, &came.names);
    found.wanted("responses", &expect.responses, &came.responses.clone().or_else(|| emitted_responses(came)));
    check_outcome(&mut found, expect, came);
    check_denial(&mut found, expect, came);
    check_data(&mut found, expect, came);
    check_calls(&mut found, expect, world, before);
    check_session(&mut found, expect, world, before);
    found.0
}

fn emitted_responses(came: &Came) -> Option<Vec<Value>> {
    let outcome = came.outcome.as_ref()?;
    Some(outcome.responses().iter().map(|response| json!(response.value)).collect())
}

fn check_outcome(found: &mut Differences, expect: &Expect, came: &Came) {
    let Some(outcome) = &came.outcome else { return };
    found.same("decision", expect.decision.as_deref(), Some(outcome.decision.as_str()));
    let approvals = outcome.approvals().iter().map(|one| json!({ "hook": &*one.hook, "prompt": one.prompt }));
    found.list("approvals", expect.approvals.as_ref(), approvals.collect());
    let injections = outcome.injections().iter().map(|one| {
        json!({
            "hook": &*one.hook, "text": one.text, "role": one.role, "ephemeral": one.placement.is_ephemeral(),
            "append_to_last_tool_result": one.placement == amplifier_core::Placement::LastToolResult,
        })
    });
    found.list("injections", expect.injections.as_ref(), injections.collect());
    let messages =
        outcome.messages().iter().map(|one| json!({ "hook": &*one.hook, "text": one.text, "level": one.level }));
    found.list("messages", expect.messages.as_ref(), messages.collect());
    let reports = outcome.reports().map(|report| json!({ "hook": report.hook, "answer": report.answer_or_failure() }));
    found.list("reports", expect.reports.as_ref(), reports.collect());
    let flat = json!(outcome.flat());
    for (field, wanted) in &expect.flat {
        if *wanted != flat[field] {
            found.add(&format!("flat.{field}"), wanted.clone(), flat[field].clone());
        }
    }
}

fn check_denial(found: &mut Differences, expect: &Expect, came: &Came) {
    let (by, reason) = match (&came.verdict, &came.outcome) {
        (Some(Verdict::Denied { by, reason }), _) => (Some(by.to_string()), Some(reason.clone())),
        (None, Some(outcome)) => {
            let denial = outcome.denial();
            (denial.map(|denial| denial.by.to_string()), denial.and_then(|denial| denial.reason.clone()))
        }
        _ => (None, None),
    };
    let verdict = came.verdict.as_ref().map(|verdict| if verdict.is_proceed() { "proceed" } else { "denied" });
    found.same("verdict", expect.verdict.as_deref(), verdict);
    found.same("by", expect.by.as_deref(), by.as_deref());
    found.same("reason", expect.reason.as_deref(), reason.as_deref());
    for part in &expect.reason_has {
        if !reason.as_deref().unwrap_or_default().contains(part) {
            found.add("reason_has", json!(part), json!(reason));
        }
    }
}

fn check_data(found: &mut Differences, expect: &Expect, came: &Came) {
    let data = match (&came.verdict, &came.outcome) {
        (Some(Verdict::Proceed(data)), _) => data.clone(),
        (Some(Verdict::Denied { .. }), _) => EventData::new(),
        (None, Some(outcome)) => outcome.data.clone(),
        (None, None) => return,
    };
    found.wanted("timestamp", &expect.timestamp, &Some(data.timestamp().is_some_and(is_utc)));
    found.wanted("data", &expect.data.clone().map(Value::Object), &Some(without_timestamp(data)));
}

fn is_utc(timestamp: &str) -> bool {
    timestamp.ends_with('Z') && timestamp.parse::<jiff::Timestamp>().is_ok()
}

fn without_timestamp(mut data: EventData) -> Value {
    data.remove("timestamp");
    data.into()
}

fn check_calls(found: &mut Differences, expect: &Expect, world: &World, before: &Before) {
    let calls = world.hooks.calls.lock().unwrap();
    let calls = &calls[before.calls..];
    let last = |hook: &str| calls.iter().rfind(|call| call.hook == hook);
    found.wanted("ran", &expect.ran, &Some(calls.iter().map(|call| call.hook.clone()).collect()));
    for (hook, wanted) in &expect.saw {
        let saw = last(hook).map_or(Value::Null, |call| without_timestamp(call.data.clone()));
        if *wanted != saw {
            found.add(&format!("saw.{hook}"), wanted.clone(), saw);
        }
    }
    for (hook, wanted) in &expect.told {
        let told = last(hook).map_or(Value::Null, |call| json!(call.told));
        if *wanted != told {
            found.add(&format!("told.{hook}"), wanted.clone(), told);
        }
    }
    for hook in &expect.stamped {
        if !last(hook).is_some_and(|call| call.data.timestamp().is_some_and(is_utc)) {
            found.add("stamped", json!(hook), Value::Null);
        }
    }
}

fn check_session(found: &mut Differences, expect: &Expect, world: &World, before: &Before) {
    let asked = world.person.requests();
    let asked = asked[before.asked..].iter().map(|request| {
        let offers = request.offers.iter().map(|offer| json!({ "operations": offer.operations, "scope": offer.scope }));
        let offers: Vec<_> = offers.collect();
        let labels: Vec<_> = request.options.iter().map(|option| &option.label).collect();
        let effects: Vec<_> = request.options.iter().map(|option| option.effect).collect();
        json!({
            "hook": &*request.hook, "event": request.event.as_str(), "prompt": request.prompt, "options": labels,
            "effects": effects, "timeout": request.timeout.as_secs_f64(), "default": request.default,
            "reason": request.reason, "data": without_timestamp(request.data.clone()),
            "offers": offers,
        })
    });
    found.list("asked", expect.asked.as_ref(), asked.collect());
    let messages = world.context.messages.lock().unwrap();
    let context = messages[before.context..].iter().map(|message| {
        let metadata = message.metadata();
        json!({
            "role": message.role, "content": message.content, "ephemeral": message.placement.is_ephemeral(),
            "append_to_last_tool_result": message.placement == amplifier_core::Placement::LastToolResult,
            "hook": metadata["hook_name"], "event": metadata["event"], "source": metadata["source"],
        })
    });
    found.list("context", expect.context.as_ref(), context.collect());
    let shown = world.display.shown.messages();
    let shown = shown[before.shown..].iter();
    let shown = shown.map(|message| json!({ "level": message.level, "text": message.text, "source": message.source }));
    found.list("shown", expect.shown.as_ref(), shown.collect());
    let records = world.audit.log.records();
    let kinds: Vec<_> = records[before.records..].iter().map(|record| record.entry.kind()).collect();
    let mut rest = kinds.iter();
    if !expect.audit.iter().all(|wanted| rest.any(|kind| kind == wanted)) {
        found.add("audit", json!(expect.audit), json!(kinds));
    }
    if expect.no_audit.iter().any(|unwanted| kinds.iter().any(|kind| kind == unwanted)) {
        found.add("no_audit", json!(expect.no_audit), json!(kinds));
    }
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn add(&mut self, what: &str, wanted: Value, got: Value) {
        self.0.push(format!("{what}: wanted {wanted}, got {got}"));
    }

    fn same(&mut self, what: &str, wanted: Option<&str>, got: Option<&str>) {
        if wanted.is_some() && wanted != got {
            self.add(what, json!(wanted), json!(got));
        }
    }

    fn wanted<T: PartialEq + serde::Serialize>(&mut self, what: &str, wanted: &Option<T>, got: &Option<T>) {
        if wanted.is_some() && wanted != got {
            self.add(what, json!(wanted), json!(got));
        }
    }

    /// The lists are of the same length, and each thing has the fields that are wanted.
    fn list(&mut self, what: &str, wanted: Option<&Vec<Value>>, got: Vec<Value>) {
        let Some(wanted) = wanted else { return };
        let same = |wanted: &Value, got: &Value| {
            wanted.as_object().unwrap().iter().all(|(field, value)| match field.as_str() {
                "text_has" => value
                    .as_array()
                    .map_or(vec![value], |all| all.iter().collect())
                    .iter()
                    .all(|part| got["text"].as_str().unwrap().contains(part.as_str().unwrap())),
                _ => got.get(field) == Some(value),
            })
        };
        if wanted.len() != got.len() || !wanted.iter().zip(&got).all(|(wanted, got)| same(wanted, got)) {
            self.add(what, json!(wanted), json!(got));
        }
    }
}
