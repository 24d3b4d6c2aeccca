//! Rotating keys: wherever it stops, the log goes on with a key that is there; and the old one is gone.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::common::disk::{Disk, Fault, Left};
use crate::common::{Place, message};
use amplifier_audit::{AuditError, Integrity, Log, PublicKey, SigningKey, Verifier};

fn key() -> SigningKey {
    SigningKey::generate().unwrap()
}

fn put(log: &Log, text: &str) -> Result<(), AuditError> {
    let receipt = log.take(&message("s", text))?;
    log.flush_blocking(receipt)
}

fn in_force(log: &Log) -> PublicKey {
    log.status().public_key.unwrap()
}

fn in_file(place: &Place) -> PublicKey {
    SigningKey::load(&place.key()).unwrap().public()
}

#[track_caller]
fn check_sound(place: &Place, keys: &[PublicKey]) {
    for key in keys {
        let report = Verifier::new().key(*key).folder(place.log()).unwrap();
        assert!(report.is_sound(), "{report}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn nothing_of_the_old_key_is_left_and_the_new_one_has_signed() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one").unwrap();
    let (old, line) = (in_force(&log), fs::read_to_string(place.key()).unwrap());
    log.rotate_key(key()).unwrap();
    let new = in_file(&place);
    assert_ne!(old, new);
    assert_eq!(in_force(&log), new);
    assert_eq!(names(&place.at("")), ["audit", "audit.key", "audit.key.log"]);
    let file = fs::read_to_string(place.key()).unwrap();
    assert_eq!((file.len(), file.lines().count()), (line.len(), 1));
    // The last record is a checkpoint of the new key, which covers all that is before it.
    let report = Verifier::new().key(new).folder(place.log()).unwrap();
    assert!(report.is_sound() && report.unsigned() == 1, "{report}");
    let beside = fs::read_to_string(place.log().join("checkpoints")).unwrap();
    assert!(beside.contains(&format!("\n{}\n", report.covered)), "{beside}");
    put(&log, "two").unwrap();
    log.close().unwrap();
    check_sound(&place, &[old, new]);
}

/// A sandbox mounts a cover over the file, which a new file would not have.
#[cfg(unix)]
#[test]
fn the_file_of_the_key_stays_the_same_file() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let log = place.open();
    let file = || fs::metadata(place.key()).map(|file| (file.dev(), file.ino(), file.mode() & 0o777)).unwrap();
    let before = file();
    log.rotate_key(key()).unwrap();
    assert_eq!(file(), before);
    assert_eq!(before.2, 0o600);
}

#[test]
fn wherever_a_rotation_stops_the_log_goes_on() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one").unwrap();
    log.checkpoint().unwrap();
    let read = || (fs::read(place.segment(1)).unwrap(), fs::read(place.log().join("checkpoints")).unwrap());
    let ((records, beside), old) = (read(), fs::read(place.key()).unwrap());
    log.rotate_key(key()).unwrap();
    let ((all, beside_all), new) = (read(), fs::read(place.key()).unwrap());
    drop(log);
    let bound = fs::read(place.at("audit.key.log")).unwrap();
    let both = [&old[..], &new[..]].concat();
    let rotated = records.len() + all[records.len()..].iter().position(|&byte| byte == b'\n').unwrap() + 1;

    let check = |all: &[u8], beside: &[u8], file: &[u8]| {
        let stopped = Place::new();
        fs::create_dir(stopped.log()).unwrap();
        fs::write(stopped.segment(1), all).unwrap();
        fs::write(stopped.log().join("checkpoints"), beside).unwrap();
        fs::write(stopped.at("audit.key.log"), &bound).unwrap();
        // With the permissions of one.
        SigningKey::create(&stopped.key()).unwrap();
        fs::write(stopped.key(), file).unwrap();
        let log = stopped.open();
        put(&log, "two").unwrap();
        log.close().unwrap();
        let key = if all.len() < rotated { &old } else { &new };
        assert_eq!(fs::read(stopped.key()).unwrap()[..key.len()], key[..]);
        check_sound(&stopped, &[in_file(&stopped)]);
        // And keys can be rotated.
        let log = stopped.open();
        log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        log.close().unwrap();
        check_sound(&stopped, &[in_file(&stopped)]);
        assert_eq!(fs::read(stopped.key()).unwrap().len(), key.len());
    };
    // The new key is put behind the old one.
    for end in (old.len()..=both.len()).step_by(13).chain([both.len()]) {
        check(&records, &beside, &both[..end]);
    }
    // The record is written, and the checkpoint; then the one beside the log.
    let ends = (records.len()..all.len()).step_by(37).chain([rotated - 1, rotated, rotated + 1, all.len()]);
    ends.for_each(|end| check(&all[..end], &beside, &both));
    for end in (beside.len()..beside_all.len()).step_by(41) {
        check(&all, &beside_all[..end], &both);
    }
    // The old key is written over, then what is behind it goes.
    for end in (0..=new.len()).step_by(13).chain([new.len()]) {
        check(&all, &beside_all, &[&new[..end], &both[end..]].concat());
    }
    check(&all, &beside_all, &new);
}

#[test]
fn others_who_write_follow_and_can_rotate_too() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    let mut keys = vec![in_force(&first)];
    put(&first, "one").unwrap();
    put(&second, "two").unwrap();
    for log in [&first, &second, &second, &first] {
        // It does not know yet what the other did.
        log.rotate_key(key()).unwrap();
        keys.push(in_file(&place));
        assert_eq!(in_force(log), keys[keys.len() - 1]);
    }
    put(&second, "three").unwrap();
    assert_eq!(in_force(&second), in_force(&first));
    drop((first, second));
    place.open().close().unwrap();
    check_sound(&place, &keys);
    assert_eq!(place.verify().rotations, 4);
}

#[test]
fn rotations_at_the_same_time_are_one_after_the_other() {
    let place = Place::new();
    let logs: Vec<Log> = (0..4).map(|_| place.open()).collect();
    std::thread::scope(|scope| {
        for log in &logs {
            scope.spawn(move || {
                for number in 0..5 {
                    log.rotate_key(key()).unwrap();
                    put(log, &format!("number {number}")).unwrap();
                }
            });
        }
    });
    drop(logs);
    place.open().close().unwrap();
    check_sound(&place, &[in_file(&place)]);
    assert_eq!(place.verify().rotations, 20);
}

#[test]
fn what_another_left_after_a_rotation_is_put_in_order_with_the_new_key() {
    for (left, verdict, told) in [("{\"v\":1", Integrity::Sound, (1, 0)), ("REPEATED", Integrity::Unsound, (0, 1))] {
        let place = Place::new();
        let log = place.options().checkpoint_every(2).open().unwrap();
        put(&log, "one").unwrap();
        let other = place.open();
        other.rotate_key(key()).unwrap();
        put(&other, "two").unwrap();
        other.close().unwrap();
        let whole = fs::read_to_string(place.segment(1)).unwrap();
        let last = whole.split_inclusive('\n').next_back().unwrap();
        fs::write(place.segment(1), format!("{whole}{}", left.replace("REPEATED", last))).unwrap();
        put(&log, "three").unwrap();
        log.close().unwrap();
        let log = place.open();
        put(&log, "four").unwrap();
        log.close().unwrap();
        let report = place.verify();
        assert_eq!((report.integrity(), (report.recoveries, report.breaches)), (verdict, told), "{report}");
    }
}

/// Whoever has the old key could go on from there as if nothing had been rotated.
#[test]
fn a_log_that_was_put_back_to_before_a_rotation_is_refused() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one").unwrap();
    log.checkpoint().unwrap();
    let before = fs::read(place.segment(1)).unwrap();
    log.rotate_key(key()).unwrap();
    log.close().unwrap();
    fs::write(place.segment(1), before).unwrap();
    fs::remove_file(place.log().join("checkpoints")).unwrap();
    let error = place.options().open().unwrap_err();
    assert!(matches!(error, AuditError::WrongKey { .. }), "{error}");
    assert!(error.to_string().ends_with("if the key was rotated, the log was restored from an older copy"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_and_harms_nothing() {
    let place = Place::new();
    let log = place.open();
    put(&log, "one").unwrap();
    let before = in_force(&log);
    let away = place.at("away");
    fs::rename(place.key(), &away).unwrap();
    let error = log.rotate_key(key()).unwrap_err().to_string();
    assert!(error.starts_with("signing key `"), "{error}");
    fs::rename(&away, place.key()).unwrap();
    put(&log, "two").unwrap();
    assert_eq!((in_force(&log), in_file(&place), log.status().failure), (before, before, None));
    log.close().unwrap();
    check_sound(&place, &[before]);
    assert_eq!(place.verify().gaps, 0);
}

#[test]
fn a_disk_that_fails_leaves_one_of_the_keys_in_force() {
    let (old, new) = (key(), key());
    for number in 0.. {
        let disk = Disk::default();
        let log = Log::on(Arc::new(disk.clone()), old.clone()).open().unwrap();
        put(&log, "one").unwrap();
        let from = disk.state().calls.len();
        let fault = Fault::Fails { calls: 1, error: io::ErrorKind::Other, after: number % 90 };
        disk.state().fault = Some((from + number, fault));
        let rotated = log.rotate_key(new.clone());
        let calls = disk.state().calls.len() - from;
        let key = if in_force(&log) == new.public() { &new } else { &old };
        for _ in 0..2 {
            // The first may find that the log has failed.
            let _ = put(&log, "two");
        }
        for disk in [disk.after_kill(), disk.after_power_loss(Left::Nothing, false)] {
            disk.state().fault = None;
            let log = Log::on(Arc::new(disk.clone()), key.clone()).open().unwrap();
            put(&log, "three").unwrap();
            log.close().unwrap();
            let report = Verifier::new().key(old.public()).storage(&disk).unwrap();
            assert!(report.is_sound(), "{number}: {report}");
            assert_eq!(report.rotations == 1, key.public() == new.public(), "{number}: {report}");
        }
        if number > calls {
            rotated.unwrap();
            assert!(calls > 3, "it tests nothing");
            break;
        }
    }
}
