//! A whole log that is opened and written to: whatever it is, nothing panics, and no record that was there is destroyed.
//! A sound log can be opened, and stays sound; so does one that a crash left with half a line at its end.
#![no_main]

use std::sync::Arc;

use amplifier_audit::{Durability, Log, Verifier};
use amplifier_fuzz::{EVERY, Files, Input, Memory, checkpoint, cut_halves, key, segments, split_notes};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let Input { mode, files: before } = Input::read(input, &key());
    let sound = is_sound(before.clone());
    let storage = Arc::new(Memory::new(before.clone()));
    let options = Log::on(storage.clone(), key()).checkpoint_every(EVERY);
    // A segment that has its size is ended, so the other bit decides whether there is a new one.
    let options = options.segment_bytes(if mode.other { 1 } else { 1 << 20 }).durability(Durability::Record);
    match options.open() {
        Ok(log) => {
            log.policy_change(&json!({"what": "fuzzed"})).unwrap();
            log.close().unwrap();
            let after = storage.files();
            check_kept(&before, &after);
            assert!(!sound || is_sound(after), "a sound log did not stay so");
        }
        Err(error) => {
            assert!(!sound, "a sound log was refused: {error}");
            check_kept(&before, &storage.files());
        }
    }
});

/// Whether the log is sound and signed with our key, apart from half a line or half a note at the end.
fn is_sound(mut files: Files) -> bool {
    // After the last number there is no segment to go on with.
    if !cut_halves(&mut files) || segments(&mut files).iter().any(|(number, _)| *number == u64::from(u32::MAX)) {
        return false;
    }
    let report = Verifier::new().storage(&Memory::new(files));
    report.is_ok_and(|report| report.is_sound() && report.public_key == Some(key().public()))
}

/// Every segment begins as before, up to a torn end, and that was moved aside.
fn check_kept(before: &Files, after: &Files) {
    for (number, file) in segments(&mut before.clone()) {
        let name = format!("seg-{number:06}.jsonl");
        let now = after.get(&name).unwrap_or_else(|| panic!("`{name}` is gone"));
        let same = file.iter().zip(now).take_while(|(before, now)| before == now).count();
        let is_aside = |from: usize| {
            let aside = format!("torn/{name}.{from}.");
            after.iter().any(|(other, torn)| other.starts_with(&aside) && *torn == file[from..])
        };
        // What was appended since may begin with the same bytes as what was moved.
        assert!(same == file.len() || (0..=same).any(is_aside), "`{name}` lost something after {same} bytes");
    }
    let [before, after] = [before, after].map(|files| files.get("checkpoints").map_or(&[][..], Vec::as_slice));
    let notes = split_notes(before).0;
    let whole = notes.iter().take_while(|note| checkpoint(note).is_some()).map(|note| note.len() + 1).sum::<usize>();
    assert!(after.starts_with(&before[..whole]), "checkpoints were destroyed");
}
