//! The logs that are changed: of every shape that the library writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use amplifier_audit::{Checkpoint, Hash, Log, LogOptions, Note, PublicKey, Report, SigningKey, Storage, Verifier};

use crate::common::{intent, message, outcome};
use crate::tamper::line::Line;
use crate::tamper::memory::{Files, Memory};

/// A log that the library wrote, and what is known of it.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) files: Files,
    pub(super) lines: Vec<Line>,
    pub(super) every: u64,
    /// The keys that one may know, each signed for by the one before.
    pub(super) keys: Vec<PublicKey>,
    /// The checkpoints beside the log, and how many records each covers.
    pub(super) beside: Vec<u64>,
    /// All checkpoints, as an anchor has them.
    pub(super) anchor: Vec<u8>,
    pub(super) anchored: Vec<u64>,
}

impl Sample {
    pub(super) fn new(name: &'static str, files: Files, keys: Vec<PublicKey>) -> Self {
        let mut lines = Vec::new();
        for (file, text) in &files {
            if let Some(number) = file.strip_prefix("seg-").and_then(|rest| rest.strip_suffix(".jsonl")) {
                let number = number.parse().unwrap();
                lines.extend(std::str::from_utf8(text).unwrap().lines().map(|line| Line::parse(number, line)));
            }
        }
        let every = lines[0].body()["every"].as_u64().unwrap();
        let notes = lines.iter().filter(|line| line.is_checkpoint());
        let anchor =
            notes.clone().map(|line| format!("{}\n", line.body()["note"].as_str().unwrap())).collect::<String>();
        let anchored = notes.map(|line| line.note().size).collect();
        let beside =
            notes_of(files.get("checkpoints").map_or(&[], Vec::as_slice)).iter().map(|(note, _)| note.size).collect();
        let sample = Self { name, lines, every, keys, beside, anchor: anchor.into_bytes(), anchored, files };
        for (level, report) in sample.verify(&sample.files, sample.keys[0]).into_iter().enumerate() {
            assert!(report.as_ref().is_some_and(Report::is_sound), "{name}, level {level}: {report:?}");
        }
        sample
    }

    /// The number of records that retention removed.
    pub(super) fn first(&self) -> u64 {
        self.lines[0].seq
    }

    /// The size of the largest known checkpoint at each level.
    pub(super) fn covered(&self) -> [u64; 4] {
        let beside = self.beside.iter().copied().max().unwrap_or(0);
        let anchored = self.anchored.iter().copied().max().unwrap_or(0);
        [0, beside, beside, beside.max(anchored)]
    }

    /// The expected result at each level; `None` if there is no log.
    pub(super) fn verify(&self, files: &Files, key: PublicKey) -> [Option<Report>; 4] {
        let mut alone = files.clone();
        alone.remove("checkpoints");
        let (alone, files) = (Memory::new(alone), Memory::new(files.clone()));
        let anchored = Verifier::new().key(key).checkpoints(&self.anchor).unwrap();
        [
            Verifier::new().storage(&alone).ok(),
            Verifier::new().storage(&files).ok(),
            Verifier::new().key(key).storage(&files).ok(),
            anchored.storage(&files).ok(),
        ]
    }

    /// The files with these records instead.
    pub(super) fn with(&self, lines: &[Line]) -> Files {
        let mut files = self.files.clone();
        files.retain(|name, _| !name.starts_with("seg-"));
        for line in lines {
            let text = files.entry(segment_file(line.file)).or_default();
            text.extend_from_slice(line.text().as_bytes());
            text.push(b'\n');
        }
        files
    }

    /// Returns `true` if the key, or one that it vouches for, has signed one of these records.
    pub(super) fn signs(&self, lines: &[Line], key: PublicKey) -> bool {
        let place = |key: &serde_json::Value| self.keys.iter().position(|known| *key == known.to_string());
        // A segment names the keys whose records are gone.
        let mut is_trusted = place(&lines[0].body()["public_key"]) >= place(&key.to_string().into());
        lines.iter().any(|line| {
            if line.is_structure() {
                is_trusted |= line.body()["public_key"] == key.to_string();
            }
            is_trusted && line.is_checkpoint()
        })
    }

    /// Returns `true` if the end of these records has all required checkpoints.
    pub(super) fn is_covered(&self, lines: &[Line]) -> bool {
        match lines.iter().rev().position(|line| line.is_checkpoint()) {
            Some(after) => after < self.every as usize,
            None => lines.len() == 1,
        }
    }

    /// Returns `true` if a signed record names the segments before these records as removed.
    pub(super) fn is_recorded(lines: &[Line]) -> bool {
        let says_so = |line: &Line| line.body()["retention"]["before"].as_u64() >= Some(lines[0].file);
        lines[0].file == 1 || lines.iter().any(|line| line.is_removal() && says_so(line))
    }
}

pub(super) fn segment_file(number: u64) -> String {
    format!("seg-{number:06}.jsonl")
}

/// The notes of a file with the place where each ends.
pub(super) fn notes_of(file: &[u8]) -> Vec<(Checkpoint, usize)> {
    let text = std::str::from_utf8(file).unwrap();
    let mut notes = Vec::new();
    let mut end = 0;
    let parts: Vec<&str> = text.split_inclusive("\n\n").collect();
    for pair in parts.chunks(2) {
        let note = pair.concat();
        end += note.len();
        notes.push((Checkpoint::read(&Note::parse(&note[..note.len() - 1]).unwrap()).unwrap(), end));
    }
    notes
}

/// Logs of every shape.
pub(super) fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| vec![short(), running(), segments(), rotated(), blobs(), recovered(), retained(), long()])
}

fn options(files: &Arc<Memory>, key: &SigningKey) -> LogOptions {
    // Checkpoints come where the samples say, and not when a second has passed.
    Log::on(files.clone(), key.clone()).checkpoint_after(Duration::from_secs(3_600))
}

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

fn fill(log: &Log, session: &str, count: usize) {
    for number in 0..count / 3 {
        let call = format!("call-{number}");
        for record in [intent(session, &call), message(session, &format!("number {number}")), outcome(session, &call)] {
            log.take(&record).unwrap();
        }
    }
}

fn taken(files: &Memory) -> Files {
    files.files().clone()
}

/// One session, one segment, one checkpoint.
fn short() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(201)).open().unwrap();
    fill(&log, "one", 27);
    log.seal_blocking("one", "complete").unwrap();
    log.close().unwrap();
    Sample::new("short", taken(&files), vec![key(201).public()])
}

/// The log of a process that runs: some records have no checkpoint yet, and not all checkpoints are kept beside it.
fn running() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(202)).checkpoint_every(40).segment_bytes(5_000).open().unwrap();
    loop {
        fill(&log, "one", 6);
        log.flush_blocking(log.take(&message("two", "flush")).unwrap()).unwrap();
        let sample = Sample::new("running", taken(&files), vec![key(202).public()]);
        let has_unsigned = sample.lines.iter().rev().take(5).all(|line| !line.is_checkpoint());
        if sample.lines.len() > 50 && has_unsigned && sample.covered()[1] < sample.covered()[3] {
            return sample;
        }
        assert!(sample.lines.len() < 500, "{:?}", sample.covered());
    }
}

/// Several sessions over several segments.
fn segments() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(203)).checkpoint_every(64).segment_bytes(10_000).open().unwrap();
    for session in ["one", "two"] {
        fill(&log, session, 27);
        log.seal_blocking(session, "complete").unwrap();
    }
    log.close().unwrap();
    Sample::new("segments", taken(&files), vec![key(203).public()])
}

/// The key changes twice.
fn rotated() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(204)).checkpoint_every(32).segment_bytes(12_000).open().unwrap();
    fill(&log, "one", 15);
    log.rotate_key(key(205)).unwrap();
    fill(&log, "one", 15);
    log.seal_blocking("one", "complete").unwrap();
    log.rotate_key(key(206)).unwrap();
    fill(&log, "two", 12);
    log.close().unwrap();
    Sample::new("rotated", taken(&files), [204, 205, 206].map(|seed| key(seed).public()).to_vec())
}

/// Large bodies, one of them erased.
fn blobs() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(207)).blob_above(400).open().unwrap();
    for number in 0..8 {
        fill(&log, "one", 3);
        log.take(&message("one", &format!("{number} {}", "large ".repeat(100)))).unwrap();
    }
    log.checkpoint().unwrap();
    let blob = files.files().keys().find_map(|name| name.strip_prefix("blobs/")).unwrap()[3..].to_owned();
    log.erase(Hash::from_hex(blob.as_bytes()).unwrap()).unwrap();
    log.close().unwrap();
    Sample::new("blobs", taken(&files), vec![key(207).public()])
}

/// Two crashes, three writers.
fn recovered() -> Sample {
    let files = Arc::<Memory>::default();
    for number in 0..3 {
        let log = options(&files, &key(208)).checkpoint_every(16).open().unwrap();
        fill(&log, "one", 12);
        log.close().unwrap();
        let torn: &[u8] = if number < 2 { b"{\"v\":1,\"log\":\"" } else { b"" };
        files.append("seg-000001.jsonl", torn).unwrap();
    }
    Sample::new("recovered", taken(&files), vec![key(208).public()])
}

/// The oldest segments are gone, and with them the record of a new key.
fn retained() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(209)).checkpoint_every(64).segment_bytes(11_000).open().unwrap();
    for session in ["one", "two", "three"] {
        fill(&log, session, 33);
        log.seal_blocking(session, "complete").unwrap();
        if session == "one" {
            log.rotate_key(key(211)).unwrap();
        }
    }
    log.retain(2).unwrap();
    fill(&log, "four", 6);
    log.close().unwrap();
    let sample = Sample::new("retained", taken(&files), vec![key(209).public(), key(211).public()]);
    assert!(sample.first() > 0 && sample.lines[0].file < sample.lines.last().unwrap().file);
    sample
}

/// Many records.
fn long() -> Sample {
    let files = Arc::<Memory>::default();
    let log = options(&files, &key(210)).checkpoint_every(128).segment_bytes(80_000).open().unwrap();
    for session in ["one", "two"] {
        fill(&log, session, 297);
        log.seal_blocking(session, "complete").unwrap();
    }
    log.close().unwrap();
    Sample::new("long", taken(&files), vec![key(210).public()])
}
