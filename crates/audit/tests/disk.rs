//! A disk that fails in every way, at every call: what is left is a sound log, or a clear refusal.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::disk::{Disk, Fault, Left};
use crate::common::message;
use amplifier_audit::{Durability, Log, LogOptions, RecordSource, Report, SigningKey, Verifier, read_records};

fn options(disk: &Disk, durability: Durability) -> LogOptions {
    let key = SigningKey::from_seed([7; 32]);
    Log::on(Arc::new(disk.clone()), key)
        .durability(durability)
        .segment_bytes(3_000)
        .checkpoint_every(4)
        .checkpoint_after(Duration::from_millis(2))
        .blob_above(600)
}

/// Writes to a log as long as it works; gives the texts of the records that it acknowledged.
fn work(disk: &Disk, durability: Durability) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let Ok(log) = options(disk, durability).open() else { return acknowledged };
    for number in 0..9 {
        // One of them is a blob.
        let text = if number == 5 { format!("text {number} {}", "x".repeat(700)) } else { format!("text {number}") };
        let Ok(receipt) = log.take(&message("s", &text)) else { continue };
        if log.flush_blocking(receipt).is_ok() {
            acknowledged.push(text);
        }
    }
    acknowledged
}

fn texts(disk: &Disk) -> Vec<String> {
    let mut texts = Vec::new();
    read_records(disk, |record| {
        let mut body: serde_json::Value = serde_json::from_str(record.body.get()).unwrap();
        if let Some(blob) = body["blob"].as_str() {
            let file = format!("blobs/{}/{}", &blob[7..9], &blob[7..]);
            body = serde_json::from_slice(&disk.read(&file, 0).unwrap()).unwrap();
        }
        texts.extend(body["text"].as_str().map(str::to_owned));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    texts
}

/// Opens the log again, writes one more record, and verifies it.
fn go_on(disk: &Disk, durability: Durability) -> Result<Report, String> {
    let log = options(disk, durability).open().map_err(|error| error.to_string())?;
    let receipt = log.take(&message("s", "one more")).map_err(|error| error.to_string())?;
    log.flush_blocking(receipt).map_err(|error| error.to_string())?;
    log.close().map_err(|error| error.to_string())?;
    Verifier::new().storage(disk).map_err(|error| error.to_string())
}

/// The calls of the work without failures.
fn calls(durability: Durability) -> Vec<String> {
    let disk = Disk::default();
    let acknowledged = work(&disk, durability);
    assert_eq!(acknowledged.len(), 9);
    let report = go_on(&disk, durability).unwrap();
    assert!(report.is_sound() && report.segments > 1 && report.blobs == 1, "{report}");
    disk.state().calls.clone()
}

fn check_power_loss(durability: Durability, call: usize, after: usize, lefts: &[(Left, bool)]) -> usize {
    let disk = Disk::failing(call, Fault::Power(after));
    let acknowledged = work(&disk, durability);
    for &(left, names) in lefts {
        let case = format!("{durability:?}, call {call}, {after} bytes, {left:?}, names {names}");
        let disk = disk.after_power_loss(left, names);
        let report = go_on(&disk, durability).unwrap_or_else(|error| panic!("{case}: {error}"));
        // A hole may leave a whole record after a broken one, and that counts as a breach whoever did it.
        if !(matches!(left, Left::Hole(_)) && report.breaches > 0) {
            assert!(report.is_sound(), "{case}: {report}");
            if durability != Durability::Async {
                let texts = texts(&disk);
                let lost: Vec<_> = acknowledged.iter().filter(|text| !texts.contains(text)).collect();
                assert!(lost.is_empty(), "{case}: lost {lost:?}\n{report}");
            }
        }
    }
    lefts.len()
}

#[test]
fn power_is_lost_at_every_call() {
    let mut cases = 0;
    for durability in [Durability::Group, Durability::Record, Durability::Async] {
        for call in 0..calls(durability).len() {
            let lefts = [Left::Nothing, Left::All, Left::Zeros, Left::Hole(100), Left::Hole(512)];
            let lefts: Vec<_> = lefts.into_iter().flat_map(|left| [(left, false), (left, true)]).collect();
            cases += check_power_loss(durability, call, usize::MAX, &lefts);
        }
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn power_is_lost_after_every_byte_of_every_write() {
    let mut cases = 0;
    for (call, what) in calls(Durability::Group).iter().enumerate() {
        let Some(bytes) = what.strip_prefix("append ").and_then(|rest| rest.split(' ').next()) else { continue };
        for after in 0..=bytes.parse().unwrap() {
            cases += check_power_loss(Durability::Group, call, after, &[(Left::All, true)]);
        }
    }
    assert!(cases > 5_000, "{cases}");
}

#[test]
fn every_call_fails_once_and_for_a_while() {
    for durability in [Durability::Group, Durability::Record, Durability::Async] {
        let count = calls(durability).len();
        for error in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            for (calls, after) in [(1, 0), (1, 50), (7, 30), (40, 0)] {
                for call in 0..count {
                    let case = format!("{durability:?}, call {call}, {calls} calls with {error:?} after {after} bytes");
                    let disk = Disk::failing(call, Fault::Fails { calls, error, after });
                    let acknowledged = work(&disk, durability);
                    disk.state().fault = None;
                    let report = go_on(&disk, durability).unwrap_or_else(|error| panic!("{case}: {error}"));
                    assert!(report.is_sound(), "{case}: {report}");
                    let texts = texts(&disk);
                    let lost: Vec<_> = acknowledged.iter().filter(|text| !texts.contains(text)).collect();
                    assert!(lost.is_empty() || durability == Durability::Async, "{case}: lost {lost:?}\n{report}");
                    assert!(lost.is_empty() || report.gaps > 0, "{case}: lost {lost:?} without a word\n{report}");
                }
            }
        }
    }
}

#[test]
fn short_writes_change_nothing() {
    for most in [1, 7, 100] {
        let disk = Disk::failing(0, Fault::Short(most));
        assert_eq!(work(&disk, Durability::Group).len(), 9);
        let report = go_on(&disk, Durability::Group).unwrap();
        assert!(report.is_sound() && report.recoveries == 0, "{report}");
    }
}

#[test]
fn a_full_disk_denies_until_there_is_room_and_then_says_what_is_missing() {
    let disk = Disk::default();
    let log = options(&disk, Durability::Group).open().unwrap();
    let receipt = log.take(&message("s", "before")).unwrap();
    log.flush_blocking(receipt).unwrap();
    disk.state().fault = Some((0, Fault::Fails { calls: usize::MAX, error: io::ErrorKind::StorageFull, after: 0 }));
    let receipt = log.take(&message("s", "lost")).unwrap();
    let error = log.flush_blocking(receipt).unwrap_err().to_string();
    assert!(error.contains("could not keep its records"), "{error}");
    assert!(log.take(&message("s", "refused")).is_err());
    let again = log.flush_blocking(receipt).unwrap_err().to_string();
    assert_eq!(again.matches("could not keep its records").count(), 1, "{again}");
    assert!(log.status().failure.is_some());

    disk.state().fault = None;
    let begun = Instant::now();
    while log.status().failure.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not recover");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(log.flush_blocking(receipt).is_err(), "what was lost stays lost for whoever recorded it");
    let receipt = log.take(&message("s", "after")).unwrap();
    log.flush_blocking(receipt).unwrap();
    log.close().unwrap();
    assert_eq!(texts(&disk), ["before", "after"]);
    let report = Verifier::new().storage(&disk).unwrap();
    assert!(report.is_sound() && report.gaps == 1, "{report}");
    let mut gap = serde_json::Value::Null;
    read_records(&disk, |record| {
        if record.kind == amplifier_audit::Kind::Gap {
            gap = serde_json::from_str(record.body.get()).unwrap();
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((&gap["lost"], &gap["kinds"]["message"]), (&2.into(), &2.into()), "{gap}");
}
