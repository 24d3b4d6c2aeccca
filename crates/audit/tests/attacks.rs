//! Attacks with write access to a log's folder, without its key: every one is detected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::disk::Watched;
use crate::common::{Place, json, kinds, message};
use amplifier_audit::{
    AuditError, Checkpoint, FileAnchor, Folder, Frontier, Hash, Integrity, Kind, Log, Note, Problem, PublicKey, Record,
    Report, SigningKey, Verifier, read_records,
};
use serde_json::{Value, json as body};

/// Makes records as everybody can who has read the format.
struct Forger {
    log: String,
    segment: u64,
    seq: u64,
    prev: Hash,
    frontier: Frontier,
    time: &'static str,
    text: String,
}

impl Forger {
    fn nowhere() -> Self {
        let log = "0123456789abcdef0123456789abcdef".to_owned();
        let (frontier, time, text) = (Frontier::new(), "2026-01-01T00:00:00.000000Z", String::new());
        Self { log, segment: 1, seq: 0, prev: Hash::ZERO, frontier, time, text }
    }

    /// Begins a log.
    fn begin(key: &PublicKey, every: u64) -> Self {
        Self::nowhere().genesis(key, every)
    }

    /// Goes on where a log ends.
    fn after(place: &Place) -> Self {
        let mut forger = Self::nowhere();
        read_records(&Folder::new(place.log()), |record| {
            forger.log = record.log.to_string();
            (forger.segment, forger.seq, forger.prev) = (record.seg, record.seq + 1, record.h);
            forger.frontier.push(record.h);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        forger
    }

    fn genesis(self, key: &PublicKey, every: u64) -> Self {
        let body = body!({ "format": "amplifier-audit/1", "public_key": key.to_string(), "every": every });
        self.record("genesis", &body)
    }

    fn record(mut self, kind: &str, body: &Value) -> Self {
        // The dash of signatures is the only character beyond ASCII.
        let body = body.to_string().replace('—', "\\u2014");
        let Self { log, segment, seq, prev, time, .. } = &self;
        let hashed = format!(
            r#"{{"v":1,"log":"{log}","seg":{segment},"seq":{seq},"prev":"{prev}","time":"{time}","writer":"1-00000000","session":null,"turn":null,"event":null,"kind":"{kind}","digest":null,"body":{body}"#
        );
        let h = Hash::leaf(hashed.as_bytes());
        self.text += &format!("{hashed},\"h\":\"{h}\"}}\n");
        self.frontier.push(h);
        (self.seq, self.prev) = (self.seq.wrapping_add(1), h);
        self
    }

    fn lies(self, count: usize) -> Self {
        (0..count).fold(self, |forger, number| forger.record("message", &body!({ "text": format!("lie {number}") })))
    }

    fn note(&self, key: &SigningKey) -> String {
        let Self { log, seq, prev, frontier, time, .. } = self;
        let checkpoint =
            Checkpoint { log: log.clone(), size: *seq, root: frontier.root(), head: *prev, time: (*time).to_owned() };
        checkpoint.sign(key).to_string()
    }

    /// A checkpoint, signed with that key.
    fn checkpoint(self, key: &SigningKey) -> Self {
        let note = self.note(key);
        self.record("checkpoint", &body!({ "note": note }))
    }

    /// A rotation to a key, signed with another one.
    fn rotation(self, to: &PublicKey, key: &SigningKey) -> Self {
        let Self { log, seq, prev, .. } = &self;
        let text = format!("amplifier-audit/{log}\nrotate\n{seq}\n{prev}\n{to}\n");
        let note = Note::sign(text, &Checkpoint::origin(log), key).to_string();
        self.record("key_rotation", &body!({ "public_key": to.to_string(), "note": note }))
    }

    fn append_to(&self, place: &Place) {
        fs::create_dir_all(place.log()).unwrap();
        let mut file = OpenOptions::new().append(true).create(true).open(place.segment(self.segment)).unwrap();
        file.write_all(self.text.as_bytes()).unwrap();
    }
}

/// Records a text and waits until it is kept.
fn put(log: &Log, text: &str) {
    let receipt = log.take(&message("s", text)).unwrap();
    log.flush_blocking(receipt).unwrap();
}

fn public(place: &Place) -> PublicKey {
    SigningKey::load(&place.key()).unwrap().public()
}

fn verify_with(place: &Place, key: PublicKey) -> Report {
    Verifier::new().key(key).folder(place.log()).unwrap()
}

/// Unsound, with and without the key.
#[track_caller]
fn assert_unsound(place: &Place, key: PublicKey) -> Report {
    let report = place.verify();
    assert_eq!(report.integrity(), Integrity::Unsound, "without the key: {report}");
    let report = verify_with(place, key);
    assert_eq!(report.integrity(), Integrity::Unsound, "with the key: {report}");
    report
}

fn problems(report: &Report) -> Vec<Problem> {
    report.findings.iter().map(|finding| finding.problem).collect()
}

/// A log of several segments, with a session that is not sealed; gives how many.
fn several_segments(place: &Place) -> u64 {
    let log = place.options().segment_bytes(3_000).anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
    for number in 0..60 {
        log.take(&message("not sealed", &format!("number {number}"))).unwrap();
        if number % 20 == 0 {
            log.checkpoint().unwrap();
        }
    }
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.segments > 3, "{report}");
    report.segments
}

#[test]
fn a_log_that_only_leads_to_your_key_is_not_yours() {
    let place = Place::new();
    place.open().close().unwrap();
    let (yours, attacker) = (public(&place), SigningKey::generate().unwrap());
    let own_note = fs::read_to_string(place.log().join("checkpoints")).unwrap().trim_end().to_owned() + "\n";
    fs::remove_dir_all(place.log()).unwrap();

    let log = Log::on(Arc::new(Folder::new(place.log())), attacker.clone()).open().unwrap();
    for number in 0..300 {
        log.take(&message("s", &format!("lie {number}"))).unwrap();
    }
    log.seal_blocking("s", "complete").unwrap();
    log.close().unwrap();
    assert!(verify_with(&place, attacker.public()).is_sound(), "it tests nothing");
    Forger::after(&place).rotation(&yours, &attacker).append_to(&place);
    let report = verify_with(&place, yours);
    assert_eq!((report.integrity(), problems(&report)), (Integrity::Unsound, vec![Problem::Key]), "{report}");

    let error = place.options().open().unwrap_err();
    assert!(matches!(error, AuditError::Gone { .. }), "{error}");
    assert_eq!(verify_with(&place, yours).integrity(), Integrity::Unsound);
    // A checkpoint that you have signed elsewhere does not help.
    Forger::after(&place).record("checkpoint", &body!({ "note": own_note })).append_to(&place);
    assert_eq!(verify_with(&place, yours).integrity(), Integrity::Unsound);
}

#[test]
fn a_log_that_was_begun_in_your_name_is_unsound_and_not_signed() {
    for every in [0, 2, 256, 4096, 4097, 1_000_000_000, u64::MAX] {
        let place = Place::new();
        place.open().close().unwrap();
        let key = SigningKey::load(&place.key()).unwrap();
        fs::remove_dir_all(place.log()).unwrap();
        Forger::begin(&key.public(), every).lies(20).append_to(&place);
        assert_unsound(&place, key.public());
        assert!(place.options().open().is_err());

        // Nor by a writer that does not know which log its key belongs to.
        if let Ok(log) = Log::on(Arc::new(Folder::new(place.log())), key.clone()).open() {
            put(&log, "true");
            log.close().unwrap();
            assert_eq!(place.verify().breaches, 1, "every {every}");
        }
        let report = assert_unsound(&place, key.public());
        assert!(report.covered == 0 || report.findings.iter().any(|finding| finding.line == Some(2)), "{report}");
    }
}

#[test]
fn a_log_that_allows_more_than_4096_records_without_a_checkpoint_is_unsound() {
    let key = SigningKey::generate().unwrap();
    for (every, verdict) in [(4096, Integrity::Sound), (4097, Integrity::Unsound), (u64::MAX, Integrity::Unsound)] {
        let place = Place::new();
        Forger::begin(&key.public(), every).checkpoint(&key).lies(3).checkpoint(&key).append_to(&place);
        let report = verify_with(&place, key.public());
        assert_eq!(report.integrity(), verdict, "{report}");
        let opened = Log::on(Arc::new(Folder::new(place.log())), key.clone()).open();
        assert_eq!(opened.is_ok(), verdict == Integrity::Sound);
    }
}

#[test]
fn a_key_does_not_begin_a_second_log() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one");
    log.rotate_key(SigningKey::generate().unwrap()).unwrap();
    log.close().unwrap();
    let id = place.verify().log;
    assert_eq!(fs::read_to_string(place.at("audit.key.log")).unwrap().trim(), id);
    let kept = place.at("kept");
    fs::rename(place.log(), &kept).unwrap();

    let refused = || {
        let error = place.options().open().unwrap_err();
        assert!(matches!(&error, AuditError::Gone { log } if *log == id), "{error}");
        assert!(error.to_string().contains(&id), "{error}");
    };
    refused();
    assert!(!place.segment(1).exists(), "nothing was begun");
    fs::create_dir_all(place.log()).unwrap();
    refused();
    // Another log in its place, even one that is signed with the same key.
    for key in [SigningKey::generate().unwrap(), SigningKey::load(&place.key()).unwrap()] {
        fs::remove_dir_all(place.log()).unwrap();
        Log::on(Arc::new(Folder::new(place.log())), key).open().unwrap().close().unwrap();
        let before = place.lines();
        refused();
        assert_eq!(place.lines(), before);
    }
    fs::remove_dir_all(place.log()).unwrap();
    fs::rename(kept, place.log()).unwrap();
    place.open().close().unwrap();
    assert!(place.verify().is_sound());
}

#[test]
fn segments_that_somebody_removed_are_missed() {
    let place = Place::new();
    let segments = several_segments(&place);
    let anchored = fs::read(place.at("anchored")).unwrap();
    let last = fs::read(place.segment(segments)).unwrap();
    for removed in 1..segments {
        fs::remove_file(place.segment(removed)).unwrap();
        let report = assert_unsound(&place, public(&place));
        assert_eq!(problems(&report), [Problem::Deleted], "{report}");
        let report = Verifier::new().checkpoints(&anchored).unwrap().folder(place.log()).unwrap();
        assert_eq!(report.integrity(), Integrity::Unsound, "{report}");
        // Whoever cannot sign can say that they were removed, but nobody believes it.
        let retention =
            body!({ "retention": { "before": removed + 1, "segments": [format!("seg-{removed:06}.jsonl")] } });
        Forger::after(&place).record("policy_change", &retention).append_to(&place);
        assert_unsound(&place, public(&place));
        fs::write(place.segment(segments), &last).unwrap();
    }
}

#[test]
fn a_forged_record_of_retention_is_not_believed_when_the_writer_has_gone_on() {
    for is_running in [false, true] {
        let place = Place::new();
        let segments = several_segments(&place);
        let running = is_running.then(|| place.open());
        let retention = body!({ "retention": { "before": segments, "segments": [] } });
        Forger::after(&place).record("policy_change", &retention).append_to(&place);
        // The writer signs what it finds.
        let log = running.unwrap_or_else(|| place.open());
        put(&log, "goes on");
        log.close().unwrap();
        (1..segments).for_each(|segment| fs::remove_file(place.segment(segment)).unwrap());
        assert_unsound(&place, public(&place));
    }
}

#[test]
fn retention_excuses_no_more_than_it_removed() {
    let place = Place::new();
    several_segments(&place);
    let log = place.options().segment_bytes(3_000).open().unwrap();
    log.seal_blocking("not sealed", "complete").unwrap();
    log.retain(2).unwrap();
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.segments == 2, "{report}");
    let first = (1..).find(|segment| place.segment(*segment).exists()).unwrap();
    fs::remove_file(place.segment(first)).unwrap();
    assert_unsound(&place, public(&place));
}

#[test]
fn a_segment_under_another_name_is_not_overlooked() {
    for (segment, name) in [
        (1, "seg-0000001.jsonl"),
        (2, "seg-2.jsonl"),
        (1, "seg-+00001.jsonl"),
        (1, "seg-000001.jsonl.tmp"),
        (3, "other"),
    ] {
        let place = Place::new();
        several_segments(&place);
        fs::rename(place.segment(segment), place.log().join(name)).unwrap();
        let report = place.verify();
        assert_eq!(report.integrity(), Integrity::Unsound, "{name}: {report}");
    }
    let place = Place::new();
    let segments = several_segments(&place);
    fs::copy(place.segment(segments), place.log().join("seg-0000001.jsonl")).unwrap();
    assert_ne!(place.verify().integrity(), Integrity::Sound, "one that is not looked at");
}

#[test]
fn whatever_a_policy_change_says_the_log_stays_sound() {
    let place = Place::new();
    let log = place.open();
    let raw = serde_json::value::RawValue::from_string("{\"a\":\n\"\u{202e}x\"}".to_owned()).unwrap();
    log.policy_change(&"words").unwrap();
    log.policy_change(&7).unwrap();
    log.policy_change(&["a", "list"]).unwrap();
    log.policy_change(&()).unwrap();
    log.policy_change(&body!({ "blob": "moved", "bytes": 3 })).unwrap();
    log.policy_change(&body!({ "retention": { "before": 9, "segments": [] } })).unwrap();
    log.policy_change(&raw).unwrap();
    let mut deep = body!(1);
    (0..500).for_each(|_| deep = Value::Array(vec![deep.take()]));
    log.policy_change(&deep).unwrap();
    let no_json = BTreeMap::from([((1, 2), "a key that is no text")]);
    let error = log.policy_change(&no_json).unwrap_err();
    assert!(matches!(error, AuditError::NoJson(_)), "{error}");
    log.close().unwrap();

    assert_eq!(place.verify().integrity(), Integrity::Sound, "{}", place.verify());
    let lines: Vec<String> = place.lines().into_iter().filter(|line| line.contains("\"policy_change\"")).collect();
    let changes: Vec<Value> = lines[..7].iter().map(|line| json(line)["body"]["change"].clone()).collect();
    let expected = body!([
        "words",
        7,
        ["a", "list"],
        null,
        { "blob": "moved", "bytes": 3 },
        { "retention": { "before": 9, "segments": [] } },
        { "a": "\u{202e}x" },
    ]);
    assert_eq!(Value::Array(changes), expected);
    assert_eq!(lines.len(), 8);
    place.open().close().unwrap();
    assert!(place.verify().is_sound());
}

#[test]
fn junk_beside_the_log_does_not_hide_that_it_is_unsound() {
    let place = Place::new();
    let log = place.open();
    (0..5).for_each(|number| put(&log, &format!("number {number}")));
    log.close().unwrap();
    let file = place.log().join("checkpoints");
    let notes = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{}{notes}", "junk\n\n".repeat(150))).unwrap();
    assert_eq!(place.verify().integrity(), Integrity::Unreadable);
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), text.replace("number 2", "number 9")).unwrap();
    let report = assert_unsound(&place, public(&place));
    assert!(report.more_findings > 0, "{report}");
}

#[test]
fn a_key_that_was_pinned_before_a_rotation_vouches_for_what_retention_has_left() {
    let place = Place::new();
    let log = place.options().segment_bytes(2_000).open().unwrap();
    let mut pinned = vec![public(&place)];
    for round in 0..3 {
        (0..10).for_each(|number| put(&log, &format!("number {number} of round {round}")));
        log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        pinned.push(public(&place));
    }
    (0..30).for_each(|number| put(&log, &format!("number {number}")));
    log.seal_blocking("s", "complete").unwrap();
    let verify = || pinned.iter().map(|key| verify_with(&place, *key).integrity()).collect::<Vec<_>>();
    assert_eq!(verify(), [Integrity::Sound; 4]);
    log.retain(1).unwrap();
    log.close().unwrap();
    assert!(!kinds(&place.lines()).contains(&"key_rotation".to_owned()), "it tests nothing");
    assert_eq!(verify(), [Integrity::Sound; 4]);
    let other = SigningKey::generate().unwrap().public();
    assert_eq!(problems(&verify_with(&place, other)), [Problem::Key]);
}

#[test]
fn a_forged_rotation_or_checkpoint_is_a_breach() {
    let attacker = SigningKey::generate().unwrap();
    let other = attacker.public();
    type Forge<'a> = Box<dyn Fn(Forger, &Place) -> Forger + 'a>;
    let forgeries: [(&str, Forge<'_>); 6] = [
        ("a rotation without a signature", {
            Box::new(|forger, _| forger.record("key_rotation", &body!({ "public_key": other.to_string(), "note": "" })))
        }),
        ("a rotation that the new key signed", Box::new(|forger, _| forger.rotation(&other, &attacker))),
        ("a rotation, and a checkpoint by the new key", {
            Box::new(|forger, _| forger.rotation(&other, &attacker).checkpoint(&attacker))
        }),
        ("a checkpoint that another key signed", Box::new(|forger, _| forger.checkpoint(&attacker))),
        ("a checkpoint that is none", Box::new(|forger, _| forger.record("checkpoint", &body!({ "note": "nothing" })))),
        ("a checkpoint from another place", {
            Box::new(|forger, place| {
                let notes = fs::read_to_string(place.log().join("checkpoints")).unwrap();
                forger.record("checkpoint", &body!({ "note": format!("{}\n", notes.trim_end()) }))
            })
        }),
    ];
    for (what, forge) in &forgeries {
        for is_running in [false, true] {
            let case = format!("{what}, running: {is_running}");
            let place = Place::new();
            let log = place.open();
            put(&log, "one");
            log.checkpoint().unwrap();
            let key = public(&place);
            if !is_running {
                log.clone().close().unwrap();
            }
            forge(Forger::after(&place), &place).append_to(&place);
            assert_eq!(verify_with(&place, key).integrity(), Integrity::Unsound, "{case}");

            let log = if is_running { log } else { place.open() };
            put(&log, "two");
            assert_eq!(log.status().public_key, Some(key), "{case}");
            log.close().unwrap();
            let report = assert_unsound(&place, key);
            assert_eq!(report.breaches, 1, "{case}: {report}");
        }
    }
}

#[test]
fn two_writers_of_a_log_that_was_cut_overwrite_nothing() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    for number in 0..2 {
        put(&first, &format!("first {number}"));
        put(&second, &format!("second {number}"));
    }
    first.checkpoint().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), text.split_inclusive('\n').next().unwrap()).unwrap();
    put(&second, "kept by the second");
    put(&first, "kept by the first");
    put(&second, "kept again");
    first.close().unwrap();
    second.close().unwrap();
    let lines = place.lines();
    for text in ["kept by the second", "kept by the first", "kept again"] {
        assert_eq!(lines.iter().filter(|line| line.contains(text)).count(), 1, "{text}");
    }
    let report = assert_unsound(&place, public(&place));
    assert!(report.breaches > 0, "{report}");
}

/// A secret as the standard rules know it.
fn secret() -> String {
    ["gh", "p_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat()
}

#[test]
fn a_secret_in_the_reason_of_a_seal_does_not_reach_the_disk() {
    let place = Place::new();
    let log = place.open();
    log.seal_blocking("s", &format!("git push failed: token {} is not valid", secret())).unwrap();
    log.close().unwrap();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    assert!(!text.contains(&secret()));
    assert!(text.contains("git push failed: token [redacted kind="), "{text}");
    assert!(place.verify().is_sound());
}

#[test]
fn nothing_of_an_erased_blob_is_left() {
    let place = Place::new();
    let log = place.open();
    put(&log, &"x".repeat(100_000));
    let lines = place.lines();
    let record = lines.iter().map(|line| json(line)).find(|record| record["kind"] == "message").unwrap();
    let blob = record["body"]["blob"].as_str().unwrap()[7..].to_owned();
    let folder = place.log().join("blobs").join(&blob[..2]);
    // What a writer left that was killed before it could give the file its name.
    fs::copy(folder.join(&blob), folder.join(format!("{blob}.tmp"))).unwrap();
    log.erase(Hash::from_hex(blob.as_bytes()).unwrap()).unwrap();
    log.close().unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    assert!(place.verify().is_sound());
}

#[test]
fn markers_of_a_secret_differ_after_a_rotation() {
    let place = Place::new();
    let log = place.open();
    put(&log, &secret());
    for _ in 0..20 {
        log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        put(&log, &secret());
    }
    log.close().unwrap();
    let log = place.open();
    put(&log, &secret());
    log.close().unwrap();
    let lines = place.lines();
    let markers: Vec<&str> = lines.iter().filter_map(|line| Some(&line.split_once("hmac=")?.1[..16])).collect();
    assert_eq!((markers.len(), markers[20]), (22, markers[21]), "the same key, the same marker");
    assert_eq!(markers.iter().collect::<BTreeSet<_>>().len(), 21, "{markers:?}");
}

/// Does something that must end.
#[track_caller]
fn in_time<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(run()));
    told.recv_timeout(Duration::from_secs(10)).unwrap()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error() {
    for name in ["seg-000001.jsonl", "seg-000002.jsonl", "checkpoints"] {
        let place = Place::new();
        place.open().close().unwrap();
        let path = place.log().join(name);
        let _ = fs::remove_file(&path);
        make_pipe(&path);
        let folder = place.log();
        assert!(in_time(move || Verifier::new().folder(folder).is_err()), "{name}");
        let options = place.options();
        assert!(in_time(move || options.open().is_err()), "{name}");
    }
}

#[test]
fn a_pipe_in_the_place_of_the_checkpoints_does_not_stop_a_writer() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one");
    log.checkpoint().unwrap();
    fs::remove_file(place.log().join("checkpoints")).unwrap();
    make_pipe(&place.log().join("checkpoints"));
    in_time(move || {
        put(&log, "two");
        log.checkpoint().unwrap();
        log.close().unwrap();
    });
    fs::remove_file(place.log().join("checkpoints")).unwrap();
    assert!(place.verify().is_sound());
}

#[test]
fn a_time_that_is_none_is_unreadable() {
    for time in [r"\u001b[31mX", "", "now", r"2026-01-01T00:00:00.00000\u009b", "2026-01-01 00:00:00.000000Z"] {
        let place = Place::new();
        place.open().close().unwrap();
        let mut forger = Forger::after(&place);
        forger.time = time;
        forger.record("message", &body!({})).append_to(&place);
        let report = place.verify();
        assert_eq!(report.integrity(), Integrity::Unreadable, "{time}: {report}");
        assert!(!report.to_string().contains('\u{1b}'));
        let line = fs::read_to_string(place.segment(1)).unwrap().lines().last().unwrap().to_owned();
        assert!(Record::parse(line.as_bytes()).is_err());
    }
}

/// Verifies and opens what was forged, in threads, so that a panic is seen as one.
#[track_caller]
fn assert_refused(forger: &Forger, key: &SigningKey) {
    let place = Place::new();
    forger.append_to(&place);
    let (folder, public) = (place.log(), key.public());
    let report = move || Verifier::new().key(public).folder(folder);
    let verdict = in_time(move || report().map_or(Integrity::Unreadable, |report| report.integrity()));
    assert_ne!(verdict, Integrity::Sound);
    let options = Log::on(Arc::new(Folder::new(place.log())), key.clone());
    assert!(in_time(move || options.open()).is_err(), "the writer goes on with it");
}

#[test]
fn the_largest_distance_between_checkpoints_is_refused() {
    let key = SigningKey::generate().unwrap();
    assert_refused(&Forger::begin(&key.public(), u64::MAX).checkpoint(&key).lies(2), &key);
}

#[test]
fn a_log_that_begins_in_the_last_segment_there_can_be_is_refused() {
    let key = SigningKey::generate().unwrap();
    for segment in [2, u64::MAX] {
        let forger = Forger { segment, ..Forger::nowhere() };
        assert_refused(&forger.genesis(&key.public(), 256).checkpoint(&key), &key);
    }
}

#[test]
fn a_log_that_begins_with_the_last_record_there_can_be_is_refused() {
    let key = SigningKey::generate().unwrap();
    assert_refused(&Forger { seq: u64::MAX, ..Forger::nowhere() }.genesis(&key.public(), 256), &key);

    for seq in [u64::MAX, (1 << 62) + 1] {
        // As many complete subtrees as the number has bits.
        let frontier = vec![Hash::ZERO.to_string(); seq.count_ones() as usize];
        let forger = Forger { segment: 2, seq, ..Forger::nowhere() };
        let (note, public_key) = (forger.note(&key), key.public().to_string());
        let segment = body!({
            "note": note, "frontier": frontier, "public_key": public_key, "every": 256, "rotations": []
        });
        assert_refused(&forger.record("segment", &segment), &key);
    }
}

#[test]
fn a_blob_that_many_records_share_is_read_once() {
    let place = Place::new();
    let log = place.open();
    (0..20).for_each(|_| put(&log, &"x".repeat(20_000)));
    log.close().unwrap();
    let reads = Arc::new(AtomicUsize::new(0));
    let watched = {
        let reads = reads.clone();
        Watched::new(Folder::new(place.log()), move |call| {
            reads.fetch_add(usize::from(call.starts_with("read blobs/")), Ordering::Relaxed);
            Ok(())
        })
    };
    let report = Verifier::new().storage(&*watched).unwrap();
    assert!(report.is_sound() && report.blobs == 20, "{report}");
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(report.kinds[&Kind::Message], 20);
}
