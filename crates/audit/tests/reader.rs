//! Reading a log while it grows, is cut, replaced, or loses its first segments.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;

use crate::common::{Place, message};
use amplifier_audit::{AuditError, Folder, LogPart, LogReader, Record, read_lines_backwards};

/// The numbers of the records that were added.
fn added(reader: &mut LogReader, place: &Place) -> (Vec<u64>, Option<String>) {
    let mut numbers = Vec::new();
    let torn = reader.advance(&Folder::new(place.log()), |record: &Record<'_>| {
        numbers.push(record.seq);
        Ok::<_, AuditError>(())
    });
    (numbers, torn.unwrap())
}

/// The numbers of records from the end on, until `visit` breaks.
fn backwards(place: &Place, count: usize) -> Result<Vec<u64>, AuditError> {
    let mut numbers = Vec::new();
    read_lines_backwards(&Folder::new(place.log()), |line| {
        numbers.push(Record::parse(line)?.seq);
        Ok(if numbers.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(numbers)
}

#[test]
fn lines_come_from_the_end_on_through_all_segments() {
    let place = Place::new();
    assert_eq!(backwards(&place, 1).unwrap(), [0; 0]);
    // Several segments, and lines that are longer than what is read at once.
    let log = place.options().segment_bytes(1 << 20).blob_above(2 << 20).open().unwrap();
    (0..40).for_each(|n| _ = log.take(&message("s", &"x".repeat(n * 30_000))).unwrap());
    log.close().unwrap();
    let size = place.verify().size;
    assert!(place.segment(3).exists());
    assert_eq!(backwards(&place, 3).unwrap(), [size - 1, size - 2, size - 3]);
    let all = backwards(&place, usize::MAX).unwrap();
    assert_eq!(all, (0..size).rev().collect::<Vec<_>>());
}

#[test]
fn half_a_line_at_the_end_is_left_out_and_a_damaged_one_is_named() {
    let place = Place::new();
    let size = grow(&place, 4);
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), &text[..text.len() - 100]).unwrap();
    assert_eq!(backwards(&place, 2).unwrap(), [size - 2, size - 3]);
    let second = text.lines().nth(1).unwrap();
    fs::write(place.segment(1), text.replacen(second, "{}", 1)).unwrap();
    assert_eq!(backwards(&place, 1).unwrap(), [size - 1]);
    let error = backwards(&place, usize::MAX).unwrap_err();
    assert!(matches!(&error, AuditError::Line { file, line: 2, .. } if file == "seg-000001.jsonl"), "{error:?}");
}

fn grow(place: &Place, count: usize) -> u64 {
    let log = place.open();
    (0..count).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    log.close().unwrap();
    place.verify().size
}

#[test]
fn records_come_once_as_the_log_grows() {
    let place = Place::new();
    let mut reader = LogReader::new();
    assert_eq!(added(&mut reader, &place), (vec![], None), "there is no log yet");
    let mut before = 0;
    for count in [3, 0, 5] {
        let size = grow(&place, count);
        assert_eq!(added(&mut reader, &place).0, (before..size).collect::<Vec<_>>());
        before = size;
    }
    assert_eq!(added(&mut reader, &place), (vec![], None));
}

#[test]
fn half_a_line_is_left_until_it_is_whole_and_an_error_for_whoever_reads_all() {
    let place = Place::new();
    let size = grow(&place, 4);
    let text = fs::read(place.segment(1)).unwrap();
    let (whole, half) = text.split_at(text.len() - 100);
    fs::write(place.segment(1), whole).unwrap();
    let mut reader = LogReader::new();
    let torn = Some("seg-000001.jsonl".to_owned());
    assert_eq!(added(&mut reader, &place), ((0..size - 1).collect(), torn));
    let all = LogReader::new().read(&Folder::new(place.log()), |_| Ok::<_, AuditError>(()));
    assert!(matches!(all, Err(AuditError::HalfRecord { .. })), "{all:?}");
    OpenOptions::new().append(true).open(place.segment(1)).unwrap().write_all(half).unwrap();
    assert_eq!(added(&mut reader, &place), (vec![size - 1], None));
}

#[test]
fn a_log_that_is_cut_replaced_or_written_again_is_read_from_its_beginning() {
    let cut: fn(&Place) = |place| {
        let text = fs::read_to_string(place.segment(1)).unwrap();
        let kept: String = text.split_inclusive('\n').take(3).collect();
        fs::write(place.segment(1), kept).unwrap();
    };
    let replaced: fn(&Place) = |place| {
        let other = Place::new();
        grow(&other, 30);
        fs::remove_file(place.segment(1)).unwrap();
        fs::copy(other.segment(1), place.segment(1)).unwrap();
    };
    // As long as before, and more: only the hashes tell.
    let written_again: fn(&Place) = |place| {
        let other = Place::new();
        grow(&other, 30);
        fs::write(place.segment(1), fs::read(other.segment(1)).unwrap()).unwrap();
    };
    for change in [cut, replaced, written_again] {
        let place = Place::new();
        grow(&place, 10);
        let mut reader = LogReader::new();
        added(&mut reader, &place);
        change(&place);
        let source = Folder::new(place.log());
        assert!(matches!(reader.next_part(&source).unwrap(), LogPart::Restarted));
        let (numbers, _) = added(&mut reader, &place);
        assert_eq!((numbers[0], numbers.len() as u64), (0, crate::common::lines(&place.log()).len() as u64));
    }
}

#[test]
fn segments_that_retention_removes_are_passed_over() {
    let place = Place::new();
    let log = place.options().segment_bytes(4_000).open().unwrap();
    (0..40).for_each(|n| _ = log.take(&message("s", &n.to_string())).unwrap());
    log.checkpoint().unwrap();
    let mut reader = LogReader::new();
    let read = added(&mut reader, &place).0.len() as u64;
    log.retain(2).unwrap();
    log.take(&message("s", "after")).unwrap();
    log.close().unwrap();
    let (numbers, _) = added(&mut reader, &place);
    assert_eq!(numbers.first(), Some(&read), "what was read is not read again");
    let mut last = Vec::new();
    let take = |record: &Record<'_>| Ok::<_, AuditError>((record.kind.as_str() == "message").then_some(record.seq));
    last.extend(LogReader::new().last(&Folder::new(place.log()), 3, take).unwrap());
    assert_eq!((last.len(), last.is_sorted()), (3, true));
}

#[test]
fn a_line_that_is_not_a_record_is_named() {
    let place = Place::new();
    grow(&place, 4);
    let text = fs::read_to_string(place.segment(1)).unwrap().replacen("\"text\":\"2\"", "\"text\":\"7\"", 1);
    fs::write(place.segment(1), text).unwrap();
    let read = LogReader::new().read(&Folder::new(place.log()), |_| Ok::<_, AuditError>(()));
    assert!(matches!(&read, Err(AuditError::Line { file, line: 5, .. }) if file == "seg-000001.jsonl"), "{read:?}");
}

#[test]
fn a_reader_goes_to_any_record_and_knows_the_hash_before_it() {
    let place = Place::new();
    let log = place.options().segment_bytes(3_000).open().unwrap();
    for number in 0..40 {
        log.take(&message("s", &format!("number {number}"))).unwrap();
    }
    log.seal_blocking("s", "complete").unwrap();
    let lines = place.lines();
    let size = lines.len() as u64;
    assert!(place.verify().segments > 3);
    let folder = Folder::new(place.log());
    let mut reader = LogReader::new();
    for (number, line) in lines.iter().enumerate() {
        let record = Record::parse(line.as_bytes()).unwrap();
        assert_eq!(reader.seek(&folder, number as u64).unwrap(), Some(record.prev));
        assert_eq!(added(&mut reader, &place).0, (number as u64..size).collect::<Vec<_>>());
    }
    let last = Record::parse(lines.last().unwrap().as_bytes()).unwrap();
    assert_eq!(reader.seek(&folder, size).unwrap(), Some(last.h), "the next record of a growing log");
    assert_eq!(reader.seek(&folder, size + 1).unwrap(), None);

    reader.seek(&folder, size).unwrap();
    log.take(&message("another", "one more")).unwrap();
    log.retain(2).unwrap();
    log.close().unwrap();
    let after = place.verify();
    assert_eq!(added(&mut reader, &place).0, (size..after.size).collect::<Vec<_>>());
    assert_eq!(reader.seek(&folder, after.first - 1).unwrap(), None, "retention has removed it");
    assert!(reader.seek(&folder, after.first).unwrap().is_some());
    assert_eq!(added(&mut reader, &place).0, (after.first..after.size).collect::<Vec<_>>());
}

#[test]
fn there_is_nothing_to_go_to_without_a_log() {
    let place = Place::new();
    assert_eq!(LogReader::new().seek(&Folder::new(place.log()), 0).unwrap(), None);
}
