//! Reassembly of emissions from a log.

use std::time::{Duration, SystemTime};

use amplifier_audit::{
    AssembledEntry, EmissionAssembler, Folder, Log, Operations, UnassignedRecord, has_marker, read_records,
};
use amplifier_core::{
    ActionKind, Actor, ApprovalDecision, ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, AuditRecord,
    DataStatus, DecisionBasis, DecisionKind, EventData, EventEntry, EventName, HookReportEntry, IntentEntry, Level,
    MessageEntry, OutcomeEntry, RecordedEmission, TOOL_PRE, data,
};
use serde_json::Value;
use tempfile::TempDir;

fn record(event: &str, entry: AuditEntry) -> AuditRecord {
    let event: EventName = event.parse().unwrap();
    AuditRecord { at: SystemTime::UNIX_EPOCH, session: Some("s-1".to_owned()), turn: 1, event, entry }
}

fn event(name: &str, data: EventData) -> AuditRecord {
    record(
        name,
        AuditEntry::Event(EventEntry {
            data: data.into(),
            decision: DecisionKind::Continue,
            denied_by: None,
            reason: None,
        }),
    )
}

fn message(name: &str, text: &str) -> AuditRecord {
    let (source, text) = ("hook:x".to_owned(), text.to_owned());
    record(name, AuditEntry::Message(MessageEntry { shown: true, source, level: Level::Info, text }))
}

fn log(records: &[AuditRecord]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::at(folder.path().join("audit"), folder.path().join("key")).open().unwrap();
    records.iter().for_each(|record| _ = log.take(record).unwrap());
    log.seal_blocking("s-1", "complete").unwrap();
    log.close().unwrap();
    folder
}

/// The reassembled emissions of the session, and the unassigned records.
fn assembled(folder: &TempDir) -> (Vec<RecordedEmission>, Vec<UnassignedRecord>) {
    let storage = Folder::new(folder.path().join("audit"));
    let mut assembler = EmissionAssembler::new();
    let (mut found, mut unassigned) = (Vec::new(), Vec::new());
    read_records(&storage, |record| {
        if record.session.is_some() {
            for entry in assembler.push(record, &storage).unwrap() {
                match entry {
                    AssembledEntry::Emission(emission) => found.push(*emission),
                    AssembledEntry::Unassigned(record) => unassigned.push(record),
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(assembler.finish(), [], "the seal has given all of them");
    (found, unassigned)
}

#[test]
fn data_is_whole_redacted_in_a_file_of_its_own_erased_or_withheld() {
    let deep = (0..200).fold(Value::from("password=hunter2hunter2"), |inner, _| vec![inner].into());
    let folder = log(&[
        event("tool:pre", data! { "n": 1 }),
        event("tool:pre", data! { "password": "hunter2hunter2" }),
        event("tool:pre", data! { "text": "x".repeat(20_000) }),
        event("tool:pre", data! { "deep": deep }),
    ]);
    let statuses = |folder| {
        let emissions = assembled(folder).0;
        emissions.iter().map(|one| (one.report.data_status, one.report.data.is_some())).collect::<Vec<_>>()
    };
    let expected = [
        (DataStatus::Whole, true),
        (DataStatus::Redacted, true),
        (DataStatus::Whole, true),
        (DataStatus::Withheld, false),
    ];
    assert_eq!(statuses(&folder), expected);
    let large = assembled(&folder).0.remove(2);
    assert_eq!(large.report.data.unwrap()["text"].as_str().unwrap().len(), 20_000);
    std::fs::remove_dir_all(folder.path().join("audit/blobs")).unwrap();
    assert_eq!(statuses(&folder)[2], (DataStatus::Erased, false));
    assert_eq!(assembled(&folder).0[2].report.decision, None);
}

#[test]
fn a_body_that_is_not_what_was_recorded_is_never_shown() {
    let folder = log(&[event("tool:pre", data! { "text": "x".repeat(20_000) })]);
    let blobs = std::fs::read_dir(folder.path().join("audit/blobs")).unwrap();
    let inner = blobs.flat_map(|blob| std::fs::read_dir(blob.unwrap().path()).unwrap()).next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&inner).unwrap();
    std::fs::write(&inner, text.replacen('x', "y", 1)).unwrap();
    let storage = Folder::new(folder.path().join("audit"));
    let mut errors = Vec::new();
    read_records(&storage, |record| {
        errors.extend(record.whole_body(&storage).err().map(|error| error.to_string()));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("was altered"), "{errors:?}");
}

#[test]
fn however_long_a_session_is_few_emissions_are_held_and_what_comes_too_late_stands_alone() {
    let mut records: Vec<_> = (0..50).map(|n| event("tool:post", data! { "n": n })).collect();
    records.insert(0, event("tool:pre", data! {}));
    records.insert(2, message("tool:pre", "in time"));
    records.push(message("tool:pre", "too late"));
    let (found, unassigned) = assembled(&log(&records));
    assert_eq!(found.iter().map(|one| one.seq).collect::<Vec<_>>(), found_in_order(&found));
    let texts: Vec<&str> = found[0].report.messages.iter().map(|told| told.text.as_str()).collect();
    assert_eq!((found.len(), texts), (51, vec!["in time"]));
    let unassigned: Vec<_> = unassigned.iter().map(|one| (one.kind.as_str(), one.body["text"].as_str())).collect();
    assert_eq!(unassigned, [("message", Some("too late")), ("seal", None)]);
}

fn found_in_order(found: &[RecordedEmission]) -> Vec<u64> {
    let mut order: Vec<u64> = found.iter().map(|one| one.seq).collect();
    order.sort_unstable();
    order
}

#[test]
fn operations_without_an_outcome_are_in_doubt() {
    let call = |id: &str| Some(id.to_owned());
    let intent =
        |id| record(TOOL_PRE.name().as_str(), AuditEntry::Intent(IntentEntry { digest: None, tool_call_id: call(id) }));
    let outcome = AuditEntry::Outcome(OutcomeEntry { success: Some(true), tool_call_id: call("a") });
    let folder = log(&[intent("a"), intent("b"), record("tool:post", outcome)]);
    let mut operations = Operations::new();
    read_records(&Folder::new(folder.path().join("audit")), |record| {
        operations.observe(record);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(operations.unresolved().len(), 1);
    let calls: Vec<_> = operations.into_unresolved().into_iter().map(|one| one.tool_call_id).collect();
    assert_eq!(calls, [call("b")]);
}

#[test]
fn only_whole_markers_count_as_such() {
    let marker = "[redacted kind=password len=14 hmac=0123456789abcdef]";
    assert!(has_marker(&format!("{{\"a\":\"x {marker}\"}}")));
    assert!(!has_marker("[redacted kind=password len=14 hmac=012]"));
    assert!(!has_marker(&"[redacted kind=".repeat(3)));
}

#[test]
fn a_question_is_open_until_it_is_decided_however_much_happens_meanwhile() {
    let report = AuditEntry::HookReport(HookReportEntry {
        hook: "guard".to_owned(),
        answer: ActionKind::AskUser,
        took: Duration::ZERO,
        reason: None,
        error: None,
        suppressed_output: false,
    });
    let request = AuditEntry::ApprovalRequest(ApprovalRequestEntry {
        id: 1,
        hook: "guard".to_owned(),
        prompt: "Sure?".to_owned(),
        options: Vec::new(),
        timeout: Duration::from_secs(60),
        default: amplifier_core::DefaultDecision::Deny,
        digest: data! {}.digest().unwrap(),
        changed_after_asking: false,
        compared_with: None,
    });
    let decision = AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
        id: Some(1),
        prompt: None,
        hook: "guard".to_owned(),
        decision: ApprovalDecision {
            by: Some(Actor::new("ann", "console")),
            ..ApprovalDecision::new(true, DecisionBasis::Answer, "User allowed: Sure?")
        },
    });
    let ask = AuditEntry::Event(EventEntry {
        data: data! {}.into(),
        decision: DecisionKind::AskUser,
        denied_by: None,
        reason: None,
    });
    let mut records = vec![record("tool:pre", ask), record("tool:pre", report), record("tool:pre", request)];
    records.extend((0..30).map(|n| event("tool:post", data! { "n": n })));
    records.push(AuditRecord { at: SystemTime::UNIX_EPOCH + Duration::from_secs(5), ..record("tool:pre", decision) });
    let (found, _) = assembled(&log(&records));
    let approval = &found[0].report.approvals[0];
    let decision = approval.decision.as_ref().unwrap();
    assert_eq!(decision.by.as_ref().map(|by| (by.name.as_str(), by.via.as_str())), Some(("ann", "console")));
    let decided = (decision.granted, decision.basis, approval.waited_ms, approval.prompt.as_deref());
    assert_eq!((found.len(), decided), (31, (true, DecisionBasis::Answer, Some(5000), Some("Sure?"))));
    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(serde_json::from_value::<RecordedEmission>(json).unwrap(), found[0], "it is read as it is written");
}
