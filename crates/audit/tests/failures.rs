//! Failing disks, killed processes and other writers: every loss is recorded, and the log stays sound.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use crate::common::disk::{Disk, Fault, Left, Watched};
use crate::common::{Place, json, message};
use amplifier_audit::{
    AuditError, Durability, FileAnchor, Folder, Integrity, Kind, Log, LogOptions, RecordSource, Report, SigningKey,
    Storage, Verifier, read_records,
};

const KEY: [u8; 32] = [7; 32];

/// A log on that storage that signs when it is told to, not after a time.
fn on(storage: Arc<dyn Storage>, durability: Durability) -> LogOptions {
    Log::on(storage, SigningKey::from_seed(KEY)).durability(durability).checkpoint_after(Duration::from_secs(3600))
}

fn open(disk: &Disk, durability: Durability) -> Log {
    on(Arc::new(disk.clone()), durability).open().unwrap()
}

/// Records a text and waits until it is kept.
fn put(log: &Log, text: &str) -> Result<(), AuditError> {
    let receipt = log.take(&message("s", text))?;
    log.flush_blocking(receipt)
}

fn texts(storage: &dyn Storage) -> Vec<String> {
    bodies(storage, Kind::Message).iter().map(|body| body["text"].as_str().unwrap().to_owned()).collect()
}

fn bodies(storage: &dyn Storage, kind: Kind) -> Vec<serde_json::Value> {
    let mut bodies = Vec::new();
    read_records(storage, |record| {
        if record.kind == kind {
            bodies.push(json(record.body.get()));
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    bodies
}

/// The number of records of that kind that the log reports as lost.
fn lost(storage: &dyn Storage, kind: &str) -> u64 {
    bodies(storage, Kind::Gap).iter().map(|gap| gap["kinds"][kind].as_u64().unwrap_or(0)).sum()
}

#[track_caller]
fn assert_sound(storage: &dyn Storage) -> Report {
    let report = Verifier::new().key(SigningKey::from_seed(KEY).public()).storage(storage).unwrap();
    assert!(report.is_sound(), "{report}");
    report
}

/// The number of checkpoints beside the log.
fn beside(storage: &dyn Storage) -> usize {
    let is_there = storage.size("checkpoints").unwrap().is_some();
    if is_there {
        String::from_utf8(storage.read("checkpoints", 0).unwrap()).unwrap().matches("\nhead ").count()
    } else {
        0
    }
}

#[test]
fn a_failed_sync_of_one_writer_loses_nothing_of_the_other() {
    let disk = Disk::default();
    let (first, second) = (open(&disk, Durability::Group), open(&disk, Durability::Group));
    put(&second, "second 1").unwrap();
    put(&first, "first 1").unwrap();
    disk.state().failing_syncs = 1;
    put(&second, "second 2").unwrap_err();
    put(&second, "second 3").unwrap();
    put(&first, "first 2").unwrap();
    for disk in [disk.after_kill(), disk.after_power_loss(Left::Nothing, false)] {
        assert_sound(&disk);
        assert_eq!(texts(&disk), ["second 1", "first 1", "second 3", "first 2"]);
        assert_eq!(lost(&disk, "message"), 1);
    }
}

#[test]
fn a_writer_that_comes_between_a_failure_and_the_new_segment_keeps_its_records() {
    let disk = Disk::default();
    let first = open(&disk, Durability::Group);
    let (failed, comes_between) = (AtomicBool::new(false), first.clone());
    let watch = {
        let disk = disk.clone();
        move |call: &str| {
            if call.starts_with("sync seg-") && disk.state().failing_syncs > 0 {
                failed.store(true, Ordering::Relaxed);
            }
            if call == "lock" && failed.swap(false, Ordering::Relaxed) {
                put(&comes_between, "between").unwrap();
                comes_between.checkpoint().unwrap();
            }
            Ok(())
        }
    };
    let second = on(Watched::new(disk.clone(), watch), Durability::Group).open().unwrap();
    put(&first, "first 1").unwrap();
    put(&second, "second 1").unwrap();
    second.checkpoint().unwrap();
    disk.state().failing_syncs = 1;
    second.seal_blocking("s", "complete").unwrap_err();
    put(&second, "second 2").unwrap();
    put(&first, "first 2").unwrap();
    for disk in [disk.after_kill(), disk.after_power_loss(Left::Nothing, false)] {
        assert_sound(&disk);
        assert_eq!(texts(&disk), ["first 1", "second 1", "between", "second 2", "first 2"]);
    }
}

/// Two writers take turns on a disk. Gives the texts that were acknowledged, and the disk before the logs are closed.
fn take_turns(disk: &Disk, levels: [Durability; 2]) -> (Vec<String>, Disk) {
    let open = |level| on(Arc::new(disk.clone()), level).segment_bytes(3_000).checkpoint_every(4).open();
    let logs: Vec<_> = levels.into_iter().filter_map(|level| open(level).ok()).collect();
    let mut acknowledged = Vec::new();
    for number in 0..5 {
        for (writer, log) in logs.iter().enumerate() {
            let text = format!("text {number} of {writer}");
            if put(log, &text).is_ok() {
                acknowledged.push(text);
            }
        }
    }
    let before = disk.after_kill();
    (acknowledged, before)
}

/// Every call fails once, and so many after it. Says what went wrong in which case.
fn check_turns(levels: [Durability; 2], failing: usize) -> Vec<String> {
    let disk = Disk::default();
    take_turns(&disk, levels);
    let calls = disk.state().calls.clone();
    let mut wrong = Vec::new();
    for (call, what) in calls.iter().enumerate() {
        let disk = Disk::failing(call, Fault::Fails { calls: failing, error: io::ErrorKind::Other, after: 30 });
        let (acknowledged, killed) = take_turns(&disk, levels);
        let lost_power = killed.after_power_loss(Left::Nothing, false);
        for (end, disk) in [("closed", disk), ("killed", killed), ("power lost", lost_power)] {
            disk.state().fault = None;
            let case = format!("{levels:?}, {failing} failures from call {call} on ({what}), {end}");
            let wrong_here = match go_on(&disk) {
                // What is acknowledged at `async` is not safe yet.
                Ok(report) if report.is_sound() && levels != [Durability::Group; 2] => None,
                Ok(report) if report.is_sound() => {
                    let texts = texts(&disk);
                    let missing: Vec<_> = acknowledged.iter().filter(|text| !texts.contains(text)).collect();
                    (!missing.is_empty()).then(|| format!("lost {missing:?}"))
                }
                Ok(report) => Some(format!("{:?}: {}", report.integrity(), report.findings[0].text)),
                Err(error) => Some(error.to_string()),
            };
            wrong.extend(wrong_here.map(|wrong| format!("{case}: {wrong}")));
        }
    }
    wrong
}

/// Opens the log once more, records something, and verifies it.
fn go_on(disk: &Disk) -> Result<Report, AuditError> {
    let log = on(Arc::new(disk.clone()), Durability::Group).open()?;
    put(&log, "one more")?;
    log.close()?;
    Verifier::new().storage(disk)
}

#[test]
fn two_writers_go_on_after_every_call_that_fails_once() {
    assert_eq!(check_turns([Durability::Group; 2], 1), Vec::<String>::new());
}

#[test]
fn two_writers_go_on_after_every_call_that_fails_for_a_while() {
    assert_eq!(check_turns([Durability::Group; 2], 3), Vec::<String>::new());
    assert_eq!(check_turns([Durability::Group; 2], 10), Vec::<String>::new());
}

#[test]
fn a_failed_sync_at_the_end_of_a_segment_is_told_with_all_that_is_missing() {
    let disk = Disk::default();
    let log = on(Arc::new(disk.clone()), Durability::Async).segment_bytes(3_000).open().unwrap();
    let mut tried = 0;
    disk.state().failing_syncs = 1;
    while disk.state().failing_syncs > 0 {
        let _ = put(&log, &format!("text {tried}"));
        tried += 1;
    }
    assert!(tried > 3, "{tried} records fill a segment");
    put(&log, "after").unwrap();
    log.checkpoint().unwrap();
    for disk in [disk.after_kill(), disk.after_power_loss(Left::Nothing, false)] {
        let report = assert_sound(&disk);
        assert_eq!(report.gaps, 1, "{report}");
        assert_eq!(texts(&disk).len() as u64 + lost(&disk, "message"), tried + 1);
        assert_eq!(texts(&disk), ["after"]);
    }
}

#[test]
fn a_seal_that_failed_and_is_tried_again_counts_right() {
    let disk = Disk::default();
    let log = open(&disk, Durability::Group);
    put(&log, "one").unwrap();
    put(&log, "two").unwrap();
    disk.state().failing_syncs = 1;
    log.seal_blocking("s", "complete").unwrap_err();
    log.seal_blocking("s", "complete").unwrap();
    put(&log, "three").unwrap();
    log.seal_blocking("s", "again").unwrap();
    for disk in [disk.after_kill(), disk.after_power_loss(Left::Nothing, false)] {
        let report = assert_sound(&disk);
        assert_eq!((report.sealed, lost(&disk, "seal")), (1, 1));
        let counts: Vec<_> = bodies(&disk, Kind::Seal).iter().map(|seal| seal["records"].clone()).collect();
        assert_eq!(counts, [2, 1]);
    }
}

#[test]
fn a_seal_is_safe_at_every_level() {
    for durability in [Durability::Async, Durability::Group, Durability::Record] {
        let disk = Disk::default();
        let log = open(&disk, durability);
        put(&log, "one").unwrap();
        log.seal_blocking("s", "complete").unwrap();
        let report = assert_sound(&disk.after_power_loss(Left::Nothing, false));
        assert_eq!(report.sealed, 1, "{durability:?}: {report}");
        assert_eq!(beside(&disk.after_power_loss(Left::Nothing, true)), beside(&disk), "{durability:?}");
    }
}

#[test]
fn an_idle_process_goes_on_after_another_one_has_removed_segments() {
    let place = Place::new();
    let idle = place.open();
    let log = place.options().segment_bytes(2_000).open().unwrap();
    for number in 0..30 {
        log.take(&message("t", &number.to_string())).unwrap();
    }
    log.seal_blocking("t", "complete").unwrap();
    log.retain(1).unwrap();
    assert!(!place.segment(1).exists());
    put(&idle, "back again").unwrap();
    put(&log, "and the other").unwrap();
    put(&idle, "and once more").unwrap();
    idle.close().unwrap();
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.gaps == 0, "{report}");
    assert_eq!(texts(&Folder::new(place.log())).iter().filter(|text| text.contains(' ')).count(), 3);
}

#[test]
fn retention_that_was_cut_off_leaves_nothing_behind_when_it_is_done_again() {
    let small = |disk: &Disk| {
        on(Arc::new(disk.clone()), Durability::Group).segment_bytes(2_000).blob_above(300).open().unwrap()
    };
    let disk = Disk::default();
    let log = small(&disk);
    for number in 0..20 {
        log.take(&message("t", &number.to_string().repeat(500))).unwrap();
    }
    log.seal_blocking("t", "complete").unwrap();
    log.close().unwrap();
    let blobs = |disk: &Disk| -> Vec<String> {
        let bodies = bodies(disk, Kind::Message);
        let hashes = bodies.iter().map(|body| body["blob"].as_str().unwrap().strip_prefix("sha256:").unwrap());
        hashes.map(|hash| format!("blobs/{}/{hash}", &hash[..2])).collect()
    };
    let all = blobs(&disk);
    let segments = |disk: &Disk| disk.list("").unwrap().iter().filter(|file| file.starts_with("seg-")).count();
    let mut cut_off = 0;
    for call in 0.. {
        let disk = disk.after_kill();
        let log = small(&disk);
        let begun = disk.state().calls.len();
        disk.state().fault = Some((begun + call, Fault::Power(0)));
        let is_done = log.retain(1).is_ok();
        drop(log);
        let disk = disk.after_power_loss(Left::All, true);
        assert_sound(&disk);
        if is_done {
            break;
        }
        cut_off += 1;
        let log = small(&disk);
        log.retain(1).unwrap();
        log.close().unwrap();
        assert_sound(&disk);
        assert!(segments(&disk) <= 2, "call {call}");
        let kept = blobs(&disk);
        let left = all.iter().filter(|blob| disk.size(blob).unwrap().is_some() && !kept.contains(blob));
        assert_eq!(left.count(), 0, "call {call}");
    }
    assert!(cut_off > 20, "it was cut off {cut_off} times");
}

#[test]
fn a_torn_note_beside_the_log_is_repaired_by_the_next_writer() {
    for is_running in [false, true] {
        let place = Place::new();
        let mut log = place.open();
        put(&log, "one").unwrap();
        log.checkpoint().unwrap();
        let file = place.log().join("checkpoints");
        // Another process is killed inside its note.
        let whole = fs::read(&file).unwrap();
        fs::write(&file, [&whole[..], &whole[..100]].concat()).unwrap();
        assert_eq!(place.verify().integrity(), Integrity::Unreadable);
        if !is_running {
            log = place.open();
        }
        put(&log, "two").unwrap();
        log.checkpoint().unwrap();
        let report = place.verify();
        assert!(report.is_sound(), "running: {is_running}: {report}");
        assert!(fs::read(&file).unwrap().starts_with(&whole), "what was whole stays");
        put(&log, "three").unwrap();
        log.close().unwrap();
        assert!(place.verify().is_sound());
    }
}

#[test]
fn a_torn_note_in_an_anchor_does_not_take_away_the_others() {
    let place = Place::new();
    let anchored = place.at("anchored");
    let write = |text: &str| {
        let log = place.options().anchor(FileAnchor::new(&anchored)).open().unwrap();
        put(&log, text).unwrap();
        log.close().unwrap();
    };
    write("one");
    write("two");
    let notes = fs::read(&anchored).unwrap();
    fs::write(&anchored, &notes[..notes.len() - 40]).unwrap();
    let verify = || Verifier::new().checkpoints(&fs::read(&anchored).unwrap()).unwrap().folder(place.log()).unwrap();
    // At the end of the file it is torn, and in the middle when another note follows.
    assert!(verify().is_sound());
    assert_eq!(verify().anchored, Some(3), "what the first note covers");
    write("three");
    let report = verify();
    assert!(report.is_sound() && report.anchored == Some(report.size - 1), "{report}");
}

#[test]
fn checkpoints_are_signed_in_time_while_syncs_are_slow() {
    let disk = Disk::default();
    let watch = |call: &str| {
        if call.starts_with("sync seg-") {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    };
    let after = Duration::from_millis(100);
    let log = on(Watched::new(disk.clone(), watch), Durability::Group).checkpoint_after(after).open().unwrap();
    let end = Instant::now() + 15 * after;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < end {
                    put(&log, "x").unwrap();
                }
            });
        }
    });
    let (report, kept) = (assert_sound(&disk), beside(&disk));
    assert!(report.checkpoints >= 5 && kept >= 5, "{kept} beside the log; {report}");
}

#[test]
fn checkpoints_are_signed_and_anchored_in_time_while_threads_are_busy() {
    let place = Place::new();
    let after = Duration::from_millis(100);
    let anchor = FileAnchor::new(place.at("anchored"));
    let log = place.options().durability(Durability::Async).checkpoint_after(after).anchor(anchor).open().unwrap();
    // Some are waited for, however slow the machine is; if busy threads kept them from being signed, none would ever come.
    let limit = Instant::now() + 300 * after;
    let anchored = || fs::read_to_string(place.at("anchored")).unwrap_or_default().matches("\nhead ").count();
    let counts = || (beside(&Folder::new(place.log())), anchored());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    // It may not keep up.
                    let _ = log.take(&message("s", "x"));
                    std::thread::yield_now();
                }
            });
        }
        while Instant::now() < limit && !matches!(counts(), (5.., 5..)) {
            std::thread::sleep(after);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let (kept, anchored) = counts();
    assert!(kept >= 5 && anchored >= 5, "{kept} checkpoints beside the log, {anchored} anchored");
}

#[test]
fn a_log_is_never_called_unsound_while_it_is_written() {
    let place = Place::new();
    let log = place.options().segment_bytes(4_000).checkpoint_every(3).open().unwrap();
    let end = Instant::now() + Duration::from_secs(2);
    let verified = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if Instant::now() > end {
                    break;
                }
                put(&log, &number.to_string()).unwrap();
                if number % 5 == 0 {
                    log.checkpoint().unwrap();
                }
            }
        });
        let mut verified = 0;
        while Instant::now() < end {
            let report = place.verify();
            assert_ne!(report.integrity(), Integrity::Unsound, "{report}");
            verified += 1;
        }
        verified
    });
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.segments > 10 && verified > 10, "{verified} times; {report}");
}

#[test]
fn what_is_written_at_any_moment_of_a_verification_does_not_disturb_it() {
    // As many moments as a verification has calls.
    for moment in 0.. {
        let disk = Disk::default();
        let log =
            on(Arc::new(disk.clone()), Durability::Group).segment_bytes(3_000).checkpoint_every(4).open().unwrap();
        (0..12).for_each(|number| put(&log, &number.to_string()).unwrap());
        log.checkpoint().unwrap();
        let (seen, log) = (AtomicUsize::new(0), Mutex::new(Some(log)));
        let watch = move |_: &str| {
            if seen.fetch_add(1, Ordering::Relaxed) == moment {
                let log = log.lock().unwrap().take().unwrap();
                (0..20).for_each(|number| put(&log, &format!("while it is verified {number}")).unwrap());
                log.close().unwrap();
            }
            Ok(())
        };
        let watched = Watched::new(disk.clone(), watch);
        let report = Verifier::new().storage(&*watched).unwrap();
        assert!(report.is_sound(), "moment {moment}: {report}");
        if texts(&disk).len() == 12 {
            assert!(moment > 8, "{moment}");
            break;
        }
        assert_sound(&disk);
    }
}

#[test]
fn opening_a_log_makes_safe_what_a_killed_writer_left() {
    let disk = Disk::default();
    let killed = open(&disk, Durability::Async);
    put(&killed, "written and not synced").unwrap();
    let unsynced = disk.after_power_loss(Left::Nothing, false);
    assert!(texts(&unsynced).is_empty(), "it tests nothing");
    let disk = disk.after_kill();
    let log = open(&disk, Durability::Group);
    assert_eq!(texts(&disk.after_power_loss(Left::Nothing, false)), ["written and not synced"]);
    put(&log, "next").unwrap();
    let after = disk.after_power_loss(Left::Nothing, false);
    assert_sound(&after);
    assert_eq!(texts(&after), ["written and not synced", "next"]);
}

#[test]
fn what_is_lost_because_the_lock_fails_is_told() {
    for times in [1, 2, 5] {
        let disk = Disk::default();
        let failing = Arc::new(AtomicUsize::new(0));
        let watch = {
            let failing = failing.clone();
            move |call: &str| match failing.load(Ordering::Relaxed) {
                left @ 1.. if call == "lock" => {
                    failing.store(left - 1, Ordering::Relaxed);
                    Err(io::Error::other("too many open files"))
                }
                _ => Ok(()),
            }
        };
        let storage = Watched::new(disk.clone(), watch);
        let log = on(storage, Durability::Group).checkpoint_after(Duration::from_millis(1)).open().unwrap();
        put(&log, "one").unwrap();
        failing.store(times, Ordering::Relaxed);
        let (begun, mut kept, mut refused) = (Instant::now(), 1, 0);
        // The writer may hold the lock already for those who come soon: then the first of these are kept.
        while failing.load(Ordering::Relaxed) > 0 || refused + kept < 2 {
            match put(&log, "two") {
                Ok(()) => kept += 1,
                Err(_) => refused += 1,
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "it does not recover");
            std::thread::yield_now();
        }
        while put(&log, "three").is_err() {
            refused += 1;
        }
        log.seal_blocking("s", "complete").unwrap();
        assert_sound(&disk);
        assert_eq!((texts(&disk).len() as u64, lost(&disk, "message")), (kept + 1, refused), "{times} times");
    }
}

#[test]
fn a_writer_waits_for_the_one_that_holds_the_lock() {
    let place = Place::new();
    let (removed, other) = (AtomicBool::new(true), Arc::new(OnceLock::<Log>::new()));
    let (tell, told) = mpsc::channel();
    let (removed, tell) = (Arc::new(removed), Mutex::new(tell));
    let watch = {
        let (removed, other) = (removed.clone(), other.clone());
        move |call: &str| {
            if call == "append seg-000001.jsonl" && !removed.swap(true, Ordering::Relaxed) {
                let (other, tell) = (other.get().unwrap().clone(), tell.lock().unwrap().clone());
                let (done, is_done) = mpsc::channel();
                std::thread::spawn(move || {
                    tell.send(put(&other, "other")).unwrap();
                    let _ = done.send(());
                });
                // It has to wait until this one is done, and then it goes on.
                let _ = is_done.recv_timeout(Duration::from_millis(300));
            }
            Ok(())
        }
    };
    let log = on(Watched::new(Folder::new(place.log()), watch), Durability::Group).open().unwrap();
    let _ = other.set(on(Arc::new(Folder::new(place.log())), Durability::Group).open().unwrap());
    put(&log, "one").unwrap();
    removed.store(false, Ordering::Relaxed);
    put(&log, "two").unwrap();
    told.recv().unwrap().unwrap();
    put(&log, "three").unwrap();
    assert_sound(&Folder::new(place.log()));
    assert_eq!(texts(&Folder::new(place.log())), ["one", "two", "other", "three"]);
}

/// Asks a log how it is doing whenever something is told about it.
struct Curious(OnceLock<Log>);

impl tracing::Subscriber for &'static Curious {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.get().map(Log::status);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn whoever_is_told_of_a_failure_may_ask_for_the_status() {
    static CURIOUS: Curious = Curious(OnceLock::new());
    tracing::subscriber::set_global_default(&CURIOUS).unwrap();
    let disk = Disk::default();
    let log = open(&disk, Durability::Group);
    let _ = CURIOUS.0.set(log.clone());
    disk.state().failing_syncs = 1;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(put(&log, "one").is_err()));
    assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(true));
}
