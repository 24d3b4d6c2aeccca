//! Requests to a model are kept as what they add to an earlier one, and read as they were made.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::disk::{Disk, Fault, Left};
use crate::common::{Place, message};
use amplifier_audit::{
    AssembledEntry, Body, BodyReader, Durability, EmissionAssembler, Folder, Kind, Log, LogOptions, Record, SigningKey,
    Storage, Verifier, has_marker, read_records,
};
use amplifier_core::{AuditEntry, AuditRecord, DataStatus, DecisionKind, EventData, EventEntry, PROVIDER_REQUEST};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A request with these messages.
fn request(session: &str, data: &Value) -> AuditRecord {
    let data = EventData::from(data.as_object().cloned().unwrap());
    let entry = AuditEntry::Event(EventEntry {
        data: data.into(),
        decision: DecisionKind::Continue,
        denied_by: None,
        reason: None,
    });
    AuditRecord {
        at: SystemTime::now(),
        session: Some(session.to_owned()),
        turn: 1,
        event: PROVIDER_REQUEST.name(),
        entry,
    }
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text, "metadata": { "turn": 3 } })
}

/// The data of the request number `n`.
fn data(n: usize, messages: &[Value]) -> Value {
    json!({ "model": "m", "messages": messages, "n": n, "parameters": {} })
}

/// A conversation as agents have them: a system prompt, and for each call what the model said and what a tool gave.
fn conversation(calls: usize) -> Vec<Value> {
    let mut messages = vec![said("system", &"Be careful. ".repeat(100)), said("user", "Tidy up \u{1f9f9}.")];
    for call in 0..calls {
        messages.push(said("assistant", &format!("I look at file {call}.")));
        messages.push(said("tool", &format!("{call}: {}", "a line of the file\n".repeat(20))));
    }
    messages
}

/// The bodies of all requests, read in order; each is also read alone, and backwards.
fn requests(storage: &dyn Storage) -> Vec<(String, Option<Value>)> {
    let (mut bodies, mut lines, mut found) = (BodyReader::new(), Vec::new(), Vec::new());
    let text = |body: Body<'_>| match body {
        Body::Whole(text) => Some(text.into_owned()),
        Body::Erased { .. } => None,
        Body::Withheld { .. } => panic!("nothing is withheld"),
    };
    read_records(storage, |record| {
        if record.kind == Kind::Event {
            let body = text(bodies.read(record, storage).unwrap());
            assert_eq!(text(record.whole_body(storage).unwrap()), body);
            lines.push((record.line().to_owned(), body.clone()));
            let body = body.map(|body| serde_json::from_str(&body).unwrap());
            found.push((record.session.as_deref().unwrap().to_owned(), body));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut bodies = BodyReader::new();
    for (line, body) in lines.iter().rev() {
        let record = Record::parse(line.as_bytes()).unwrap();
        assert_eq!(&text(bodies.read(&record, storage).unwrap()), body);
    }
    found
}

/// Checks that the log has exactly these requests, whole.
fn check_requests(log: &Path, given: &[(&str, Value)]) {
    let found = requests(&Folder::new(log));
    assert_eq!(found.len(), given.len());
    for ((session, body), (expected, data)) in found.iter().zip(given) {
        let body = body.as_ref().unwrap();
        assert_eq!((session.as_str(), &body["data"], &body["decision"]), (*expected, data, &json!("continue")));
        assert_eq!(body.get("base"), None);
    }
}

/// Returns the number of requests that name the record that they continue.
fn continued(log: &Path) -> usize {
    crate::common::lines(log).iter().filter(|line| line.contains(r#""body":{"base":"#)).count()
}

/// All bytes of a log, with its blobs.
fn size(folder: &Path) -> u64 {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() }).sum()
}

#[test]
fn a_call_of_a_long_conversation_takes_less_than_3_kb() {
    let place = Place::new();
    let log = place.open();
    let all = conversation(200);
    let (mut given, mut sizes) = (Vec::new(), vec![size(&place.log())]);
    for call in 0..200 {
        let data = data(call, &all[..2 + 2 * call]);
        let receipt = log.take(&request("s", &data)).unwrap();
        log.flush_blocking(receipt).unwrap();
        given.push(("s", data));
        sizes.push(size(&place.log()));
    }
    log.close().unwrap();
    let per_call = (size(&place.log()) - sizes[0]) / 200;
    let whole = given.iter().map(|(_, data)| data.to_string().len()).sum::<usize>() / 200;
    let most = sizes.windows(2).map(|pair| pair[1] - pair[0]).skip(1).max().unwrap();
    println!("{per_call} bytes a call, {most} at most after the first; whole, they would take {whole}");
    // Checkpoints are counted, too: whoever is slow signs more of them.
    assert!(per_call < 3_000 && whole > 50_000, "{per_call} of {whole}");
    assert_eq!(continued(&place.log()), 199);
    check_requests(&place.log(), &given);
    assert!(place.verify().is_sound());
}

#[test]
fn both_verifiers_find_a_log_of_continued_requests_sound_and_a_changed_one_not() {
    let place = Place::new();
    let log = place.options().blob_above(4_000).open().unwrap();
    let all = conversation(30);
    for call in 0..30 {
        _ = log.take(&request("s", &data(call, &all[..2 + 2 * call]))).unwrap();
    }
    log.seal_blocking("s", "complete").unwrap();
    log.close().unwrap();
    let verdicts = || {
        let python = |script: &str| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
            Command::new("python3").arg(script).arg(place.log()).output().unwrap().status.code()
        };
        (place.verify().is_sound(), python("verify.py"), python("chain.py"))
    };
    assert_eq!(verdicts(), (true, Some(0), Some(0)));
    // A message that is left out, and the record that is named.
    for (old, new) in [("I look at file 3.", "I look at file 4."), ("\"messages\":8,", "\"messages\":6,")] {
        let text = std::fs::read_to_string(place.segment(1)).unwrap();
        assert!(text.contains(old), "{old}");
        std::fs::write(place.segment(1), text.replacen(old, new, 1)).unwrap();
        let (is_sound, verify, chain) = verdicts();
        assert!(!is_sound && verify == Some(1) && chain != Some(0), "{verify:?} {chain:?}");
        std::fs::write(place.segment(1), text).unwrap();
    }
}

#[test]
fn sessions_and_writers_that_share_a_log_do_not_mix_their_conversations() {
    let place = Place::new();
    let logs = [place.open(), place.open()];
    let all = conversation(40);
    let mut given = Vec::new();
    for call in 0..40 {
        // The same session in two processes, and a sub-agent beside each.
        for (log, sessions) in logs.iter().zip([["s", "s-child"], ["s", "t"]]) {
            for session in sessions {
                let mut messages = all[..2 + 2 * call].to_vec();
                messages[1]["content"] = json!(session);
                let data = data(given.len(), &messages);
                let receipt = log.take(&request(session, &data)).unwrap();
                _ = log.take(&message(session, "between")).unwrap();
                log.flush_blocking(receipt).unwrap();
                given.push((session, data));
            }
        }
    }
    logs.into_iter().for_each(|log| log.close().unwrap());
    check_requests(&place.log(), &given);
    assert!(continued(&place.log()) >= 150, "{}", continued(&place.log()));
    assert!(place.verify().is_sound());
}

#[test]
fn a_session_that_is_resumed_begins_with_a_whole_request() {
    let place = Place::new();
    let all = conversation(10);
    let mut given = Vec::new();
    for call in 0..10 {
        let log = place.open();
        for messages in [&all[..2 + 2 * call], &all[..3 + 2 * call]] {
            given.push(("s", data(given.len(), messages)));
            _ = log.take(&request("s", &given.last().unwrap().1)).unwrap();
        }
        log.close().unwrap();
    }
    check_requests(&place.log(), &given);
    assert_eq!(continued(&place.log()), 10);
}

#[test]
fn every_segment_can_be_read_without_those_before_it() {
    let place = Place::new();
    let log = place.options().segment_bytes(20_000).blob_above(6_000).open().unwrap();
    let all = conversation(60);
    let given: Vec<_> = (0..60).map(|call| ("s", data(call, &all[..2 + 2 * call]))).collect();
    for (_, data) in &given {
        let receipt = log.take(&request("s", data)).unwrap();
        log.flush_blocking(receipt).unwrap();
    }
    log.seal_blocking("s", "complete").unwrap();
    check_requests(&place.log(), &given);
    log.retain(1).unwrap();
    log.close().unwrap();
    let left = requests(&Folder::new(place.log()));
    assert!(!left.is_empty() && left.len() < 60, "{}", left.len());
    for ((_, body), (_, data)) in left.iter().zip(&given[60 - left.len()..]) {
        assert_eq!(&body.as_ref().unwrap()["data"], data);
    }
    assert!(place.verify().is_sound());
}

#[test]
fn what_continues_an_erased_request_says_that_it_was_erased_and_what_was_decided() {
    let place = Place::new();
    let log = place.options().blob_above(1_000).open().unwrap();
    let large = [said("user", &"x".repeat(2_000))];
    let more = [&large[..], &[said("assistant", "Yes.")]].concat();
    _ = log.take(&request("s", &data(0, &large))).unwrap();
    _ = log.take(&request("s", &data(1, &more))).unwrap();
    log.checkpoint().unwrap();
    assert_eq!(continued(&place.log()), 1);
    let lines = crate::common::lines(&place.log());
    let blob =
        lines.iter().find_map(|line| crate::common::json(line)["body"]["blob"].as_str().map(str::to_owned)).unwrap();
    log.erase(amplifier_audit::Hash::from_hex(&blob.as_bytes()[7..]).unwrap()).unwrap();
    log.seal_blocking("s", "complete").unwrap();
    log.close().unwrap();
    let storage = Folder::new(place.log());
    assert_eq!(requests(&storage), [("s".to_owned(), None), ("s".to_owned(), None)]);
    let mut assembler = EmissionAssembler::new();
    let mut found = Vec::new();
    let mut exported = Vec::new();
    read_records(&storage, |record| {
        let entries = assembler.push(record, &storage).unwrap();
        found.extend(entries.into_iter().filter_map(|entry| match entry {
            AssembledEntry::Emission(one) => {
                Some((one.report.data_status, one.report.data.is_some(), one.report.decision))
            }
            AssembledEntry::Unassigned(_) => None,
        }));
        exported.push(BodyReader::new().line(record, &storage).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, [(DataStatus::Erased, false, None), (DataStatus::Erased, false, Some(DecisionKind::Continue))]);
    assert_eq!(exported.iter().filter(|line| line.ends_with(r#","content":null,"erased":true}"#)).count(), 2);
    assert!(place.verify().is_sound());
}

#[test]
fn secrets_are_replaced_before_messages_are_compared() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let place = Place::new();
    let log = place.open();
    let all = [said("user", &format!("{} {secret}", "x".repeat(500))), said("user", secret), said("user", "c")];
    for call in 0..3 {
        _ = log.take(&request("s", &data(call, &all[..=call]))).unwrap();
    }
    log.close().unwrap();
    assert_eq!(continued(&place.log()), 2);
    assert!(crate::common::lines(&place.log()).iter().all(|line| !line.contains(secret)));
    for (_, body) in requests(&Folder::new(place.log())) {
        let body = body.unwrap().to_string();
        assert!(has_marker(&body) && !body.contains(secret), "{body}");
    }
}

#[test]
fn a_base_that_is_not_where_it_was_written_is_an_error_and_no_other_request() {
    let place = Place::new();
    let log = place.open();
    let all = conversation(3);
    for call in 0..3 {
        _ = log.take(&request("s", &data(call, &all[..2 + 2 * call]))).unwrap();
    }
    log.close().unwrap();
    let lines = crate::common::lines(&place.log());
    let last = lines.iter().rfind(|line| line.contains(r#""body":{"base":"#)).unwrap();
    let text = std::fs::read_to_string(place.segment(1)).unwrap();
    std::fs::write(place.segment(1), text.replacen("I look at file 0.", "I look at file 7.", 1)).unwrap();
    let record = Record::parse(last.as_bytes()).unwrap();
    let error = record.whole_body(&Folder::new(place.log())).unwrap_err().to_string();
    assert!(error.contains("which is missing or altered"), "{error}");
    // Removed with its segment by another process.
    std::fs::remove_file(place.segment(1)).unwrap();
    let body = record.whole_body(&Folder::new(place.log())).unwrap();
    assert_eq!(body, Body::Erased { bytes: record.body_bytes() });
}

/// Writes requests as long as that works; gives those that were acknowledged, and all.
fn work(disk: &Disk, durability: Durability) -> (Vec<usize>, Vec<Value>) {
    let all = conversation(9);
    let given: Vec<Value> = (0..9).map(|call| data(call, &all[..2 + 2 * call])).collect();
    let mut acknowledged = Vec::new();
    let Ok(log) = options(disk, durability).open() else { return (acknowledged, given) };
    for (n, data) in given.iter().enumerate() {
        let Ok(receipt) = log.take(&request("s", data)) else { continue };
        if log.flush_blocking(receipt).is_ok() {
            acknowledged.push(n);
        }
    }
    (acknowledged, given)
}

fn options(disk: &Disk, durability: Durability) -> LogOptions {
    Log::on(Arc::new(disk.clone()), SigningKey::from_seed([7; 32]))
        .durability(durability)
        .segment_bytes(9_000)
        .checkpoint_every(4)
        .checkpoint_after(Duration::from_millis(2))
        .blob_above(2_500)
}

/// After whatever happened: all that was acknowledged is there, and whole.
fn check_after(case: &str, disk: &Disk, durability: Durability, acknowledged: &[usize], given: &[Value]) {
    let log = options(disk, durability).open().unwrap_or_else(|error| panic!("{case}: {error}"));
    log.close().unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(Verifier::new().storage(disk).unwrap().is_sound(), "{case}");
    let mut there = Vec::new();
    for (_, body) in requests(disk) {
        // At `async`, a loss of power can take a blob away.
        let Some(body) = body else {
            assert_eq!(durability, Durability::Async, "{case}");
            continue;
        };
        let n = usize::try_from(body["data"]["n"].as_u64().unwrap()).unwrap();
        assert_eq!(body["data"], given[n], "{case}");
        there.push(n);
    }
    let is_kept = durability == Durability::Async || acknowledged.iter().all(|n| there.contains(n));
    assert!(is_kept, "{case}: {acknowledged:?} {there:?}");
}

#[test]
fn requests_are_whole_after_every_failure_of_the_disk() {
    for durability in [Durability::Group, Durability::Async] {
        let disk = Disk::default();
        let (acknowledged, given) = work(&disk, durability);
        assert_eq!(acknowledged.len(), 9);
        check_after("nothing fails", &disk, durability, &acknowledged, &given);
        let calls = disk.state().calls.len();
        for call in 0..calls {
            for (calls, after) in [(1, 0), (1, 300), (7, 30)] {
                let case = format!("{durability:?}, call {call}, {calls} calls after {after} bytes");
                let disk = Disk::failing(call, Fault::Fails { calls, error: io::ErrorKind::StorageFull, after });
                let (acknowledged, given) = work(&disk, durability);
                disk.state().fault = None;
                check_after(&case, &disk, durability, &acknowledged, &given);
            }
            for left in [Left::Nothing, Left::All] {
                let case = format!("{durability:?}, power lost at call {call}, {left:?}");
                let disk = Disk::failing(call, Fault::Power(100));
                let (acknowledged, given) = work(&disk, durability);
                check_after(&case, &disk.after_power_loss(left, true), durability, &acknowledged, &given);
            }
        }
    }
}

/// A change of a conversation before the next request.
#[derive(Clone, Debug)]
enum Step {
    Say(usize),
    Cut(usize),
    Change(usize),
    Repeat,
    Reopen,
    Seal,
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let step = prop_oneof![
        4 => (0..3_000usize).prop_map(Step::Say),
        1 => any::<usize>().prop_map(Step::Cut),
        1 => any::<usize>().prop_map(Step::Change),
        1 => Just(Step::Repeat),
        1 => Just(Step::Reopen),
        1 => Just(Step::Seal),
    ];
    (0..3u8, step)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_read_as_it_was_made(steps in prop::collection::vec(step(), 1..40)) {
        let place = Place::new();
        let open = || place.options().durability(Durability::Async).segment_bytes(15_000).blob_above(2_000).open().unwrap();
        let mut log = open();
        let mut conversations = vec![vec![said("system", &"x".repeat(600))]; 3];
        let names = ["a", "b", "c"];
        let mut given = Vec::new();
        for (who, step) in steps {
            let messages = &mut conversations[usize::from(who)];
            match step {
                Step::Say(length) => messages.push(said("user", &"\u{e4}".repeat(length))),
                Step::Cut(at) => messages.truncate(at % (messages.len() + 1)),
                Step::Change(at) if !messages.is_empty() => {
                    let at = at % messages.len();
                    messages[at] = said("user", "changed");
                }
                Step::Change(_) | Step::Repeat => {}
                Step::Reopen => {
                    log.close().unwrap();
                    log = open();
                }
                Step::Seal => log.seal_blocking(names[usize::from(who)], "complete").unwrap(),
            }
            let data = data(given.len(), messages);
            _ = log.take(&request(names[usize::from(who)], &data)).unwrap();
            given.push((names[usize::from(who)], data));
        }
        log.close().unwrap();
        check_requests(&place.log(), &given);
        prop_assert!(place.verify().is_sound());
    }
}
