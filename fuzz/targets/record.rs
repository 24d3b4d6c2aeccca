//! A line of a log: whatever it is, reading it does not panic, and a record is what its bytes say.
#![no_main]

use amplifier_audit::{Hash, RecordError, Record};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// `,"h":"`, 64 digits, `"}`.
const SUFFIX: usize = 72;

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        // Few mutations of a line have the right hash. So there are also inputs that get it here.
        Some((b'+', hashed)) => {
            let line = [hashed, b",\"h\":\"", &Hash::leaf(hashed).to_hex(), b"\"}"].concat();
            assert_ne!(Record::parse(&line).err(), Some(RecordError::Edited));
            check(&line);
        }
        _ => check(input),
    }
});

fn check(line: &[u8]) {
    let Ok(record) = Record::parse(line) else { return };
    assert_eq!(record.line().as_bytes(), line);
    assert!(line.iter().all(|byte| (0x20..0x7f).contains(byte)));
    let (hashed, suffix) = line.split_at(line.len() - SUFFIX);
    assert_eq!(record.h, Hash::leaf(hashed));
    assert_eq!(suffix, [b",\"h\":\"", &record.h.to_hex()[..], b"\"}"].concat());

    // BodyReader can be too deep for this, or have numbers that are too large.
    let Ok(json) = serde_json::from_slice::<Value>(line) else { return };
    assert!(json["body"].is_object());
    assert_eq!(serde_json::from_str::<Value>(record.body.get()).ok().as_ref(), Some(&json["body"]));
    let read = serde_json::json!({
        "v": record.v,
        "log": record.log,
        "seg": record.seg,
        "seq": record.seq,
        "prev": record.prev,
        "time": record.time,
        "writer": record.writer,
        "session": record.session,
        "turn": record.turn,
        "event": record.event,
        "kind": record.kind,
        "digest": record.digest,
        "body": json["body"],
        "h": record.h,
    });
    // One that lacks a field which can be `null` counts as having it.
    let mut json = json;
    for field in ["session", "turn", "event", "digest"] {
        json.as_object_mut().unwrap().entry(field).or_insert(Value::Null);
    }
    assert_eq!(read, json);
}
