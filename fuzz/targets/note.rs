//! A signed note: whatever it is, reading it does not panic, and what can be read has only one text.
#![no_main]

use amplifier_audit::{Checkpoint, Note, Verifier};
use amplifier_fuzz::key;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // A file of notes.
    let _ = Verifier::new().checkpoints(input);

    let Ok(note) = Note::parse(input) else { return };
    assert_eq!(note.to_string().as_bytes(), input);
    assert_eq!(Note::parse(note.to_string()), Ok(note.clone()));
    assert!(note.text().ends_with('\n'));
    let name = note.text().lines().next().unwrap_or_default();
    note.is_signed_by(name, &key().public());

    let Ok(checkpoint) = Checkpoint::read(&note) else { return };
    let again = checkpoint.sign(&key());
    assert_eq!(again.text(), note.text());
    assert!(again.is_signed_by(&Checkpoint::origin(&checkpoint.log), &key().public()));
});
