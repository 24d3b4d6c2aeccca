//! Twenty thousand changes to sample logs: what the documentation promises to find is found, and nothing else.
//!
//! A change is made by someone who can write to every file of the log but does not have its key. Each is looked for with four
//! levels of knowledge:
//!
//! - *records*: the records alone; whoever made the change also removed the file `checkpoints`
//! - *beside*: with the file `checkpoints` beside the log, untouched (unless it says that it was replaced)
//! - *key*: the public key is known in addition
//! - *anchor*: a copy of all checkpoints was kept elsewhere in addition
//!
//! What each level finds. *More* is a checkpoint over more records than are left, or over the first one that was changed.
//!
//! | what was done | records | beside | key | anchor |
//! |---|---|---|---|---|
//! | a bit of a record or of a blob flipped | yes | yes | yes | yes |
//! | a bit of `checkpoints` flipped | no (1) | yes (2) | yes (2) | yes (2) |
//! | a bit of a file in `torn/` flipped | no | no | no | no |
//! | a record edited and hashed anew | yes (3) | yes (3) | yes (3) | yes (3) |
//! | a record inserted before another one | yes | yes | yes | yes |
//! | records added at the end | if too many (4) | if too many (4) | if too many (4) | if too many (4) |
//! | a checkpoint, a segment or a key added at the end | yes | yes | yes | yes |
//! | a record deleted, but not the last | yes | yes | yes | yes |
//! | segments deleted, but not the last | yes | yes | yes | yes |
//! | a blob deleted, as erasure does | no | no | no | no |
//! | two records swapped | yes | yes | yes | yes |
//! | the log cut after a record | no (5) | with more (5) | with more (5), or if (6) | with more (5), or if (6) |
//! | the log cut inside a line, or to nothing | yes (7) | yes (7) | yes (7) | yes (7) |
//! | the end written anew, later checkpoints left, copied or forged | yes (8) | yes (8) | yes (8) | yes (8) |
//! | the end written anew, later checkpoints dropped | if (4), (5) or (9) | also with more | also if (6) | as before |
//! | the whole log written anew with another key, and `checkpoints`, too | no | no | yes | yes |
//! | the same, but `checkpoints` left | no | yes | yes | yes |
//! | the same, in the name of the known key | yes (10) | yes (10) | yes | yes |
//!
//! 1. The file is gone, and the log is as it was.
//! 2. Unless that checkpoint covers only records that retention removed, and is still well-formed.
//! 3. Unless it is the last record: nothing vouches for that yet but its own number, place and link, and what it has signed.
//! 4. If more than `every` records are without a checkpoint then, or the genesis record is without one. Fewer are not found.
//! 5. Also without any checkpoint, if retention removed segments and no record is left that says so and is signed.
//! 6. If neither the known key nor one that it vouches for signed anything that is left.
//! 7. As unreadable, because a crash can leave the same.
//! 8. If a checkpoint, a segment or a key comes after the first changed record. If none does, the row below holds.
//! 9. If a record was removed that a seal counts, and the seal still counts it.
//! 10. By whoever only has the records: if it has no signature of that key. If it is handed over to the known key at its end, only
//!     by whoever knows the key.

mod line;
mod memory;
mod samples;

use std::sync::Mutex;

use amplifier_audit::{Checkpoint, Frontier, Hash, Integrity, Kind, Note, Problem, PublicKey, SigningKey, Verifier};
use line::{Line, ascii};
use memory::{Files, Memory};
use samples::{Sample, key, notes_of, samples, segment_file};

/// Small, and the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A changed log, and what the documentation says about it.
struct Tampered {
    /// The change, as text.
    what: String,
    files: Files,
    /// At which levels it must be found. At the others it must not: the documentation would be wrong.
    found: [bool; 4],
    /// The expected problem, if there is only one.
    problem: Option<Problem>,
}

const ALWAYS: [bool; 4] = [true; 4];
const NEVER: [bool; 4] = [false; 4];

fn either(one: [bool; 4], other: [bool; 4]) -> [bool; 4] {
    std::array::from_fn(|level| one[level] || other[level])
}

/// Only whoever knows the key finds it.
fn with_key(is_found: bool) -> [bool; 4] {
    [false, false, is_found, is_found]
}

impl Sample {
    /// Found by whoever has a checkpoint that covers more than so many records.
    fn if_more_are_covered(&self, than: u64) -> [bool; 4] {
        self.covered().map(|covered| covered > than)
    }

    /// The findings in these records, which are consistent but differ from the original ones from this one on.
    fn found_in(&self, lines: &[Line], from: u64, key: PublicKey) -> [bool; 4] {
        if self.is_covered(lines) && Self::is_recorded(lines) {
            either(self.if_more_are_covered(from), with_key(!self.signs(lines, key)))
        } else {
            ALWAYS
        }
    }
}

/// Makes 2,500 changes, and looks for each at every level.
fn check(kind: &str, tamper: impl Fn(&Sample, &mut Random, PublicKey) -> Tampered + Sync) {
    const CHANGES: u64 = 2_500;
    // More than processors: a log that ends in half a line is read again for a while.
    const WORKERS: u64 = 8;
    let samples = samples();
    let kind_seed = u64::from_be_bytes(Hash::sha256(kind.as_bytes()).as_bytes()[..8].try_into().unwrap());
    let found = Mutex::new([0; 4]);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (tamper, found) = (&tamper, &found);
            scope.spawn(move || {
                for number in (worker..CHANGES).step_by(WORKERS as usize) {
                    let seed = kind_seed.wrapping_add(number);
                    let mut random = Random(seed);
                    // The long one takes as much time as all others.
                    let others = samples.len() - 1;
                    let sample = &samples[if random.below(50) == 0 { others } else { random.below(others) }];
                    let key = random.pick(&sample.keys);
                    let tampered = tamper(sample, &mut random, key);
                    let counted = look(sample, key, &tampered, &format!("{kind} {number} (seed {seed:#x})"));
                    let mut found = found.lock().unwrap();
                    *found = std::array::from_fn(|level| found[level] + counted[level]);
                }
            });
        }
    });
    println!("{kind}: {:?} of {CHANGES} found at each level", found.lock().unwrap());
}

fn look(sample: &Sample, key: PublicKey, tampered: &Tampered, case: &str) -> [u32; 4] {
    let Tampered { what, files, found, problem } = tampered;
    let mut counted = [0; 4];
    for (level, report) in sample.verify(files, key).into_iter().enumerate() {
        let level_name = ["records", "beside", "key", "anchor"][level];
        let shown = report.as_ref().map_or("no log at all".to_owned(), ToString::to_string);
        let case = format!("{case}, log `{}`, {what}, level `{level_name}`:\n{shown}", sample.name);
        let is_found = report.as_ref().is_none_or(|report| !report.is_sound());
        assert!(is_found || !found[level], "should be found, and is not: {case}");
        assert!(!is_found || found[level], "cannot be found, and yet it is: {case}");
        if let (true, Some(problem), Some(report)) = (is_found, problem, report) {
            let is_named = report.findings.iter().any(|finding| finding.problem == *problem);
            assert!(is_named, "should be called {problem:?}: {case}");
        }
        counted[level] = u32::from(is_found);
    }
    counted
}

#[test]
fn a_flipped_bit_is_found_in_every_file_that_counts() {
    check("flip", |sample, random, _| {
        let place = random.below(10);
        let wanted = |name: &str| match place {
            0..=6 => name.starts_with("seg-"),
            7 | 8 => name == "checkpoints",
            _ => name.starts_with("blobs/") || name.starts_with("torn/"),
        };
        let mut names: Vec<&String> = sample.files.keys().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            names = sample.files.keys().filter(|name| name.starts_with("seg-")).collect();
        }
        let name = random.pick(&names);
        let before = &sample.files[name];
        let (byte, bit) = (random.below(before.len()), random.below(8));
        let mut after = before.clone();
        after[byte] ^= 1 << bit;
        let (found, problem) = if name.starts_with("seg-") {
            (ALWAYS, flipped_record(before, byte, after[byte]))
        } else if name == "checkpoints" {
            // A checkpoint of records that are no longer there cannot be compared with anything.
            let notes = notes_of(before);
            let (note, end) = notes.iter().find(|(_, end)| *end > byte).unwrap();
            let begin = notes.iter().map(|(_, end)| *end).take_while(|end| *end <= byte).last().unwrap_or(0);
            let changed = Note::parse(&after[begin..end - 1]).and_then(|note| Checkpoint::read(&note));
            let is_past = |changed: Checkpoint| changed.size < sample.first() && changed.log == note.log;
            let is_of_the_past = byte < end - 1 && changed.is_ok_and(is_past);
            ([false, !is_of_the_past, !is_of_the_past, !is_of_the_past], None)
        } else if name.starts_with("blobs/") {
            (ALWAYS, Some(Problem::Edited))
        } else {
            (NEVER, None)
        };
        let what = format!("bit {bit} of byte {byte} of `{name}`");
        Tampered { what, files: changed(sample, name, after), found, problem }
    });
}

/// The problem of a changed byte of a segment, if it is unambiguous.
fn flipped_record(text: &[u8], byte: usize, now: u8) -> Option<Problem> {
    let end = byte + text[byte..].iter().position(|byte| *byte == b'\n').unwrap();
    let is_printable = (0x20..0x7f).contains(&now);
    (is_printable && end - byte > 72).then_some(Problem::Edited)
}

fn changed(sample: &Sample, name: &str, bytes: Vec<u8>) -> Files {
    let mut files = sample.files.clone();
    files.insert(name.to_owned(), bytes);
    files
}

#[test]
fn an_edited_record_with_a_new_hash_does_not_fit_the_next_one() {
    check("edit", |sample, random, _| {
        let mut lines = sample.lines.clone();
        let last = lines.len() - 1;
        let number = if random.below(4) == 0 { last } else { random.below(lines.len()) };
        let field = random.pick(&["log", "seg", "seq", "prev", "time", "writer", "turn", "event", "digest", "body"]);
        edit(&mut lines[number], field, random);
        lines[number].hash_again();
        let is_place = ["log", "seg", "seq", "prev"].contains(&field);
        let is_checked = is_place || (field == "body" && lines[number].is_structure());
        // Nothing vouches for the last record but what it says itself.
        let found = if number < last || is_checked { ALWAYS } else { NEVER };
        let problem = (!is_checked && number > 0).then_some(Problem::Rewritten);
        let what = format!("`{field}` of record {number} of {}", lines.len());
        Tampered { what, files: sample.with(&lines), found, problem }
    });
}

/// Changes a field to another value that it could have.
fn edit(line: &mut Line, field: &str, random: &mut Random) {
    let digit = char::from(b'0' + random.below(10) as u8);
    match field {
        "log" => line.log = format!("{:032x}", random.next()),
        "seg" => line.seg += 1 + random.below(3) as u64,
        "seq" => line.seq += 1 + random.below(3) as u64,
        "prev" => line.prev = Hash::sha256(&[digit as u8]),
        "time" => line.set(field, &format!("\"2025-0{}-01T00:00:00.00000{digit}Z\"", 1 + random.below(9))),
        "writer" => line.set(field, &format!("\"1-0000000{digit}\"")),
        "turn" => line.set(field, &format!("9{digit}")),
        "event" => line.set(field, &format!("\"other:{digit}\"")),
        "digest" => line.set(field, &format!("\"{}\"", Hash::sha256(&[digit as u8]))),
        _ => {
            let mut body = line.body();
            match line.kind {
                Kind::Genesis => body["every"] = (1_000 + random.below(1_000)).into(),
                Kind::Seal => body["records"] = (body["records"].as_u64().unwrap() + 1).into(),
                Kind::Segment | Kind::Checkpoint | Kind::KeyRotation => {
                    let note = body["note"].as_str().unwrap();
                    let other = Note::sign(
                        note.split("\n\n").next().unwrap().to_owned(),
                        &Checkpoint::origin(&line.log),
                        &SigningKey::from_seed([random.below(200) as u8; 32]),
                    );
                    body["note"] = other.to_string().into();
                }
                _ => body["text"] = format!("never said {digit}").into(),
            }
            line.set("body", &ascii(&body));
        }
    }
}

#[test]
fn an_inserted_record_is_found_unless_it_is_one_of_the_few_that_need_no_checkpoint_yet() {
    check("insert", |sample, random, key| {
        let mut lines = sample.lines.clone();
        let count = lines.len();
        let at = 1 + random.below(count);
        let after = lines[at - 1].clone();
        let (what, found, problem);
        match random.below(4) {
            0 => {
                let from = random.below(count);
                let copy = Line { file: after.file, ..lines[from].clone() };
                lines.insert(at, copy);
                what = format!("record {from} once more at {at} of {count}");
                found = ALWAYS;
                problem = (from <= at).then_some(Problem::Misplaced);
            }
            1 => {
                lines.insert(at, Line::made_up(&after, "an insertion"));
                what = format!("a made-up record at {at} of {count}");
                found = if at == count { sample.found_in(&lines, lines[at].seq, key) } else { ALWAYS };
                problem = (at < count).then_some(Problem::Misplaced);
            }
            2 => {
                let more = 1 + random.below(sample.every as usize + 10);
                for _ in 0..more {
                    let line = Line::made_up(lines.last().unwrap(), "an addition");
                    lines.push(line);
                }
                what = format!("{more} made-up records after all {count}");
                found = sample.found_in(&lines, lines[count].seq, key);
                problem = Some(Problem::MissingCheckpoint);
            }
            _ => {
                // Made by someone who cannot sign for the log: with another key, or with an old note.
                let own = SigningKey::from_seed([random.below(200) as u8; 32]);
                let last = lines.last().unwrap();
                let next = Line::made_up(last, "");
                let note = if random.below(2) == 0 {
                    let (size, head) = (next.seq, last.h);
                    let root = tree(&lines, lines.len()).root();
                    let time = "2026-01-01T00:00:00.000000Z".to_owned();
                    Checkpoint { log: last.log.clone(), size, root, head, time }.sign(&own).to_string()
                } else {
                    let old = lines.iter().rev().filter(|line| line.is_checkpoint()).nth(random.below(2));
                    old.map_or("no note".to_owned(), |line| line.body()["note"].as_str().unwrap().to_owned())
                };
                let line = match random.below(3) {
                    0 => next.with_body(Kind::Checkpoint, &serde_json::json!({ "note": note })),
                    1 => {
                        let text = format!(
                            "{}\nrotate\n{}\n{}\n{}\n",
                            Checkpoint::origin(&next.log),
                            next.seq,
                            next.prev,
                            own.public()
                        );
                        let note = Note::sign(text, &Checkpoint::origin(&next.log), &own).to_string();
                        let body = serde_json::json!({ "public_key": own.public(), "note": note });
                        next.with_body(Kind::KeyRotation, &body)
                    }
                    _ => {
                        let frontier = tree(&lines, lines.len());
                        let body = serde_json::json!({
                            "note": note,
                            "frontier": frontier.nodes(),
                            "public_key": sample.keys.last().unwrap(),
                            "every": sample.every,
                            "rotations": [],
                        });
                        let next = Line { file: next.file + 1, seg: next.seg + 1, ..next };
                        next.with_body(Kind::Segment, &body)
                    }
                };
                what = format!("a {} that the key did not sign, after all {count}", line.kind.as_str());
                problem = Some(if line.kind == Kind::KeyRotation { Problem::Key } else { Problem::Checkpoint });
                found = ALWAYS;
                lines.push(line);
            }
        }
        Tampered { what, files: sample.with(&lines), found, problem }
    });
}

/// The tree over the first so many of these records.
fn tree(lines: &[Line], count: usize) -> Frontier {
    let mut tree = match lines[0].kind {
        Kind::Segment => {
            let nodes = serde_json::from_value(lines[0].body()["frontier"].clone()).unwrap();
            Frontier::from_nodes(lines[0].seq, nodes).unwrap()
        }
        _ => Frontier::new(),
    };
    lines[..count].iter().for_each(|line| tree.push(line.h));
    tree
}

#[test]
fn a_deleted_record_is_found_unless_it_is_the_last_one() {
    check("delete", |sample, random, key| {
        let mut lines = sample.lines.clone();
        let last = lines.len() - 1;
        let segments = lines[last].file - lines[0].file + 1;
        if segments > 1 && random.below(4) == 0 {
            return delete_segments(sample, random, key);
        }
        let blobs: Vec<&String> = sample.files.keys().filter(|name| name.starts_with("blobs/")).collect();
        if !blobs.is_empty() && random.below(4) == 0 {
            // Erasure does the same.
            let blob = random.pick(&blobs);
            let mut files = sample.files.clone();
            files.remove(blob);
            return Tampered { what: format!("`{blob}` deleted"), files, found: NEVER, problem: None };
        }
        let number = if random.below(8) == 0 { last } else { random.below(lines.len()) };
        let seq = lines[number].seq;
        lines.remove(number);
        let what = format!("record {number} of {} deleted", last + 1);
        let found = if number < last { ALWAYS } else { sample.found_in(&lines, seq, key) };
        let problem = (number < last).then_some(Problem::Deleted);
        Tampered { what, files: sample.with(&lines), found, problem }
    });
}

fn delete_segments(sample: &Sample, random: &mut Random, key: PublicKey) -> Tampered {
    let (first, last) = (sample.lines[0].file, sample.lines.last().unwrap().file);
    let from = first + random.below((last - first + 1) as usize) as u64;
    let to = from + random.below((last - from + 1) as usize) as u64;
    let mut lines = sample.lines.clone();
    lines.retain(|line| !(from..=to).contains(&line.file));
    let what = format!("segments {from} to {to} of {first} to {last} deleted");
    let kept = lines.last().map_or(0, |line| line.seq + 1);
    let (found, problem) = if lines.is_empty() {
        (ALWAYS, None)
    } else if to == last && from > first {
        (sample.found_in(&lines, kept, key), None)
    } else {
        (ALWAYS, Some(Problem::Deleted))
    };
    Tampered { what, files: sample.with(&lines), found, problem }
}

#[test]
fn two_swapped_records_are_found() {
    check("swap", |sample, random, _| {
        let mut lines = sample.lines.clone();
        let one = random.below(lines.len());
        let other = (one + 1 + random.below(lines.len() - 1)) % lines.len();
        let (file_of_one, file_of_other) = (lines[one].file, lines[other].file);
        lines.swap(one, other);
        (lines[one].file, lines[other].file) = (file_of_one, file_of_other);
        let what = format!("records {one} and {other} of {} swapped", lines.len());
        Tampered { what, files: sample.with(&lines), found: ALWAYS, problem: Some(Problem::Misplaced) }
    });
}

#[test]
fn a_cut_log_is_found_by_whoever_has_a_checkpoint_of_what_is_missing() {
    check("truncate", |sample, random, key| {
        let lines = &sample.lines;
        let kept = match random.below(4) {
            0 => lines.len() - 1 - random.below(lines.len().min(5)),
            _ => random.below(lines.len()),
        };
        let size = sample.first() + kept as u64;
        let mut files = sample.with(&lines[..kept]);
        let is_torn = random.below(6) == 0;
        let mut what = format!("cut to {kept} of {} records", lines.len());
        if is_torn {
            let text = lines[kept].text();
            let bytes = 1 + random.below(text.len());
            files.entry(segment_file(lines[kept].file)).or_default().extend_from_slice(&text.as_bytes()[..bytes]);
            what += &format!(" and {bytes} bytes");
        } else if kept == 0 {
            files.insert(segment_file(lines[0].file), Vec::new());
        }
        let found = if is_torn || kept == 0 { ALWAYS } else { sample.found_in(&lines[..kept], size, key) };
        let problem = sample.beside.iter().all(|beside| *beside > size) && found == [false, true, true, true];
        Tampered { what, files, found, problem: problem.then_some(Problem::Truncated) }
    });
}

/// The treatment of the checkpoints after the position from which a log is rewritten.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Notes {
    /// They stay.
    Left,
    /// They go, with everything else that only the key can make.
    Dropped,
    /// Each is an older one.
    Copied,
    /// They are made anew, with another key.
    Forged,
}

#[test]
fn a_rewritten_end_is_found_where_a_checkpoint_was_made_in_it() {
    check("rewrite", |sample, random, key| {
        let count = sample.lines.len();
        let from = match random.below(3) {
            0 => count - 1 - random.below(count.min(12)),
            _ => random.below(count),
        };
        // The record from which on the log is written anew, and those after it.
        let mut lines = sample.lines[..from].to_vec();
        let mut rest = sample.lines[from..].to_vec();
        let mut is_counted = false;
        let what = match random.below(3) {
            0 if !rest[0].is_structure() => {
                let gone = rest.remove(0);
                is_counted = forget(&gone, &mut rest, random.below(2) == 0) && sample.first() == 0;
                "removed"
            }
            1 if from > 0 => {
                lines.push(Line::made_up(&lines[from - 1], "an insertion"));
                "inserted"
            }
            _ => {
                lines.push(rest.remove(0));
                edit(&mut lines[from], "time", random);
                "edited"
            }
        };
        let needs_key = |line: &Line| line.is_checkpoint() || line.kind == Kind::KeyRotation || line.is_removal();
        let notes = random.pick(&[Notes::Left, Notes::Dropped, Notes::Dropped, Notes::Copied, Notes::Forged]);
        let older = lines.iter().rev().find(|line| line.is_checkpoint()).map(|line| line.body()["note"].clone());
        match (notes, older) {
            (Notes::Dropped, _) => {
                // Without their first records the segments after this one are part of it.
                let place = lines.last().unwrap().file;
                rest.retain(|line| !needs_key(line));
                rest.iter_mut().for_each(|line| (line.file, line.seg) = (place, place));
            }
            (Notes::Copied, Some(older)) => {
                for line in rest.iter_mut().filter(|line| line.is_checkpoint()) {
                    let mut body = line.body();
                    body["note"] = older.clone();
                    line.set("body", &ascii(&body));
                }
            }
            _ => {}
        }
        let does_not_fit = rest.iter().any(needs_key);
        let signed_from = lines.len();
        lines.append(&mut rest);
        link(&mut lines, from, None);
        if notes == Notes::Forged {
            link(&mut lines, signed_from, Some(&SigningKey::from_seed([random.below(200) as u8; 32])));
        }

        let found = match does_not_fit || is_counted {
            true => ALWAYS,
            false => sample.found_in(&lines, sample.lines[from].seq, key),
        };
        let what = format!("record {from} of {count} {what}, all after it written anew, checkpoints {notes:?}");
        Tampered { what, files: sample.with(&lines), found, problem: None }
    });
}

/// Makes the next seal of its session fit without that record, or leaves it: then the seal still counts it.
fn forget(gone: &Line, rest: &mut [Line], is_left: bool) -> bool {
    let is_of = |line: &&mut Line| (&line.session, &line.writer) == (&gone.session, &gone.writer);
    let Some(seal) = rest.iter_mut().filter(is_of).find(|line| line.kind == Kind::Seal) else { return false };
    if gone.session.is_some() && !is_left {
        let mut body = seal.body();
        body["records"] = (body["records"].as_u64().unwrap() - 1).into();
        seal.set("body", &ascii(&body));
    }
    gone.session.is_some() && is_left
}

/// Numbers, links and hashes records anew; with a key, also signs all checkpoints in them anew.
fn link(lines: &mut [Line], from: usize, key: Option<&SigningKey>) {
    let mut tree = tree(lines, from);
    for number in from..lines.len() {
        let (before, after) = lines.split_at_mut(number);
        let line = &mut after[0];
        if let Some(before) = before.last() {
            (line.seq, line.prev) = (before.seq + 1, before.h);
        }
        if let (Some(key), true) = (key, line.is_checkpoint()) {
            let mut body = line.body();
            let note =
                Checkpoint { log: line.log.clone(), root: tree.root(), size: line.seq, head: line.prev, ..line.note() };
            body["note"] = note.sign(key).to_string().into();
            if line.kind == Kind::Segment {
                body["frontier"] = serde_json::to_value(tree.nodes()).unwrap();
            }
            line.set("body", &ascii(&body));
        }
        if let (Some(key), true) = (key, line.is_removal()) {
            let mut body = line.body();
            let (seq, prev, before) = (line.seq, line.prev, body["retention"]["before"].as_u64().unwrap());
            let origin = Checkpoint::origin(&line.log);
            let text = format!("{origin}\nretention\n{seq}\n{prev}\n{before}\n");
            body["retention"]["note"] = Note::sign(text, &origin, key).to_string().into();
            line.set("body", &ascii(&body));
        }
        line.hash_again();
        tree.push(line.h);
    }
}

#[test]
fn another_log_in_the_place_of_this_one_is_found_by_whoever_knows_the_key() {
    check("replace", |sample, random, _| {
        let own = SigningKey::from_seed([random.below(200) as u8; 32]);
        let log = match random.below(2) {
            0 => sample.lines[0].log.clone(),
            _ => format!("{:016x}{:016x}", random.next(), random.next()),
        };
        let mut lines = sample.lines.clone();
        let edited = random.below(lines.len());
        edit(&mut lines[edited], "time", random);
        let mut files = replace(sample, lines, &log, &own);
        let is_left = random.below(3) == 0;
        if is_left {
            files.insert("checkpoints".to_owned(), sample.files["checkpoints"].clone());
        }
        let what = format!("replaced by log {log}, checkpoints left: {is_left}");
        Tampered { what, files, found: [false, is_left, true, true], problem: None }
    });
}

/// The log written anew from its beginning with another key, and its checkpoints.
fn replace(sample: &Sample, mut lines: Vec<Line>, log: &str, own: &SigningKey) -> Files {
    lines.retain(|line| line.kind != Kind::KeyRotation);
    for line in &mut lines {
        line.log = log.to_owned();
        if matches!(line.kind, Kind::Genesis | Kind::Segment) {
            let mut body = line.body();
            body["public_key"] = own.public().to_string().into();
            line.set("body", &ascii(&body));
        }
    }
    link(&mut lines, 0, Some(own));
    let mut files = sample.with(&lines);
    let notes = lines.iter().filter(|line| line.is_checkpoint());
    let notes: String = notes.map(|line| format!("{}\n", line.body()["note"].as_str().unwrap())).collect();
    files.insert("checkpoints".to_owned(), notes.into_bytes());
    files
}

/// The log that whoever replaces `sample` would like to have: other records, and the victim's key in its genesis record.
fn impostor(sample: &Sample, key: PublicKey, every: u64) -> Vec<Line> {
    let mut lines = sample.lines.clone();
    lines.retain(|line| !(line.is_checkpoint() || line.kind == Kind::KeyRotation));
    lines.iter_mut().for_each(|line| (line.file, line.seg) = (1, 1));
    let mut body = lines[0].body();
    (body["public_key"], body["every"]) = (key.to_string().into(), every.into());
    lines[0].set("body", &ascii(&body));
    link(&mut lines, 0, None);
    lines
}

fn without_notes(mut files: Files) -> Files {
    files.remove("checkpoints");
    files
}

#[test]
fn a_log_that_only_names_the_known_key_is_not_signed_with_it() {
    for sample in [&samples()[0], &samples()[2]] {
        for every in [256, 1 << 40] {
            let files = without_notes(sample.with(&impostor(sample, sample.keys[0], every)));
            let what = format!("replaced by a log without a signature, every {every}");
            look(sample, sample.keys[0], &Tampered { what, files, found: ALWAYS, problem: None }, "impostor");
        }
    }
}

#[test]
fn a_log_that_names_the_largest_number_is_verified_like_others() {
    let sample = &samples()[0];
    let files = without_notes(sample.with(&impostor(sample, key(77).public(), u64::MAX)));
    assert!(Verifier::new().storage(&Memory::new(files)).is_ok());
}

#[test]
fn a_log_that_hands_over_to_the_known_key_is_not_signed_with_it() {
    let sample = &samples()[0];
    let (own, log) = (key(77), sample.lines[0].log.clone());
    let mut files = replace(sample, sample.lines.clone(), &log, &own);
    let text = String::from_utf8(files["seg-000001.jsonl"].clone()).unwrap();
    let next = Line::made_up(&Line::parse(1, text.lines().last().unwrap()), "");
    let origin = Checkpoint::origin(&log);
    let handover = format!("{origin}\nrotate\n{}\n{}\n{}\n", next.seq, next.prev, sample.keys[0]);
    let note = Note::sign(handover, &origin, &own).to_string();
    let body = serde_json::json!({ "public_key": sample.keys[0], "note": note });
    let line = next.with_body(Kind::KeyRotation, &body);
    files.get_mut("seg-000001.jsonl").unwrap().extend(format!("{}\n", line.text()).bytes());
    let what = "replaced by a log of another key, which hands over to the known one at the end".to_owned();
    let found = [false, false, true, true];
    look(sample, sample.keys[0], &Tampered { what, files, found, problem: Some(Problem::Key) }, "impostor");
}

#[test]
fn whoever_cannot_sign_cannot_allow_themselves_longer_runs_without_a_checkpoint() {
    // All but the last segment goes, as if by retention, and its first record says that checkpoints are rare.
    let sample = &samples()[2];
    let last = sample.lines.last().unwrap().file;
    let mut lines: Vec<Line> = sample.lines.iter().filter(|line| line.file == last).cloned().collect();
    lines.truncate(1);
    let mut body = lines[0].body();
    body["every"] = (1_u64 << 40).into();
    lines[0].set("body", &ascii(&body));
    lines[0].hash_again();
    for _ in 0..5_000 {
        let line = Line::made_up(lines.last().unwrap(), "never said");
        lines.push(line);
    }
    let files = without_notes(sample.with(&lines));
    let what = "5,000 made-up records after the beginning of the last segment".to_owned();
    look(sample, sample.keys[0], &Tampered { what, files, found: ALWAYS, problem: None }, "endless");
}

#[test]
fn a_hundred_unreadable_lines_do_not_hide_that_a_log_was_changed() {
    let sample = &samples()[7];
    let mut files = sample.files.clone();
    let text = String::from_utf8(files["seg-000001.jsonl"].clone()).unwrap();
    let lines = text.lines().enumerate();
    let garbled: String = lines.map(|(number, line)| format!("{}\n", if number < 120 { "?" } else { line })).collect();
    files.insert("seg-000001.jsonl".to_owned(), garbled.into_bytes());
    for report in sample.verify(&files, sample.keys[0]) {
        let report = report.unwrap();
        assert_eq!(report.integrity(), Integrity::Unsound, "{report}");
    }
}
