//! A copy of a log takes only the records that follow.

use std::fs;

use crate::common::{Place, message};
use amplifier_audit::{Checkpoint, Hash, LogTail, Note, Record, SigningKey};

/// The segments of a log with several keys.
fn segments() -> Vec<Vec<u8>> {
    let place = Place::new();
    let log = place.options().segment_bytes(3_000).checkpoint_every(8).open().unwrap();
    for number in 0..30 {
        log.take(&message("s", &format!("number {number}"))).unwrap();
        if number == 12 {
            log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        }
    }
    log.seal_blocking("s", "complete").unwrap();
    log.close().unwrap();
    let report = place.verify();
    assert!(report.is_sound() && report.segments > 2 && report.rotations == 1, "{report}");
    (1..=report.segments).map(|segment| fs::read(place.segment(segment)).unwrap()).collect()
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A change of the lines of a segment, at one of them.
type Change = fn(&mut Vec<Vec<u8>>, usize);

/// Copies line by line; returns the size of the copy, and the first error.
fn copied(segments: &[Vec<u8>]) -> (u64, Option<String>) {
    let mut copy: Option<LogTail> = None;
    for (segment, text) in (1..).zip(segments) {
        for line in lines(text) {
            let result = match &mut copy {
                None => LogTail::begin(segment, line, |_| ()).map(|tail| copy = Some(tail)),
                Some(copy) => copy.append(segment, line, |_| ()),
            };
            if let Err(error) = result {
                return (copy.map_or(0, |copy| copy.size()), Some(error.to_string()));
            }
        }
    }
    (copy.unwrap().size(), None)
}

#[test]
fn the_lines_of_a_log_are_accepted_in_any_portions() {
    let segments = segments();
    let total: usize = segments.iter().map(|text| lines(text).len()).sum();
    assert_eq!(copied(&segments), (total as u64, None));
    for portion in [1, 2, 5, 1000] {
        let mut seen = 0;
        let mut count = |record: &Record<'_>| {
            assert_eq!(record.seq, seen);
            seen += 1;
        };
        let mut copy: Option<LogTail> = None;
        for (segment, text) in (1..).zip(&segments) {
            for part in lines(text).chunks(portion) {
                let part = part.concat();
                match &mut copy {
                    None => copy = Some(LogTail::begin(segment, &part, &mut count).unwrap()),
                    Some(copy) => copy.append(segment, &part, &mut count).unwrap(),
                }
            }
        }
        let copy = copy.unwrap();
        assert_eq!((copy.size(), seen), (total as u64, total as u64));
        assert_eq!(copy.offset(), segments.last().unwrap().len() as u64);
    }
}

#[test]
fn a_copy_may_begin_with_a_later_segment() {
    let segments = segments();
    let copy = LogTail::begin(2, &segments[1], |_| ()).unwrap();
    assert_eq!(copy.segment(), 2);
    for segment in [0, 1, 3, u64::from(u32::MAX) + 1, u64::MAX] {
        assert!(LogTail::begin(segment, &segments[1], |_| ()).is_err(), "{segment}");
    }
    assert_eq!(copy.head(), Record::parse(lines(&segments[1]).last().unwrap().trim_ascii_end()).unwrap().h);
}

#[test]
fn no_line_can_be_changed_left_out_repeated_or_swapped() {
    let changes: [Change; 4] = [
        |lines, at| lines[at][40] ^= 1,
        |lines, at| drop(lines.remove(at)),
        |lines, at| lines.insert(at, lines[at].clone()),
        |lines, at| lines.swap(at, if at > 0 { at - 1 } else { 1 }),
    ];
    let segments = segments();
    let (_, none) = copied(&segments);
    assert_eq!(none, None);
    for segment in 0..segments.len() {
        let each: Vec<Vec<u8>> = lines(&segments[segment]).into_iter().map(<[u8]>::to_vec).collect();
        for at in 0..each.len() {
            for (number, change) in changes.iter().enumerate() {
                // Nothing follows the last line that could show its absence.
                if number == 1 && segment + 1 == segments.len() && at + 1 == each.len() {
                    continue;
                }
                let mut changed = each.clone();
                change(&mut changed, at);
                let mut log = segments.clone();
                log[segment] = changed.concat();
                assert!(copied(&log).1.is_some(), "segment {segment}, line {at}, change {number}");
            }
        }
    }
}

#[test]
fn an_error_leaves_the_copy_as_it_was() {
    let segments = segments();
    let first = lines(&segments[0]);
    let mut copy = LogTail::begin(1, &first[..3].concat(), |_| ()).unwrap();
    let (size, head) = (copy.size(), copy.head());
    let skipping = [first[3], first[5]].concat();
    assert!(copy.append(1, &skipping, |_| ()).is_err());
    assert!(copy.append(3, &segments[2], |_| ()).is_err());
    assert!(copy.append(1, &first[3][..first[3].len() - 9], |_| ()).is_err());
    assert_eq!((copy.size(), copy.head()), (size, head));
    copy.append(1, &first[3..].concat(), |_| ()).unwrap();
}

#[test]
fn a_checkpoint_of_another_key_is_rejected() {
    let segments = segments();
    let first = lines(&segments[0]);
    let mut copy = LogTail::begin(1, first[0], |_| ()).unwrap();
    let text = std::str::from_utf8(first[1]).unwrap();
    let record = Record::parse(text.trim_end().as_bytes()).unwrap();
    assert_eq!(record.kind.as_str(), "checkpoint");
    let body: serde_json::Value = serde_json::from_str(record.body.get()).unwrap();
    let note = Note::parse(body["note"].as_str().unwrap()).unwrap();
    let forged = Checkpoint::read(&note).unwrap().sign(&SigningKey::from_seed([9; 32])).to_string();
    let body = serde_json::json!({ "note": forged }).to_string().replace('\u{2014}', "\\u2014");
    let hashed = text.split(",\"h\":").next().unwrap().replace(record.body.get(), &body);
    let line = format!("{hashed},\"h\":\"{}\"}}\n", Hash::leaf(hashed.as_bytes()));
    let error = copy.append(1, line.as_bytes(), |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "record 1: the checkpoint is not signed with the active key");
}
