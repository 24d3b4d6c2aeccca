//! The feed, tested with real logs.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::common::{Place, all, event, message, read_to, turn, until};
use amplifier_audit::{Durability, Kind, Proof, RecordFilter};
use amplifier_core::{
    ActionKind, Actor, ApprovalDecision, ApprovalDecisionEntry, ApprovalOption, ApprovalRequestEntry, AuditEntry,
    AuditRecord, DecisionBasis, DecisionKind, DefaultDecision, EventEntry, FailureEntry, HookReportEntry,
    InjectionEntry, InjectionStatus, IntentEntry, LateAnswerEntry, Level, MessageEntry, OutcomeEntry, Placement, Role,
    data,
};
use amplifier_server::api_types::AuditStatus;
use amplifier_server::feed::Feed;
use serde_json::json;

fn of_session(session: &str) -> RecordFilter {
    RecordFilter { session: Some(session.to_owned()), ..RecordFilter::default() }
}

fn of_kind(kind: Kind) -> RecordFilter {
    RecordFilter { kinds: vec![kind], ..RecordFilter::default() }
}

/// Waits for the status of a complete verification of this many records.
fn verified(feed: &Feed, size: u64) -> AuditStatus {
    until("the verification", || {
        let status = feed.status();
        (!status.checking && (!status.sound || status.verified_to >= size)).then_some(status)
    })
}

#[test]
fn records_of_several_writers_come_in_order_without_holes() {
    let place = Place::new();
    let feed = place.feed();
    assert_eq!((feed.cursor(), feed.records(&RecordFilter::default(), 0, 10).unwrap().records.len()), (0, 0));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let log = place.options().segment_bytes(40_000).durability(Durability::Async).open().unwrap();
            std::thread::spawn(move || {
                for n in 0..250 {
                    log.take(&message(&format!("s-{writer}"), &format!("{n}"))).unwrap();
                    if n % 10 == 0 {
                        std::thread::yield_now();
                    }
                }
                log.close().unwrap();
            })
        })
        .collect();
    // Read while the log is written, in small pages.
    let mut seen = Vec::new();
    let mut after = 0;
    until("all records", || {
        let page = feed.records(&RecordFilter::default(), after, 7).unwrap();
        seen.extend(page.records);
        after = page.cursor;
        (seen.iter().filter(|record| record.kind == "message").count() == 1000).then_some(())
    });
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let seqs: Vec<u64> = seen.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    let mut next: HashMap<String, usize> = HashMap::new();
    for record in seen.iter().filter(|record| record.kind == "message") {
        let next = next.entry(record.session.clone().unwrap()).or_default();
        assert_eq!(record.body["text"], next.to_string());
        *next += 1;
    }
    assert!(place.segment(3).exists(), "there are several segments");
    read_to(&feed, after);
    let size = feed.cursor();
    assert!(verified(&feed, size).sound);
}

#[test]
fn another_feed_goes_on_from_a_cursor() {
    let place = Place::new();
    let log = place.open();
    (0..300).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    log.checkpoint().unwrap();
    let size = log.status().size;
    let feed = place.feed();
    read_to(&feed, size);
    let page = feed.records(&RecordFilter::default(), 0, 100).unwrap();
    assert_eq!((page.records.len(), page.cursor, page.first), (100, 100, 0));
    drop(feed);
    log.take(&message("s", "after the restart")).unwrap();
    log.close().unwrap();
    let feed = place.feed();
    read_to(&feed, size + 1);
    let rest = feed.records(&RecordFilter::default(), page.cursor, 1000).unwrap();
    assert_eq!(rest.records.first().unwrap().seq, 100);
    assert!(rest.records.iter().any(|record| record.body["text"] == "after the restart"));
    assert_eq!(rest.cursor, feed.cursor());
    let beyond = feed.records(&RecordFilter::default(), rest.cursor + 50, 10).unwrap();
    assert_eq!((beyond.records.len(), beyond.cursor), (0, rest.cursor));
}

#[test]
fn half_a_line_is_waited_for() {
    let place = Place::new();
    let log = place.open();
    (0..5).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    log.close().unwrap();
    let text = std::fs::read(place.segment(1)).unwrap();
    let end = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let half = end + 50;
    let other = Place::new();
    std::fs::create_dir_all(other.log()).unwrap();
    std::fs::write(other.segment(1), &text[..half]).unwrap();
    let feed = other.feed();
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    read_to(&feed, lines - 1);
    // An open operation is reported as unresolved.
    let status = until("the verdict", || Some(feed.status()).filter(|status| !status.problems.is_empty()));
    assert!(!status.sound && status.problems[0].text.contains("without an end"), "{status:?}");
    assert_eq!(feed.cursor(), lines - 1);
    OpenOptions::new().append(true).open(other.segment(1)).unwrap().write_all(&text[half..]).unwrap();
    read_to(&feed, lines);
    assert!(until("soundness", || Some(feed.status()).filter(|status| status.sound)).problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_retention_removes_is_gone_and_the_rest_is_still_found() {
    let place = Place::new();
    let log = place.options().segment_bytes(30_000).open().unwrap();
    let fill = |session: &str| {
        (0..200).for_each(|n| _ = log.take(&message(session, &n.to_string())).unwrap());
        log.seal_blocking(session, "complete").unwrap();
    };
    fill("old");
    fill("new");
    let feed = place.feed();
    read_to(&feed, log.status().size);
    assert_eq!(feed.records(&RecordFilter::default(), 0, 1).unwrap().first, 0);
    log.retain(2).unwrap();
    let size = log.status().size;
    // Segments go one after another, and the last two stay.
    let kept = std::fs::read_dir(place.log()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let oldest = kept.filter(|file| file.starts_with("seg-")).min().unwrap();
    let text = std::fs::read_to_string(place.log().join(oldest)).unwrap();
    let first =
        serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()["seq"].as_u64().unwrap();
    assert!(first > 0);
    until("the removal", || (feed.records(&RecordFilter::default(), 0, 1).unwrap().first == first).then_some(()));
    read_to(&feed, size);
    let left = all(&feed, &RecordFilter::default(), 50);
    assert_eq!(left.iter().map(|record| record.seq).collect::<Vec<_>>(), (first..feed.cursor()).collect::<Vec<_>>());
    assert!(verified(&feed, size).sound, "{:?}", feed.status());
    // Removed records count as verified until the whole log is verified again.
    let status = feed.verify().await.unwrap();
    assert!(status.proves.iter().any(|text| text.contains("older records were removed")), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_by_what_they_are_about_in_both_directions() {
    let place = Place::new();
    let log = place.open();
    turn(&log, "s-1", "Allow").await;
    turn(&log, "s-2", "Deny").await;
    (0..600).for_each(|n| _ = log.take(&message("s-3", &format!("caf\u{e9} {n}"))).unwrap());
    log.take(&event("s-3", "tool:pre", json!({ "tool_name": "Write", "text": "x".repeat(20_000) }))).unwrap();
    log.take(&event("s-3", "tool:pre", json!({ "tool_name": "Write", "text": "y".repeat(100_000) }))).unwrap();
    for (by, size) in [("guard", 20_000), ("other", 100_000)] {
        let mut denied = event("s-3", "tool:pre", json!({ "tool_name": "Write", "text": "z".repeat(size) }));
        if let AuditEntry::Event(EventEntry { decision, denied_by, .. }) = &mut denied.entry {
            (*decision, *denied_by) = (DecisionKind::Deny, Some(by.to_owned()));
        }
        log.take(&denied).unwrap();
    }
    // An alias of `tool:error`, which hooks on `tool:*` receive.
    log.take(&event("s-4", "error:tool", json!({ "tool_name": "Write" }))).unwrap();
    log.checkpoint().unwrap();
    let feed = place.feed();
    read_to(&feed, log.status().size);
    let everything = all(&feed, &RecordFilter::default(), 1000);
    let check = |filter: RecordFilter,
                 expected: &dyn Fn(&amplifier_server::api_types::LogRecord) -> bool,
                 least: usize| {
        let wanted: Vec<u64> = everything.iter().filter(|record| expected(record)).map(|record| record.seq).collect();
        assert!(wanted.len() >= least, "{filter:?}");
        let forward: Vec<u64> = all(&feed, &filter, 9).iter().map(|record| record.seq).collect();
        assert_eq!(forward, wanted, "{filter:?}");
        let (mut backward, mut before) = (Vec::new(), u64::MAX);
        loop {
            let page = feed.records_before(&filter, before, 9).unwrap();
            let seqs: Vec<u64> = page.records.iter().map(|record| record.seq).collect();
            backward.splice(0..0, seqs);
            if page.cursor == 0 || page.cursor == before {
                break;
            }
            before = page.cursor;
        }
        assert_eq!(backward, wanted, "{filter:?}");
    };
    check(RecordFilter::default(), &|_| true, 600);
    check(of_session("s-2"), &|record| record.session.as_deref() == Some("s-2"), 5);
    check(of_session("s"), &|_| false, 0);
    check(of_kind(Kind::HookReport), &|record| record.kind == "hook_report", 5);
    let event = |pattern: &str| RecordFilter { event: Some(pattern.parse().unwrap()), ..RecordFilter::default() };
    check(event("tool:*"), &|record| record.event.as_deref().is_some_and(|event| event.contains("tool")), 9);
    check(event("tool:error"), &|record| record.event.as_deref() == Some("error:tool"), 1);
    check(event("prompt:submit"), &|record| record.event.as_deref() == Some("prompt:submit"), 2);
    let hook = RecordFilter { hook: Some("guard".to_owned()), ..RecordFilter::default() };
    check(hook, &|record| record.body["hook"] == "guard" || record.body["denied_by"] == "guard", 7);
    let other = RecordFilter { hook: Some("other".to_owned()), ..RecordFilter::default() };
    let denied = everything.iter().rfind(|record| record.session.as_deref() == Some("s-3")).unwrap().seq;
    check(other, &|record| record.seq == denied, 1);
    let text = RecordFilter { text: Some("caf\u{e9} 59".to_owned()), ..RecordFilter::default() };
    check(text, &|record| record.body["text"].as_str().is_some_and(|text| text.starts_with("caf\u{e9} 59")), 11);
    // BodyReader are included up to a size, and referenced beyond.
    let large = all(&feed, &RecordFilter { kinds: vec![Kind::Event], ..of_session("s-3") }, 10);
    assert_eq!(large[0].body["data"]["text"].as_str().unwrap().len(), 20_000);
    assert!(large[1].body["blob"].as_str().unwrap().starts_with("sha256:"), "{:?}", large[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_has_what_hooks_and_people_made_of_each_event() {
    let place = Place::new();
    let log = place.open();
    turn(&log, "s-1", "Allow").await;
    turn(&log, "s-2", "Allow").await;
    log.take(&event("s-1", "tool:pre", json!({ "tool_name": "Write", "text": "x".repeat(20_000) }))).unwrap();
    log.seal("s-1", "complete").await.unwrap();
    let feed = place.feed();
    read_to(&feed, log.status().size);
    let timeline = feed.timeline("s-1", 0, 100).unwrap();
    assert_eq!(timeline.cursor, feed.cursor());
    let items = timeline.items;
    let events: Vec<&str> = items.iter().map(|item| item.emission.report.event.as_str()).collect();
    assert_eq!(
        events,
        [
            "session:start",
            "prompt:submit",
            "tool:pre",
            "approval:required",
            "user:notification",
            "approval:granted",
            "tool:post",
            "tool:pre",
            "tool:pre",
            "seal"
        ]
    );
    let emission = &items[2].emission;
    let written = &emission.report;
    let asked = &written.approvals[0];
    let decision = asked.decision.as_ref().unwrap();
    assert_eq!(
        (decision.granted, asked.prompt.as_deref(), decision.basis.as_str(), emission.session.as_deref()),
        (true, Some("Run it?"), "answer", Some("s-1"))
    );
    let by = decision.by.as_ref().unwrap();
    assert_eq!((by.name.as_str(), by.via.as_str()), ("alice", "console"));
    assert_eq!(asked.id.as_deref(), Some(format!("s-1.{}.1", emission.run).as_str()));
    assert!(asked.created_at.is_some() && asked.decided_at.is_some() && asked.decided_seq.unwrap() > emission.seq);
    assert_eq!((written.hooks[0].hook.as_str(), written.hooks[0].answer.as_str()), ("guard", "ask_user"));
    assert_eq!(written.hooks[0].reason.as_deref(), Some("it is new"));
    assert!(written.hooks[0].duration_ns > 0 && emission.turn == Some(1));
    let post = &items[6].emission.report;
    assert_eq!((post.injections[0].hook.as_str(), post.injections[0].text.as_str()), ("linter", "line 3 is too long"));
    let messages: Vec<_> = post.messages.iter().map(|said| (said.source.as_str(), said.text.as_str())).collect();
    let failed = "failed at tool:post: panicked: no luck; the operation went on without this hook";
    assert_eq!(messages, [("hook:broken", failed), ("hook:linter", "linted")]);
    assert!(post.hooks[1].error.as_ref().unwrap().contains("no luck"), "{:?}", post.hooks[1]);
    let duration = &post.data.as_ref().unwrap()["duration_ms"];
    assert_eq!((post.result.as_ref().unwrap().success, duration), (Some(true), &json!(7)));
    let denied = &items[7].emission.report;
    assert_eq!((denied.decision, denied.denied_by.as_deref()), (Some(DecisionKind::Deny), Some("guard")));
    assert_eq!(denied.reason.as_deref(), Some("not here"));
    assert!(items[7].denied && !items[6].denied);
    let long = &items[8];
    assert!(long.truncated && long.emission.report.data.as_ref().unwrap()["text"].as_str().unwrap().len() < 5_000);
    assert!(!items[2].truncated);

    // Pages give the same result.
    let (mut paged, mut after) = (Vec::new(), 0);
    loop {
        let page = feed.timeline("s-1", after, 2).unwrap();
        paged.extend(page.items);
        if page.cursor >= feed.cursor() {
            break;
        }
        after = page.cursor;
    }
    assert_eq!(paged, items);
    // Items that may change are returned again.
    let open = feed.timeline("s-2", 0, 100).unwrap();
    let first = feed.timeline("s-2", 0, 2).unwrap();
    assert_eq!((first.items.len(), first.cursor), (2, first.items[1].emission.seq + 1));
    assert_eq!(open.cursor, open.items[0].emission.seq);
    assert_eq!(feed.timeline("s-9", 0, 100).unwrap().items, []);
}

/// A log with an approval request that expired, two late answers, and an operation without a result.
fn recorded_calls() -> Vec<AuditRecord> {
    let digest = data! { "a": 1 }.digest().unwrap();
    let (guard, late) = ("guard".to_owned(), |answer: &str, name: &str| {
        let (hook, answer) = ("guard".to_owned(), answer.to_owned());
        LateAnswerEntry { id: 7, hook, answer, by: Some(Actor::new(name, "console")) }
    });
    let call = |id: &str, decision| {
        let data = data! { "tool_name": "Bash", "tool_call_id": id }.into();
        AuditEntry::Event(EventEntry { data, decision, denied_by: None, reason: None })
    };
    let entries = [
        call("a", DecisionKind::AskUser),
        AuditEntry::HookReport(HookReportEntry {
            hook: guard.clone(),
            answer: ActionKind::AskUser,
            took: Duration::from_millis(2),
            reason: None,
            error: None,
            suppressed_output: true,
        }),
        AuditEntry::Injection(InjectionEntry {
            hook: guard.clone(),
            role: Role::System,
            placement: Placement::History,
            bytes: 9,
            tokens: 2,
            status: InjectionStatus::NoContext,
            text: "Mind it…".to_owned(),
        }),
        AuditEntry::Message(MessageEntry {
            shown: false,
            source: "hook:guard".to_owned(),
            level: Level::Warning,
            text: "Look.".to_owned(),
        }),
        AuditEntry::Failure(FailureEntry { part: "display".into(), error: "no screen".to_owned() }),
        AuditEntry::ApprovalRequest(ApprovalRequestEntry {
            id: 7,
            hook: guard.clone(),
            prompt: "Sure?".to_owned(),
            options: vec![ApprovalOption::from("Allow once")],
            timeout: Duration::from_secs(60),
            default: DefaultDecision::Deny,
            digest,
            changed_after_asking: true,
            compared_with: None,
        }),
        AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
            id: Some(7),
            prompt: None,
            hook: guard,
            decision: ApprovalDecision::new(false, DecisionBasis::Timeout, "Approval timed out"),
        }),
        AuditEntry::LateAnswer(late("Allow once", "ann")),
        AuditEntry::LateAnswer(late("Deny", "ben")),
        call("b", DecisionKind::Continue),
        AuditEntry::Intent(IntentEntry { digest: Some(digest), tool_call_id: Some("b".to_owned()) }),
        call("c", DecisionKind::Continue),
        AuditEntry::Intent(IntentEntry { digest: Some(digest), tool_call_id: Some("c".to_owned()) }),
    ];
    let template = event("s-1", "tool:pre", json!({}));
    let at = |second: usize| std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(second as u64);
    let mut records: Vec<_> = entries
        .into_iter()
        .enumerate()
        .map(|(second, entry)| AuditRecord { at: at(second), entry, ..template.clone() })
        .collect();
    let post = event("s-1", "tool:post", json!({ "tool_call_id": "c" }));
    let outcome = AuditEntry::Outcome(OutcomeEntry { success: Some(false), tool_call_id: Some("c".to_owned()) });
    records.extend([AuditRecord { at: at(20), ..post.clone() }, AuditRecord { at: at(20), entry: outcome, ..post }]);
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_loses_nothing_that_the_log_knows_of_an_emission() {
    let place = Place::new();
    let log = place.open();
    for record in recorded_calls() {
        log.take(&record).unwrap();
    }
    log.seal("s-1", "complete").await.unwrap();
    let feed = place.feed();
    read_to(&feed, log.status().size);
    let items = serde_json::to_value(feed.timeline("s-1", 0, 100).unwrap().items).unwrap();
    let asked = &items[0];
    let approval = &asked["approvals"][0];
    assert!(approval["id"].as_str().is_some_and(|id| id.starts_with("s-1.") && id.ends_with(".7")), "{approval}");
    assert_eq!(
        approval["late_answers"],
        json!([
            { "label": "Allow once", "by": { "name": "ann", "via": "console" } },
            { "label": "Deny", "by": { "name": "ben", "via": "console" } },
        ])
    );
    let decision = json!({ "granted": false, "basis": "timeout", "reason": "Approval timed out" });
    assert_eq!((&approval["decision"], &approval["waited_ms"]), (&decision, &json!(1000)));
    assert_eq!(approval["changed_after_asking"], true);
    assert_eq!(approval["options"], json!([{ "label": "Allow once", "effect": "allow_once" }]));
    assert_eq!((&approval["timeout_s"], &approval["default"]), (&json!(60.0), &json!("deny")));
    assert!(approval["created_at"].is_string() && approval["decided_at"].is_string(), "{approval}");
    let report = &asked["hooks"][0];
    assert_eq!((&report["duration_ns"], &report["suppressed_output"]), (&json!(2_000_000), &json!(true)));
    let injection = &asked["injections"][0];
    assert_eq!((&injection["bytes"], &injection["status"]), (&json!(9), &json!("no_context")));
    assert_eq!(asked["messages"][0]["shown"], false);
    assert_eq!(asked["failures"], json!([{ "part": "display", "error": "no screen" }]));
    assert_eq!(
        (&asked["denied"], &asked["data_status"], &asked["unreadable"]),
        (&json!(true), &json!("whole"), &json!(0))
    );
    for (item, call, unresolved) in [(&items[1], "b", true), (&items[2], "c", false)] {
        let intent = &item["intent"];
        assert_eq!((&intent["tool_call_id"], &intent["unresolved"]), (&json!(call), &json!(unresolved)), "{item}");
        assert!(intent["digest"].is_string(), "{intent}");
    }
    assert_eq!(items[3]["result"], json!({ "success": false, "tool_call_id": "c" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_hooks_and_decisions_are_counted() {
    let place = Place::new();
    let log = place.open();
    turn(&log, "s-1", "Allow").await;
    turn(&log, "s-2", "Deny").await;
    let usage = json!({ "provider": "p", "usage": { "input_tokens": 30, "output_tokens": 12 } });
    log.take(&event("s-1", "provider:response", usage)).unwrap();
    let plan = json!({ "mount_plan": { "agent_name": "tester", "parent_session_id": "s-1" }, "source": "startup" });
    log.take(&event("s-3", "session:start", plan)).unwrap();
    log.take(&event("s-3", "session:end", json!({ "reason": "complete" }))).unwrap();
    log.seal("s-3", "complete").await.unwrap();
    let feed = place.feed();
    read_to(&feed, log.status().size);

    let one = feed.session("s-1").unwrap();
    assert_eq!((one.turns, one.tool_calls, one.denials, one.errors, one.tokens), (1, 2, 1, 1, 42));
    assert_eq!((one.workspace.as_deref(), one.prompt.as_deref()), (Some("/home/alice/project"), Some("write a poem")));
    assert!(one.is_running && one.ended.is_none() && one.started_at <= one.updated_at);
    let two = feed.session("s-2").unwrap();
    assert_eq!((two.denials, two.errors), (2, 0), "the question was refused, and the other tool denied");
    let three = feed.session("s-3").unwrap();
    assert_eq!((three.name.as_deref(), three.parent.as_deref()), (Some("tester"), Some("s-1")));
    assert_eq!((three.ended.as_deref(), three.is_running), (Some("complete"), false));
    let order: Vec<String> = feed.sessions().into_iter().map(|session| session.id).collect();
    assert_eq!(order, ["s-3", "s-1", "s-2"]);

    let hooks = feed.hooks(None);
    let names: Vec<&str> = hooks.iter().map(|hook| hook.hook.as_str()).collect();
    assert_eq!(names, ["broken", "guard", "linter"]);
    let guard = &hooks[1];
    assert_eq!((guard.calls, guard.denials, guard.asks, guard.errors), (4, 2, 2, 0));
    assert_eq!((guard.events.clone(), guard.latency.iter().sum::<u64>()), (vec!["tool:pre".to_owned()], 4));
    assert!(guard.p50_ns <= guard.p95_ns && guard.p95_ns <= guard.max_ns && guard.p50_ns > 0);
    assert_eq!(guard.recent.iter().sum::<u64>(), 4);
    assert_eq!((hooks[0].errors, hooks[2].injects), (1, 1));
    assert_eq!(feed.hooks(Some("s-2"))[0].calls, 2);
    assert_eq!(feed.hooks(Some("s-9")), []);

    let history = feed.history(None, None, None, 10).unwrap();
    let told: Vec<_> = history.iter().map(|one| (one.session.as_str(), one.granted, one.prompt.as_str())).collect();
    assert_eq!(told, [("s-2", false, "Run it?"), ("s-1", true, "Run it?")]);
    assert_eq!(history[0].by.as_ref().unwrap().name, "alice");
    assert_eq!(feed.history(Some("s-1"), Some("guard"), None, 10).unwrap(), history[1..]);
    assert_eq!(feed.history(None, None, Some(history[0].seq), 10).unwrap(), history[1..]);
    assert_eq!(feed.history(None, Some("linter"), None, 10).unwrap(), []);
}

#[test]
fn large_denials_count_and_denials_that_come_too_late_do_not() {
    let place = Place::new();
    let log = place.open();
    let large = "x".repeat(100_000);
    let emitted = |name: &str, decision, by: Option<&str>| {
        let data = data! { "tool_name": "Write", "text": large.clone() };
        let denied_by = by.map(str::to_owned);
        (name.to_owned(), AuditEntry::Event(EventEntry { data: data.into(), decision, denied_by, reason: None }))
    };
    let decided = |hook: &str, granted| {
        let (hook, reason) = (hook.to_owned(), large.clone());
        (
            "tool:pre".to_owned(),
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
                id: None,
                prompt: None,
                hook,
                decision: ApprovalDecision::new(granted, DecisionBasis::Rule, reason),
            }),
        )
    };
    let entries = [
        emitted("tool:pre", DecisionKind::Deny, Some("guard")),
        emitted("prompt:complete", DecisionKind::Deny, Some("guard")),
        emitted("tool:pre", DecisionKind::AskUser, None),
        decided("guard", true),
        emitted("tool:pre", DecisionKind::AskUser, None),
        decided("guard", false),
    ];
    for (name, entry) in entries {
        let record = event("s-1", &name, json!({}));
        log.take(&AuditRecord { entry, ..record }).unwrap();
    }
    log.checkpoint().unwrap();
    let feed = place.feed();
    read_to(&feed, log.status().size);
    // The same number as in `amplifier audit stats`.
    assert_eq!(feed.session("s-1").unwrap().denials, 2);
}

/// A verified log, which is then changed.
fn tampered(records: usize, tamper: impl FnOnce(&Place)) -> (Place, Feed, AuditStatus) {
    let place = Place::new();
    let log = place.open();
    (0..records).for_each(|n| _ = log.take(&message("s", &format!("number {n} of them"))).unwrap());
    log.close().unwrap();
    let feed = place.feed();
    let size = records as u64 + 2;
    read_to(&feed, size);
    let before = verified(&feed, size);
    assert!(before.sound && before.problems.is_empty() && before.verified_to >= size, "{before:?}");
    assert!(before.checkpoint.is_some() && !before.proves.is_empty() && !before.cannot_prove.is_empty());
    tamper(&place);
    let after = until("the break", || Some(feed.status()).filter(|status| !status.sound && !status.checking));
    (place, feed, after)
}

fn at(text: &[u8], needle: &str) -> usize {
    memchr::memmem::find(text, needle.as_bytes()).unwrap()
}

#[test]
fn a_byte_that_is_changed_in_what_was_verified_is_noticed() {
    let (_place, feed, status) = tampered(30, |place| {
        let text = std::fs::read(place.segment(1)).unwrap();
        let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
        file.write_all_at(b"7", at(&text, "number 10 of") as u64 + 7).unwrap();
    });
    let seq = status.problems[0].seq.unwrap();
    assert!((11..=14).contains(&seq), "{status:?}");
    assert_eq!(status.verified_to, seq);
    assert!(status.problems[0].text.contains("hash"), "{status:?}");
    assert_eq!(status.proves, Vec::<String>::new());
    assert!(feed.cursor() > seq, "what is there is still shown");
}

#[test]
fn a_broken_log_goes_on_and_what_happens_from_then_on_is_seen() {
    let (place, feed, status) = tampered(30, |place| {
        let text = std::fs::read(place.segment(1)).unwrap();
        let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
        file.write_all_at(b"7", at(&text, "number 10 of") as u64 + 7).unwrap();
    });
    let (broken, end) = (status.problems[0].seq.unwrap(), feed.cursor());
    // The writer continues after the last valid record, and reuses numbers.
    let log = place.open();
    (0..5).for_each(|n| _ = log.take(&message("after", &format!("number {n} after the break"))).unwrap());
    log.checkpoint().unwrap();
    assert!(log.status().size < end, "{:?}", log.status());
    let check = |feed: &Feed| {
        let page = until("what came after", || {
            let page = feed.records(&of_session("after"), 0, 100).unwrap();
            (page.records.len() == 5).then_some(page)
        });
        let numbers: Vec<u64> = page.records.iter().map(|record| record.seq).collect();
        assert!(numbers[0] >= end && numbers.is_sorted(), "{numbers:?} after {end}");
        assert_eq!(feed.records_before(&of_session("after"), u64::MAX, 100).unwrap().records, page.records);
        assert_eq!(feed.session("after").unwrap().last_seq, numbers[4]);
        assert_eq!(feed.timeline("after", 0, 10).unwrap().cursor, feed.cursor());
        let all = feed.records(&RecordFilter::default(), 0, 1000).unwrap().records;
        assert!(all.is_sorted_by_key(|record| record.seq) && all.iter().any(|record| record.kind == "breach"));
        // Records before the break are intact, whatever follows.
        let status = until("the place of the break", || {
            Some(feed.status()).filter(|status| !status.checking && status.size == feed.cursor())
        });
        assert_eq!((status.sound, status.verified_to), (false, broken), "{status:?}");
    };
    check(&feed);
    // A later reader gets the same result.
    check(&place.feed());
}

#[test]
fn a_log_that_is_cut_or_replaced_or_gone_is_broken() {
    let (_place, _feed, status) = tampered(30, |place| {
        let text = std::fs::read(place.segment(1)).unwrap();
        std::fs::write(place.segment(1), &text[..at(&text, "number 10 of")]).unwrap();
        let end = text[..at(&text, "number 10 of")].iter().rposition(|byte| *byte == b'\n').unwrap();
        std::fs::write(place.segment(1), &text[..=end]).unwrap();
    });
    assert!(status.problems.iter().any(|problem| problem.text.contains("only")), "{status:?}");
    let (_place, _feed, status) = tampered(30, |place| std::fs::remove_file(place.segment(1)).unwrap());
    assert!(status.problems[0].text.contains("missing"), "{status:?}");
    let (_place, _feed, status) = tampered(30, |place| {
        let other = Place::new();
        let log = other.open();
        (0..50).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
        log.close().unwrap();
        std::fs::copy(other.segment(1), place.segment(1)).unwrap();
    });
    assert!(status.problems.iter().any(|problem| problem.text.contains("another log")), "{status:?}");
    assert_eq!(status.verified_to, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_log_that_grows_is_found_when_asked() {
    let place = Place::new();
    let log = place.open();
    (0..20).for_each(|n| _ = log.take(&message("s", &format!("number {n} of them"))).unwrap());
    log.checkpoint().unwrap();
    let feed = place.feed();
    let size = log.status().size;
    read_to(&feed, size);
    verified(&feed, size);
    let text = std::fs::read(place.segment(1)).unwrap();
    // Changed and extended between two checks, so the file seems to have only grown.
    let file = OpenOptions::new().write(true).open(place.segment(1)).unwrap();
    file.write_all_at(b"7", at(&text, "number 10 of") as u64 + 7).unwrap();
    (0..20).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    let status = feed.verify().await.unwrap();
    assert!(!status.sound, "{status:?}");
    assert!((11..=14).contains(&status.problems[0].seq.unwrap()), "{status:?}");
}

#[test]
fn the_key_is_compared_and_proofs_can_be_taken_away() {
    let place = Place::new();
    let log = place.open();
    (0..20).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    log.checkpoint().unwrap();
    let key = log.status().public_key.unwrap();
    let size = log.status().size;
    let feed = Feed::open(&place.log(), Some(key)).unwrap();
    read_to(&feed, size);
    assert!(verified(&feed, size).proves.iter().any(|text| text.contains("the expected key")));
    let proof: Proof = serde_json::from_value(feed.proof(5).unwrap()).unwrap();
    assert_eq!((proof.seq, proof.check(&key).is_ok()), (5, true));
    assert!(feed.proof(size + 5).is_err());
    let other = Place::new();
    let wrong = other.open().status().public_key.unwrap();
    let feed = Feed::open(&place.log(), Some(wrong)).unwrap();
    read_to(&feed, size);
    let status = until("the break", || Some(feed.status()).filter(|status| !status.sound && !status.checking));
    assert_eq!(status.verified_to, 0);
    assert!(status.problems[0].text.contains("the key that was given"), "{status:?}");
}

#[test]
fn what_is_new_is_verified_as_it_comes() {
    let place = Place::new();
    let log = place.options().segment_bytes(20_000).checkpoint_every(8).open().unwrap();
    let feed = place.feed();
    for round in 0..12 {
        (0..40).for_each(|n| _ = log.take(&message("s", &format!("{round} {n}"))).unwrap());
        log.checkpoint().unwrap();
        let size = log.status().size;
        let status = verified(&feed, size);
        assert!(status.sound, "{status:?}");
        assert_eq!((status.size >= size, status.exposed >= size), (true, true));
    }
}

#[test]
fn requests_to_a_model_are_shown_whole_although_they_are_kept_as_what_they_add() {
    let place = Place::new();
    let log = place.open();
    let messages: Vec<_> =
        (0..20).map(|n| json!({ "role": "user", "content": format!("{n} {}", "x".repeat(400)) })).collect();
    for count in 1..=20 {
        let data = json!({ "messages": messages[..count] });
        let receipt = log.take(&event("s", "provider:request", data)).unwrap();
        log.flush_blocking(receipt).unwrap();
    }
    log.seal_blocking("s", "complete").unwrap();
    let segment = std::fs::read_to_string(place.segment(1)).unwrap();
    assert_eq!(segment.matches("\"body\":{\"base\":").count(), 19);
    let feed = place.feed();
    let filter = RecordFilter { event: Some("provider:request".parse().unwrap()), ..RecordFilter::default() };
    let counts = |bodies: Vec<&serde_json::Value>| -> Vec<usize> {
        bodies.into_iter().map(|body| body["messages"].as_array().unwrap().len()).collect()
    };
    let expected: Vec<usize> = (1..=20).collect();
    let forward = until("all records are read", || {
        let page = feed.records(&filter, 0, 100).unwrap();
        (page.records.len() == 20).then_some(page)
    });
    assert_eq!(counts(forward.records.iter().map(|record| &record.body["data"]).collect()), expected);
    let backward = feed.records_before(&filter, u64::MAX, 100).unwrap();
    assert_eq!(counts(backward.records.iter().map(|record| &record.body["data"]).collect()), expected);
    let timeline = feed.timeline("s", 0, 100).unwrap();
    let requests = timeline.items.iter().filter(|item| item.emission.report.event == "provider:request");
    let bodies: Vec<_> = requests.map(|item| item.emission.report.data.clone().unwrap().into()).collect();
    assert_eq!(counts(bodies.iter().collect()), expected);
}
