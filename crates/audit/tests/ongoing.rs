//! A verification that goes on as the log grows says what one from the beginning says.

use crate::common::{Place, intent, message, outcome};
use amplifier_audit::{Advance, Folder, Integrity, SigningKey, Verification, Verifier};
use serde_json::Value;

/// Goes on to the end; false if it has to begin again.
fn advance(verification: &mut Verification, place: &Place) -> bool {
    let folder = Folder::new(place.log());
    loop {
        match verification.advance(&folder).unwrap() {
            Advance::More => {}
            Advance::Done => return true,
            Advance::Again => return false,
        }
    }
}

fn told(report: &amplifier_audit::Report) -> Value {
    report.to_json()
}

#[test]
fn it_says_the_same_as_one_from_the_beginning_at_every_step() {
    let place = Place::new();
    let log = place.options().segment_bytes(20_000).checkpoint_every(8).open().unwrap();
    let mut ongoing = Verifier::new().ongoing();
    for round in 0..10 {
        for n in 0..20 {
            log.take(&intent("s", &format!("{round}-{n}"))).unwrap();
            log.take(&message("s", &"x".repeat(if n == 0 { 20_000 } else { 10 }))).unwrap();
            log.take(&outcome("s", &format!("{round}-{n}"))).unwrap();
        }
        if round == 5 {
            log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        }
        log.checkpoint().unwrap();
        assert!(advance(&mut ongoing, &place));
        assert_eq!(told(&ongoing.report()), told(&place.verify()), "round {round}");
        assert!(ongoing.report().is_sound());
        assert_eq!(ongoing.verified_to(), log.status().size);
    }
    log.seal_blocking("s", "complete").unwrap();
    assert!(advance(&mut ongoing, &place));
    log.retain(2).unwrap();
    assert!(!advance(&mut ongoing, &place), "what was removed needs a new verification");
    let mut again = Verifier::new().ongoing();
    assert!(advance(&mut again, &place));
    assert_eq!(told(&again.report()), told(&place.verify()));
}

#[test]
fn what_is_wrong_with_new_records_is_found() {
    let place = Place::new();
    let log = place.open();
    (0..20).for_each(|n| _ = log.take(&message("s", &format!("number {n}"))).unwrap());
    log.checkpoint().unwrap();
    let mut ongoing = Verifier::new().ongoing();
    assert!(advance(&mut ongoing, &place));
    assert!(ongoing.report().is_sound() && ongoing.findings().is_empty());
    (20..40).for_each(|n| _ = log.take(&message("s", &format!("number {n}"))).unwrap());
    log.close().unwrap();
    let text = std::fs::read_to_string(place.segment(1)).unwrap();
    let without = text.lines().filter(|line| !line.contains("number 30")).map(|line| format!("{line}\n")).collect();
    for wrong in [text.replace("number 30", "number 77"), without, text.replace("number 30", "number\t30")] {
        std::fs::write(place.segment(1), &wrong).unwrap();
        let mut new = Verifier::new().ongoing();
        assert!(advance(&mut new, &place));
        assert_eq!(told(&new.report()), told(&place.verify()));
        assert_eq!(new.report().integrity(), place.verify().integrity());
        assert_ne!(new.report().integrity(), Integrity::Sound);
    }
    // The one that has passed the beginning finds it, too.
    std::fs::write(place.segment(1), text.replace("number 30", "number 77")).unwrap();
    assert!(advance(&mut ongoing, &place));
    assert_eq!(ongoing.report().integrity(), Integrity::Unsound);
    std::fs::write(place.segment(1), &text[..text.find("number 10").unwrap()]).unwrap();
    assert!(!advance(&mut ongoing, &place), "a log that is shorter than before is another one");
}
