//! The records of a session, and their names.

use amplifier_core::testing::{CollectingDisplay, EventRecorder, ManualClock};
use amplifier_core::{
    AuditEntry, Conversation, Coordinator, EventData, EventEntry, HookRegistry, HookResult, InjectionTooLarge, Map,
    MemoryAudit, TOOL_POST, TOOL_PRE, ToolPost, ToolPre, Verdict, data,
};
use futures::FutureExt;
use serde_json::{Value, json};

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

fn tool_post() -> ToolPost {
    ToolPost::new("Bash", Map::new(), "done", true, 5)
}

// ---- the session's name --------------------------------------------------------------------------------------------

/// Whatever the hook answers, the session keeps its name: for the operation and for the hooks that follow.
fn check_session_id(answer: HookResult) {
    let (session, audit) = {
        let audit = MemoryAudit::new();
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("hook").run(move |_| answer.clone());
        (Coordinator::builder(hooks).session_id("real").audit(audit.clone()).build(), audit)
    };
    session.hooks().hook("*").named("after").run(|event| assert_eq!(event.session_id(), Some("real"))).unwrap();
    session.hooks().set_default_fields([("session_id", "forged")]);
    let forged = EventData::from(tool_pre().with("session_id", "forged"));
    let (verdict, outcome) = session.emit_with_outcome(TOOL_PRE, forged).now_or_never().unwrap();
    assert!(outcome.reports().all(|report| report.error.is_none()), "{outcome:?}");
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    assert_eq!((data.session_id(), &Value::from(data.clone())["session_id"]), (Some("real"), &json!("real")));
    assert!(audit.records().iter().all(|record| record.session.as_deref() == Some("real")));
}

#[test]
fn the_session_id_cannot_be_forged() {
    check_session_id(HookResult::proceed());
    check_session_id(HookResult::set("session_id", "forged"));
    check_session_id(HookResult::modify(data! { "session_id": "forged" }));
    check_session_id(HookResult::modify(data! {}));
}

/// Hooks that two sessions share; the first of them answers so.
fn two_sessions(answer: HookResult) -> [(&'static str, Coordinator, MemoryAudit); 2] {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("hook").run(move |_| answer.clone());
    ["first", "second"].map(|id| {
        let audit = MemoryAudit::new();
        (id, Coordinator::builder(hooks.clone()).session_id(id).audit(audit.clone()).build(), audit)
    })
}

#[test]
fn sessions_that_share_hooks_keep_their_own_names() {
    for answer in [
        HookResult::proceed(),
        HookResult::set("session_id", "forged"),
        HookResult::modify(data! { "session_id": "forged" }),
        HookResult::modify(data! {}),
    ] {
        let sessions = two_sessions(answer);
        let seen = EventRecorder::watch(sessions[0].1.hooks());
        sessions[0].1.hooks().set_reserved_fields([("session_id", "forged")]);
        for (id, session, audit) in sessions.iter().chain(&sessions) {
            let forged = EventData::from(tool_pre().with("session_id", "forged"));
            let verdict = session.emit(TOOL_PRE, forged).now_or_never().unwrap();
            let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
            assert_eq!((data.session_id(), &Value::from(data.clone())["session_id"]), (Some(*id), &json!(id)));
            assert!(audit.records().iter().all(|record| record.session.as_deref() == Some(*id)));
            assert_eq!(recorded_data(audit)["session_id"], *id);
        }
        let heard: Vec<_> = seen.events().iter().map(|(_, data)| data.session_id().unwrap().to_owned()).collect();
        assert_eq!(heard, ["first", "second", "first", "second"]);
    }
}

#[test]
fn data_that_went_through_one_session_carries_the_name_of_the_next() {
    let [(_, first, _), (_, second, _)] = two_sessions(HookResult::proceed());
    let verdict = first.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    let verdict = second.emit(TOOL_PRE, data).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    assert_eq!(data.session_id(), Some("second"));
}

#[test]
fn events_of_the_registry_itself_belong_to_the_only_session() {
    let hooks = HookRegistry::new();
    let session = |id: Option<&str>| {
        let builder = Coordinator::builder(hooks.clone());
        id.map_or_else(|| Coordinator::builder(hooks.clone()), |id| builder.session_id(id)).build()
    };
    let check = |expected: Option<&str>| {
        for named in [None, Some("named")] {
            let data = named.map_or_else(tool_pre, |named| tool_pre().with("session_id", named));
            let outcome = hooks.emit(TOOL_PRE, data).now_or_never().unwrap();
            assert_eq!(outcome.data.session_id(), expected.or(named));
        }
    };
    let first = session(Some("first"));
    let child = first.child().session_id("child").build();
    drop(Coordinator::builder(hooks.clone()).session_id("first"));
    check(Some("first"));
    let second = session(Some("second"));
    check(None);
    drop((first, child));
    check(Some("second"));
    let nameless = session(None);
    check(None);
    let verdict = nameless.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    assert_eq!(data.session_id(), None);
    drop(nameless);
    check(Some("second"));
    drop(second);
    check(None);
    let _first = session(Some("first"));
    hooks.set_reserved_fields([("session_id", "reserved")]);
    drop(session(Some("second")));
    check(Some("reserved"));
}

#[test]
fn fields_that_were_reserved_before_stay_reserved() {
    let hooks = HookRegistry::new();
    hooks.set_reserved_fields([("session_id", "real")]);
    hooks.set_reserved_fields([("tenant", "acme")]);
    hooks.on("some:event", |_| HookResult::modify(data! { "session_id": "forged", "tenant": "forged" })).unwrap();
    let forged = data! { "session_id": "forged", "tenant": "forged" };
    let outcome = hooks.emit("some:event", forged).now_or_never().unwrap().unwrap();
    assert_eq!((&outcome.data["session_id"], &outcome.data["tenant"]), (&json!("real"), &json!("acme")));
}

#[test]
fn the_session_id_cannot_be_forged_by_an_answer_that_is_processed_alone() {
    for answer in [
        HookResult::proceed(),
        HookResult::set("session_id", "forged"),
        HookResult::modify(data! { "session_id": "forged" }),
        HookResult::modify(data! {}),
    ] {
        for (id, session, audit) in two_sessions(HookResult::proceed()) {
            let (event, forged) = (TOOL_PRE.name(), data! { "session_id": "forged" });
            let routed = session.process_hook_result(&event, "hook", answer.clone(), forged);
            let verdict = routed.now_or_never().unwrap().unwrap();
            let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
            assert_eq!((data.session_id(), &recorded_data(&audit)["session_id"]), (Some(id), &json!(id)));
        }
    }
}

// ---- the record ----------------------------------------------------------------------------------------------------

fn operations(audit: &MemoryAudit) -> Vec<Value> {
    let records = audit.records().into_iter().map(|record| serde_json::to_value(&record).unwrap());
    records.filter(|record| record["kind"] == "intent" || record["kind"] == "outcome").collect()
}

#[test]
fn intent_and_outcome_of_an_operation_can_be_paired() {
    let audit = MemoryAudit::new();
    let hooks = HookRegistry::builder().clock(ManualClock::new()).build();
    hooks.hook(TOOL_PRE).run(|_| HookResult::set("tool_input", json!({ "command": "ls" })));
    let session = Coordinator::builder(hooks).session_id("s").audit(audit.clone()).build();
    session.begin_turn();
    let verdict = session.emit(TOOL_PRE, tool_pre().with("tool_call_id", "call-1")).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    let after = session.emit(TOOL_POST, tool_post().with("tool_call_id", "call-1")).now_or_never().unwrap();
    assert!(after.is_proceed());

    let record = |kind: &str, event: &str, own: Value| {
        let common = json!({
            "at": "1970-01-01T00:00:00.000000Z", "session": "s", "turn": 1, "event": event, "kind": kind,
            "tool_call_id": "call-1",
        });
        let (Value::Object(common), Value::Object(own)) = (common, own) else { panic!("objects") };
        Value::Object(common.into_iter().chain(own).collect())
    };
    // The intent names what will run: the data after the modification.
    let intent = record("intent", "tool:pre", json!({ "digest": data.digest().unwrap().to_string() }));
    let outcome = record("outcome", "tool:post", json!({ "success": true }));
    assert_eq!(operations(&audit), [intent, outcome]);
}

#[test]
fn an_operation_whose_result_is_withheld_has_an_outcome_too() {
    let audit = MemoryAudit::new();
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_POST).named("censor").run(|_| HookResult::deny("secret"));
    let session = Coordinator::builder(hooks).audit(audit.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    assert!(!session.emit(TOOL_POST, tool_post()).now_or_never().unwrap().is_proceed());
    let kinds: Vec<_> = operations(&audit).iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds, ["intent", "outcome"], "the tool has run");
}

#[test]
fn an_operation_without_an_event_at_its_end_has_the_outcome_that_its_agent_reports() {
    let audit = MemoryAudit::new();
    let session = Coordinator::builder(HookRegistry::new()).audit(audit.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre().with("tool_call_id", "a")).now_or_never().unwrap().is_proceed());
    session.record_outcome(&"error:tool".parse().unwrap(), Some("a".to_owned()), Some(false)).unwrap();
    let records = operations(&audit);
    assert_eq!(records[1]["event"], "error:tool");
    assert_eq!((&records[1]["tool_call_id"], &records[1]["success"]), (&json!("a"), &json!(false)));
}

/// The data of the last event on the record.
fn recorded_data(audit: &MemoryAudit) -> EventData {
    let events = audit.records().into_iter().filter_map(|record| match record.entry {
        AuditEntry::Event(EventEntry { data, .. }) => data.to_map().map(EventData::from),
        _ => None,
    });
    events.last().unwrap()
}

/// The record of an answer that is processed alone, as far as it tells something: no times, no empty fields.
fn recorded(event: &str, answer: HookResult) -> (Result<Verdict, InjectionTooLarge>, Vec<Value>) {
    let (audit, conversation, display) = (MemoryAudit::new(), Conversation::new(), CollectingDisplay::new());
    let builder = Coordinator::builder(HookRegistry::new()).audit(audit.clone()).context(conversation.clone());
    let session = builder.display(display.clone()).build();
    let event = event.parse().unwrap();
    let routed = session.process_hook_result(&event, "hook", answer, data! { "n": 1 }).now_or_never().unwrap();
    if routed.is_err() {
        assert_eq!((conversation.history(), display.messages()), (vec![], vec![]), "nothing of it is routed");
    }
    let records = audit.records().into_iter().map(|record| {
        let Value::Object(mut fields) = serde_json::to_value(&record).unwrap() else { panic!("{record:?}") };
        fields.retain(|key, value| !matches!(key.as_str(), "at" | "took_ns" | "turn") && !value.is_null());
        Value::Object(fields)
    });
    (routed, records.collect())
}

fn report(answer: &str, reason: &str) -> Value {
    json!({
        "kind": "hook_report", "event": "tool:post", "hook": "hook", "answer": answer, "reason": reason,
    })
}

#[test]
fn a_denial_that_is_processed_alone_is_on_the_record() {
    let (routed, records) = recorded("tool:post", HookResult::deny("secret"));
    assert_eq!(routed, Ok(Verdict::Denied { by: "hook".into(), reason: "secret".to_owned() }));
    let event = json!({
        "kind": "event", "event": "tool:post", "data": { "n": 1 }, "decision": "deny", "denied_by": "hook",
        "reason": "secret",
    });
    let outcome = json!({ "kind": "outcome", "event": "tool:post" });
    assert_eq!(records, [event, report("deny", "secret"), outcome]);
}

#[test]
fn a_modification_that_is_processed_alone_is_on_the_record() {
    let (routed, records) = recorded("tool:post", HookResult::set("n", 2).because("rounded"));
    assert_eq!(routed, Ok(Verdict::Proceed(data! { "n": 2 })));
    assert_eq!((&records[0]["kind"], &records[0]["decision"]), (&json!("event"), &json!("modify")));
    assert_eq!(records[1..], [report("modify", "rounded"), json!({ "kind": "outcome", "event": "tool:post" })]);
}

#[test]
fn what_is_redacted_is_not_on_the_record_either() {
    let hooks = HookRegistry::new();
    hooks.on(TOOL_POST, |_| HookResult::set("tool_result", "***"));
    let audit = MemoryAudit::new();
    let session = Coordinator::builder(hooks).audit(audit.clone()).build();
    assert!(session.emit(TOOL_POST, tool_post()).now_or_never().unwrap().is_proceed());
    assert_eq!(recorded_data(&audit)["tool_result"], "***");
    let (_, records) = recorded("tool:post", HookResult::set("n", "***"));
    assert_eq!(records[0]["data"], json!({ "n": "***" }), "also if it is processed alone");
}

#[test]
fn an_injection_that_is_refused_when_processed_alone_is_on_the_record() {
    let text = "x".repeat(10_241);
    let (routed, records) = recorded("tool:post", HookResult::inject(text.as_str()).because("long").info("hi"));
    assert_eq!(routed, Err(InjectionTooLarge { hook: "hook".to_owned(), size: 10_241, limit: 10_240 }));
    let event = json!({ "kind": "event", "event": "tool:post", "data": { "n": 1 }, "decision": "inject_context" });
    let injection = json!({
        "kind": "injection", "event": "tool:post", "hook": "hook", "role": "system", "placement": records[2]["placement"],
        "bytes": 10_241, "tokens": 2_560, "fate": "refused", "text": text,
    });
    assert_eq!(records, [event, report("inject_context", "long"), injection]);
}

#[test]
fn a_modification_of_what_is_only_observed_is_not_on_the_record() {
    for answer in [HookResult::set("n", 2), HookResult::modify(data! {})] {
        let (hooks, audit) = (HookRegistry::builder().clock(ManualClock::new()).build(), MemoryAudit::new());
        let after = answer.clone();
        hooks.hook("session:end").named("editor").run(move |_| after.clone()).unwrap();
        let session = Coordinator::builder(hooks).audit(audit.clone()).build();
        let emitted = data! { "n": 1, "timestamp": "1970-01-01T00:00:00.000000Z" };
        let verdict = session.emit("session:end", data! { "n": 1 }).now_or_never().unwrap().unwrap();
        assert_eq!((verdict, recorded_data(&audit)), (Verdict::Proceed(emitted.clone()), emitted));

        let (_, records) = recorded("session:end", answer);
        assert_eq!(records[0]["data"], json!({ "n": 1 }), "nor if it is processed alone");
    }
}
