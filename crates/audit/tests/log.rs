//! A log as its users see it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Place, intent, json, kinds, message, outcome};
use amplifier_audit::{
    Durability, FileAnchor, Folder, Hash, Integrity, Log, Note, Problem, PublicKey, SigningKey, Trust, Verifier,
    is_included, read_tree,
};
use amplifier_core::{
    AuditLog, Coordinator, HookRegistry, HookResult, SessionConfig, TOOL_POST, TOOL_PRE, ToolPre, data,
};

#[tokio::test]
async fn everything_that_a_session_does_is_in_the_log() {
    let place = Place::new();
    let log = place.open();
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|event| match event.tool_name() {
        "rm" => HookResult::deny("no rm"),
        _ => HookResult::proceed().info("fine"),
    });
    let config = SessionConfig { audit_required: true, ..SessionConfig::default() };
    let session = Coordinator::builder(hooks).session_id("s-1").audit(log.clone()).config(config).build();

    let call = ToolPre::new("Write", data! { "file_path": "a.txt" }).with("tool_call_id", "call-1");
    assert!(session.emit(TOOL_PRE, call).await.is_proceed());
    let done = data! { "tool_name": "Write", "tool_result": "ok", "success": true, "duration_ms": 3, "tool_call_id": "call-1" };
    assert!(session.emit(TOOL_POST, done).await.is_proceed());
    assert!(!session.emit(TOOL_PRE, ToolPre::new("rm", data! {})).await.is_proceed());
    log.seal_blocking("s-1", "complete").unwrap();
    log.close().unwrap();

    let lines = place.lines();
    let expected =
        ["genesis", "event", "hook_report", "message", "intent", "event", "outcome", "event", "hook_report", "seal"];
    assert_eq!(kinds(&lines), expected);
    let seal = lines.iter().map(|line| json(line)).find(|record| record["kind"] == "seal").unwrap();
    assert_eq!(seal["body"]["reason"], "complete");
    assert_eq!(seal["body"]["records"], 8);
    assert_eq!(seal["body"]["kinds"]["event"], 3);
    let intent = lines.iter().map(|line| json(line)).find(|record| record["kind"] == "intent").unwrap();
    assert_eq!(intent["digest"].as_str().unwrap().len(), 64);
    assert_eq!((&intent["session"], &intent["event"]), (&"s-1".into(), &"tool:pre".into()));
    let keys: Vec<String> = intent.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 14);
    assert!(intent["body"].get("kind").is_none(), "the kind stands once");

    let report = place.verify();
    assert_eq!(report.integrity(), Integrity::Sound, "{report}");
    assert_eq!((report.sealed, report.unsealed.len(), report.in_doubt.len()), (1, 0, 0));
    assert_eq!(report.trust, Trust::KeyFromLog);
}

#[test]
fn the_line_is_as_documented() {
    let place = Place::new();
    let log = place.open();
    log.take(&message("s", "tab\t, bell \u{7}, bidi \u{202e}, zero width \u{200b}, delete \u{7f}, é and 😀")).unwrap();
    log.close().unwrap();
    let lines = place.lines();
    let line = &lines[2];
    assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
    assert!(
        line.contains(r"bell \u0007, bidi \u202e, zero width \u200b, delete \u007f, \u00e9 and \ud83d\ude00"),
        "{line}"
    );
    let order =
        ["v", "log", "seg", "seq", "prev", "time", "writer", "session", "turn", "event", "kind", "digest", "body", "h"];
    let places: Vec<usize> = order.iter().map(|key| line.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{line}");
    let (hashed, h) = line.split_at(line.len() - 72);
    assert_eq!(h, format!(",\"h\":\"{}\"}}", Hash::leaf(hashed.as_bytes())));
    assert_eq!(json(line)["prev"], json(&lines[1])["h"]);
    assert_eq!(json(line)["writer"].as_str().unwrap().split('-').count(), 2);
}

#[test]
fn an_intent_without_an_outcome_is_in_doubt() {
    let place = Place::new();
    let log = place.open();
    for record in [intent("s", "a"), intent("s", "b"), outcome("s", "a"), intent("t", "b"), outcome("t", "b")] {
        log.take(&record).unwrap();
    }
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound());
    let calls: Vec<_> = report.in_doubt.iter().map(|one| (one.seq, one.tool_call_id.as_deref().unwrap())).collect();
    assert_eq!(calls, [(3, "b")]);
    assert_eq!(report.unsealed, ["s", "t"]);
    assert!(report.to_string().contains("unresolved: record 3"), "{report}");
}

#[test]
fn a_log_goes_on_where_it_ended_over_segments() {
    let place = Place::new();
    for round in 0..5 {
        let log = place.options().segment_bytes(4_000).checkpoint_every(8).open().unwrap();
        for number in 0..20 {
            log.take(&message("s", &format!("round {round} number {number}"))).unwrap();
        }
        log.close().unwrap();
    }
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert!(report.segments > 5, "{report}");
    assert!(report.checkpoints > 10, "{report}");
    assert_eq!(report.kinds[&amplifier_audit::Kind::Message], 100);
    assert_eq!(report.unsigned(), 1, "the last record is the last checkpoint");
}

#[test]
fn a_checkpoint_is_signed_a_second_after_the_last_record() {
    let place = Place::new();
    let log = place.options().checkpoint_after(Duration::from_millis(50)).open().unwrap();
    log.take(&message("s", "one")).unwrap();
    let begun = Instant::now();
    while place.verify().covered != 3 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", place.verify());
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(place.verify().size, 4, "nothing new, no checkpoint");
    drop(log);
    assert_eq!(place.verify().size, 4);
}

#[test]
fn a_known_key_and_an_anchor_are_compared() {
    let place = Place::new();
    let log = place.options().anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
    log.take(&message("s", "one")).unwrap();
    log.close().unwrap();
    let key = SigningKey::load(&place.key()).unwrap().public();
    let anchored = fs::read(place.at("anchored")).unwrap();
    let report = Verifier::new().key(key).checkpoints(&anchored).unwrap().folder(place.log()).unwrap();
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.trust, report.anchored), (Trust::KeyKnown, Some(3)));
    assert_eq!(report.proved().len(), 3, "{report}");

    // A note that anybody could have written agrees with the log, and proves nothing.
    let note = String::from_utf8(anchored.clone()).unwrap();
    // The last one of them.
    let parts: Vec<&str> = note.split("\n\n").collect();
    let [.., text, signature, ""] = parts[..] else { panic!("{note}") };
    let note = format!("{text}\n\n{signature}\n\n");
    let foreign =
        |text: &str, name: &str| format!("{}\n", Note::sign(text.to_owned(), name, &SigningKey::generate().unwrap()));
    let verify =
        |note: &str| Verifier::new().key(key).checkpoints(note.as_bytes()).unwrap().folder(place.log()).unwrap();
    let later = format!("{}\ntime 2019-01-01T00:00:00.000Z", text.rsplit_once('\n').unwrap().0);
    let report = verify(&foreign(&later, "witness.example"));
    assert!(report.is_sound() && report.anchored.is_none() && report.anchored_at.is_none(), "{report}");
    assert_eq!((report.unsigned_elsewhere, report.to_json()["unanchored"].as_u64()), (Some(3), Some(report.size)));
    assert!(
        !report.proved().iter().any(|line| line.contains("anchored")) && !report.to_string().contains("2019"),
        "{report}"
    );
    assert!(report.to_string().contains("agree with a checkpoint that is stored elsewhere, unsigned"), "{report}");

    // One that claims to be the log's, and is not, is no reason to believe anything.
    let altered = note.replace(text, &later);
    let origin = text.lines().next().unwrap();
    for forged in [altered, foreign(text, origin), foreign(&later, origin)] {
        let report = verify(&forged);
        assert_eq!(report.findings.iter().map(|finding| finding.problem).collect::<Vec<_>>(), [Problem::Checkpoint]);
        assert!(
            report.anchored.is_none() && report.proved().is_empty() && report.integrity().exit_code() == 1,
            "{report}"
        );
    }

    let other = SigningKey::generate().unwrap().public();
    let report = Verifier::new().key(other).folder(place.log()).unwrap();
    assert_eq!(report.findings.iter().map(|finding| finding.problem).collect::<Vec<_>>(), [Problem::Key]);
}

#[test]
fn keys_rotate_and_the_old_one_signs_the_new() {
    let place = Place::new();
    let log = place.open();
    let first: PublicKey = log.status().public_key.unwrap();
    log.take(&message("s", "one")).unwrap();
    log.rotate_key(SigningKey::generate().unwrap()).unwrap();
    log.take(&message("s", "two")).unwrap();
    log.close().unwrap();

    let log = place.open();
    let second = log.status().public_key.unwrap();
    log.take(&message("s", "three")).unwrap();
    log.close().unwrap();
    assert_ne!(first, second);
    for key in [first, second] {
        let report = Verifier::new().key(key).folder(place.log()).unwrap();
        assert!(report.is_sound(), "{report}");
        assert_eq!(report.rotations, 1);
    }
}

#[test]
fn another_key_is_refused_and_a_missing_one_is_not_made_anew() {
    let place = Place::new();
    place.open().close().unwrap();
    fs::remove_file(place.key()).unwrap();
    let error = place.options().open().unwrap_err().to_string();
    assert!(error.contains("audit.key"), "{error}");
    assert!(!place.key().exists());
    SigningKey::create(&place.key()).unwrap();
    let error = place.options().open().unwrap_err().to_string();
    assert!(error.contains("signed with another key"), "{error}");
}

#[test]
fn a_log_without_its_segments_is_never_begun_again() {
    let place = Place::new();
    let log = place.open();
    log.take(&message("s", "one")).unwrap();
    log.close().unwrap();
    fs::remove_file(place.segment(1)).unwrap();
    let error = place.options().open().unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
    assert!(!place.segment(1).exists());
}

#[test]
fn a_torn_end_is_moved_aside_and_recorded() {
    let place = Place::new();
    let log = place.open();
    log.take(&message("s", "one")).unwrap();
    log.close().unwrap();
    let whole = fs::read(place.segment(1)).unwrap();
    let torn = b"{\"v\":1,\"log\":\"";
    fs::write(place.segment(1), [&whole[..], torn].concat()).unwrap();
    assert_eq!(place.verify().integrity(), Integrity::Unreadable);

    place.open().close().unwrap();
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.recoveries, 1);
    let recovery = place.lines().iter().map(|line| json(line)).find(|record| record["kind"] == "recovery").unwrap();
    let kept = fs::read(place.log().join(recovery["body"]["torn"].as_str().unwrap())).unwrap();
    assert_eq!(kept, torn);
    assert_eq!(recovery["body"]["bytes"], torn.len());
}

#[test]
fn a_whole_record_after_a_broken_one_is_a_breach_and_nothing_is_repaired() {
    let place = Place::new();
    let log = place.open();
    for number in 0..5 {
        log.take(&message("s", &format!("number {number}"))).unwrap();
    }
    log.close().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    let altered = text.replace("number 2", "number 9");
    fs::write(place.segment(1), &altered).unwrap();

    let log = place.open();
    log.take(&message("s", "after")).unwrap();
    log.close().unwrap();
    assert_eq!(fs::read_to_string(place.segment(1)).unwrap(), altered);
    let report = place.verify();
    assert_eq!((report.integrity(), report.breaches), (Integrity::Unsound, 1), "{report}");
    assert_eq!(report.findings[0].problem, Problem::Edited);
    // It is found once, and the log goes on.
    place.open().close().unwrap();
    assert_eq!(place.verify().breaches, 1);
}

#[test]
fn a_log_cut_below_a_checkpoint_is_a_breach() {
    let place = Place::new();
    let log = place.open();
    for number in 0..5 {
        log.take(&message("s", &format!("number {number}"))).unwrap();
    }
    log.close().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(place.segment(1), cut).unwrap();
    let problems: Vec<_> = place.verify().findings.iter().map(|finding| finding.problem).collect();
    assert_eq!(problems, [Problem::Truncated]);
    place.open().close().unwrap();
    let report = place.verify();
    assert_eq!((report.integrity(), report.breaches), (Integrity::Unsound, 1), "{report}");
}

#[test]
fn a_log_that_is_cut_while_it_is_open_is_a_breach() {
    let place = Place::new();
    let log = place.open();
    let receipt = log.take(&message("s", "one")).unwrap();
    log.flush_blocking(receipt).unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), text.split_inclusive('\n').next().unwrap()).unwrap();
    let receipt = log.take(&message("s", "two")).unwrap();
    log.flush_blocking(receipt).unwrap();
    log.close().unwrap();
    let report = place.verify();
    assert_eq!((report.integrity(), report.breaches), (Integrity::Unsound, 1), "{report}");
}

#[test]
fn large_bodies_are_blobs_and_can_be_erased() {
    let place = Place::new();
    let log = place.open();
    log.take(&message("s", &"x".repeat(100_000))).unwrap();
    log.take(&message("s", &"y".repeat(100_000))).unwrap();
    log.checkpoint().unwrap();
    let lines = place.lines();
    let record = json(&lines[2]);
    let blob = record["body"]["blob"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    assert!(lines[2].len() < 1_000);
    let file = place.log().join("blobs").join(&blob[..2]).join(&blob);
    let body = fs::read(&file).unwrap();
    assert_eq!(record["body"]["bytes"], body.len());
    assert_eq!(json(std::str::from_utf8(&body).unwrap())["text"].as_str().unwrap().len(), 100_000);

    log.erase(Hash::from_hex(blob.as_bytes()).unwrap()).unwrap();
    assert!(!file.exists());
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.blobs, report.blobs_erased), (1, 1));

    let record = json(&lines[3]);
    let blob = &record["body"]["blob"].as_str().unwrap()[7..];
    fs::write(place.log().join("blobs").join(&blob[..2]).join(blob), "other").unwrap();
    assert_eq!(place.verify().integrity(), Integrity::Unsound);
}

#[test]
fn secrets_do_not_reach_the_disk() {
    let place = Place::new();
    let secret = concat!("gh", "p_", "abcdefghijklmnopqrstuvwxyz0123456789");
    let log = place.open();
    log.take(&message("s", &format!("the token is {secret}."))).unwrap();
    log.take(&message("s", &format!("again {secret}"))).unwrap();
    log.close().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    assert!(!text.contains(secret));
    let markers: Vec<&str> = text.split("[redacted ").skip(1).map(|rest| rest.split(']').next().unwrap()).collect();
    assert_eq!(markers.len(), 2);
    assert_eq!(markers[0], markers[1], "equal secrets have equal markers");
    assert!(markers[0].contains(&format!("len={}", secret.len())), "{markers:?}");
    assert!(place.verify().is_sound());
}

#[test]
fn retention_removes_whole_segments_of_sealed_sessions_and_keeps_their_checkpoints() {
    let place = Place::new();
    let log = place.options().segment_bytes(3_000).open().unwrap();
    for session in ["first", "second", "third"] {
        for number in 0..20 {
            log.take(&message(session, &format!("number {number}"))).unwrap();
        }
        if session != "second" {
            log.seal_blocking(session, "complete").unwrap();
        }
    }
    let before = place.verify();
    assert!(before.is_sound(), "{before}");
    log.retain(1).unwrap();
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert!(report.first > 0 && report.segments < before.segments, "{report}");
    assert_eq!(report.unsealed, ["second"], "nothing of a session that is not sealed goes");

    log.seal_blocking("second", "complete").unwrap();
    log.retain(2).unwrap();
    log.take(&message("fourth", "goes on")).unwrap();
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert!(report.segments <= 3, "{report}");
    // The tree still proves what is there, against checkpoints over all records.
    let tree = read_tree(&Folder::new(place.log())).unwrap();
    assert_eq!((tree.size(), tree.root_at(tree.size())), (report.size, report.root));
    let proof = tree.inclusion(report.size - 2, report.size).unwrap();
    let leaf = json(&place.lines()[place.lines().len() - 2])["h"].as_str().unwrap().to_owned();
    let leaf = Hash::from_hex(leaf.as_bytes()).unwrap();
    assert!(is_included(&leaf, report.size - 2, report.size, &proof, &report.root.unwrap()));
    place.open().close().unwrap();
}

#[test]
fn retention_stops_at_its_limit_and_says_so() {
    let place = Place::new();
    let removable = Arc::new(AtomicU64::new(0));
    let limit = removable.clone();
    let options = place.options().segment_bytes(3_000);
    let log = options.retention_limit(move || limit.load(Ordering::Relaxed)).open().unwrap();
    for number in 0..60 {
        log.take(&message("first", &format!("number {number}"))).unwrap();
    }
    log.seal_blocking("first", "complete").unwrap();
    let before = place.verify();
    log.retain(1).unwrap();
    assert_eq!(place.verify().first, 0);
    assert_eq!(log.status().limited_segments as u64, before.segments - 1);

    // In the middle of the third segment.
    let third = json(fs::read_to_string(place.segment(3)).unwrap().lines().next().unwrap())["seq"].as_u64().unwrap();
    removable.store(third + 1, Ordering::Relaxed);
    log.retain(1).unwrap();
    assert_eq!(place.verify().first, third);

    removable.store(before.size, Ordering::Relaxed);
    log.retain(1).unwrap();
    assert_eq!(log.status().limited_segments, 0);
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.segments == 1, "{report}");
}

#[tokio::test]
async fn every_level_keeps_everything_in_order() {
    for durability in [Durability::Async, Durability::Group, Durability::Record] {
        let place = Place::new();
        let log = place.options().durability(durability).open().unwrap();
        for number in 0..300 {
            let receipt = AuditLog::record(&log, message("s", &number.to_string())).unwrap();
            if number % 50 == 0 {
                log.flush(receipt).await.unwrap();
            }
        }
        log.seal_blocking("s", "complete").unwrap();
        drop(log);
        let report = place.verify();
        assert!(report.is_sound(), "{durability:?}: {report}");
        let texts: Vec<String> = place
            .lines()
            .iter()
            .map(|line| json(line))
            .filter(|record| record["kind"] == "message")
            .map(|record| record["body"]["text"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(texts, (0..300).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn a_log_is_finished_when_the_last_handle_goes() {
    for durability in [Durability::Async, Durability::Group] {
        let place = Place::new();
        let log = place.options().durability(durability).anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
        let clone = log.clone();
        log.take(&message("s", "one")).unwrap();
        drop(log);
        clone.take(&message("s", "two")).unwrap();
        drop(clone);
        let report = place.verify();
        assert!(report.is_sound(), "{report}");
        assert_eq!((report.size, report.covered), (5, 4), "{report}");
        assert!(fs::read_to_string(place.at("anchored")).unwrap().contains("\n4\n"));
    }
}

#[test]
fn a_closed_log_takes_nothing() {
    let place = Place::new();
    let log = place.open();
    let clone = log.clone();
    log.close().unwrap();
    assert_eq!(clone.take(&message("s", "late")).unwrap_err().to_string(), "the audit log is closed");
    assert!(clone.checkpoint().is_err());
}

#[test]
fn several_handles_of_one_log_do_not_fork_it() {
    let place = Place::new();
    place.open().close().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let log: Log = place.options().segment_bytes(20_000).open().unwrap();
            std::thread::spawn(move || {
                for count in 0..50 {
                    let receipt = log.take(&message(&format!("s{number}"), &count.to_string())).unwrap();
                    log.flush_blocking(receipt).unwrap();
                }
                log.seal_blocking(&format!("s{number}"), "complete").unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.kinds[&amplifier_audit::Kind::Message], report.sealed), (200, 4));
}

#[test]
fn a_log_whose_writer_was_killed_right_after_it_was_begun_is_gone_on_with() {
    let place = Place::new();
    place.open().close().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), text.split_inclusive('\n').next().unwrap()).unwrap();
    fs::remove_file(place.log().join("checkpoints")).unwrap();
    fs::remove_file(place.at("audit.key.log")).unwrap();
    place.open().close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.checkpoints == 1, "{report}");
}
