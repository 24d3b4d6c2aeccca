//! A log of version 1 that was stored: whatever changes here, it stays readable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use amplifier_audit::{Body, BodyReader, Folder, Verifier, read_records};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/logs/v1")
}

#[test]
fn a_stored_log_is_sound() {
    let report = Verifier::new().folder(folder()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!((report.segments, report.sealed, report.in_doubt.len()), (2, 1, 1));
}

#[test]
fn a_stored_log_has_records_of_every_kind_and_their_bodies_are_found() {
    let source = Folder::new(folder());
    let (mut kinds, mut bodies) = (BTreeMap::new(), BodyReader::new());
    let (mut whole, mut elsewhere, mut erased, mut withheld) = (0, 0, 0, 0);
    read_records(&source, |record| {
        *kinds.entry(record.kind.as_str()).or_insert(0) += 1;
        match bodies.read(record, &source).unwrap() {
            Body::Whole(text) if text == record.body.get() => whole += 1,
            Body::Whole(_) => elsewhere += 1,
            Body::Erased { .. } => erased += 1,
            Body::Withheld { .. } => withheld += 1,
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected = [
        ("approval_decision", 8),
        ("approval_request", 2),
        ("event", 20),
        ("failure", 1),
        ("genesis", 1),
        ("hook_report", 14),
        ("injection", 6),
        ("intent", 5),
        ("key_rotation", 1),
        ("late_answer", 2),
        ("message", 3),
        ("outcome", 5),
        ("policy_change", 2),
        ("seal", 1),
        ("segment", 1),
    ];
    kinds.remove("checkpoint");
    assert_eq!(kinds, BTreeMap::from(expected));
    assert_eq!((elsewhere, erased, withheld), (4, 1, 1), "{whole} stand in their lines");
}

#[test]
fn the_body_of_every_entry_is_read_and_written_again_byte_for_byte() {
    let source = Folder::new(folder());
    let (mut bodies, mut entries) = (BodyReader::new(), 0);
    read_records(&source, |record| {
        let Body::Whole(text) = bodies.read(record, &source).unwrap() else { return ControlFlow::Continue(()) };
        if let Some(entry) = record.entry(&text).unwrap_or_else(|error| panic!("record {}: {error}", record.seq)) {
            entries += 1;
            assert_eq!(entry.kind(), record.kind.as_str());
            assert_eq!(entry.digest().map(|digest| digest.to_string()).as_deref(), record.digest.as_deref());
            assert_eq!(ascii(&serde_json::to_string(&entry).unwrap()), *text, "record {}", record.seq);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(entries, 64);
}

/// JSON as lines have it, in ASCII.
fn ascii(json: &str) -> String {
    json.chars().fold(String::new(), |mut text, character| {
        match character {
            '\u{20}'..='\u{7e}' => text.push(character),
            _ => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
        }
        text
    })
}
