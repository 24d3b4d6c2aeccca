//! A whole log: whatever it is, the verifier does not panic. What it calls sound hangs together, as far as a check that
//! knows little can tell, and nothing that was signed is other than it was when it was signed.
#![no_main]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use amplifier_audit::{Checkpoint, Frontier, Hash, Kind, Record, Report, Trust, Verifier};
use amplifier_fuzz::{EVERY, Files, Input, Memory, checkpoint, cut_halves, key, next_key, segments, split_notes};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    // The verifier waits a tenth of a second for the rest of a line or a note, so only inputs with this letter may lack it.
    let is_slow = input.first() == Some(&b'H');
    let mut input = Input::read(input, &key());
    if !is_slow && !cut_halves(&mut input.files) {
        return;
    }
    let anchor = input.files.get("anchor").cloned().unwrap_or_default();
    let Ok(verifier) = Verifier::new().checkpoints(&anchor) else { return };
    let storage = Memory::new(input.files.clone());
    let Ok(report) = verifier.key(key().public()).storage(&storage) else { return };
    let _ = (report.to_string(), report.to_json());
    if report.is_sound() {
        check(&mut input, &report);
    }
});

/// Checks a log that is said to be sound.
fn check(input: &mut Input, report: &Report) {
    assert_eq!(report.trust, Trust::KeyKnown);
    assert!(report.covered <= report.size && report.anchored.is_none_or(|size| size <= report.size));
    let mut heads = HashMap::new();
    let mut chain: Option<(u64, Hash)> = None;
    let mut frontier = Frontier::new();
    let blobs = input.files.clone();
    for (number, file) in segments(&mut input.files) {
        for line in file.split_inclusive(|&byte| byte == b'\n') {
            let record = Record::parse(line.strip_suffix(b"\n").unwrap()).unwrap();
            assert_eq!((record.log.as_ref(), record.seg), (report.log.as_str(), number));
            match chain {
                Some((size, head)) => assert_eq!((record.seq, record.prev), (size, head)),
                None => {
                    assert!(matches!(record.kind, Kind::Genesis | Kind::Segment));
                    assert_eq!(record.seq, report.first);
                    heads.insert(record.seq, record.prev);
                }
            }
            chain = Some((record.seq + 1, record.h));
            heads.insert(record.seq + 1, record.h);
            frontier.push(record.h);
            check_blob(&blobs, &record);
        }
    }
    let (size, head) = chain.unwrap();
    assert_eq!((report.size, report.records, report.head), (size, size - report.first, Some(head)));
    assert!(report.first > 0 || report.root == Some(frontier.root()));

    if let Some(seed) = SEEDS.heads.get(&head.to_hex()) {
        // What a writer leaves when it is killed is no part of the log.
        let files = input.files.iter().filter(|(name, _)| name.starts_with("seg-") && !name.ends_with(".tmp"));
        for (name, file) in files {
            assert!(seed.get(name) == Some(file), "`{name}` is another, the head is not");
        }
    }
    // Nobody can sign here but the mode that does.
    if !input.mode.signed && report.covered > 0 {
        let signed = (report.log.clone(), report.covered, heads[&report.covered].to_hex());
        assert!(SEEDS.signed.contains(&signed), "that was never signed: {signed:?}");
        // The first record of a log says how many may be added that are not signed, and is signed itself.
        assert!(report.first > 0 || report.unsigned() <= EVERY);
    }
}

/// Large bodies may be erased, but not be altered.
fn check_blob(files: &Files, record: &Record<'_>) {
    let Ok(body) = serde_json::from_str::<Value>(record.body.get()) else { return };
    let (Some(name), Some(_), Some(2)) =
        (body["blob"].as_str(), body["bytes"].as_u64(), body.as_object().map(serde_json::Map::len))
    else {
        return;
    };
    let hash = name.strip_prefix("sha256:").unwrap_or_default();
    if let Some(bytes) = hash.get(..2).and_then(|folder| files.get(&format!("blobs/{folder}/{hash}"))) {
        assert_eq!(Hash::sha256(bytes).to_string(), hash);
    }
}

/// What is in the corpus as it was made.
#[derive(Default)]
struct Seeds {
    /// The files of a log, by the hash of its last record.
    heads: HashMap<[u8; 64], Files>,
    /// Everything that was signed: which log, how many records, and the hash of the last.
    signed: HashSet<(String, u64, [u8; 64])>,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let mut seeds = Seeds::default();
    for target in ["open", "verify"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        for file in std::fs::read_dir(folder).unwrap() {
            seeds.add(Input::read_as_it_is(&std::fs::read(file.unwrap().path()).unwrap()));
        }
    }
    seeds
});

impl Seeds {
    fn add(&mut self, mut input: Input) {
        let mut head = None;
        for (_, file) in segments(&mut input.files) {
            for record in file.split(|&byte| byte == b'\n').filter_map(|line| Record::parse(line).ok()) {
                head = Some(record.h.to_hex());
                let body: Value = serde_json::from_str(record.body.get()).unwrap_or_default();
                self.add_note(body["note"].as_str().unwrap_or_default().as_bytes());
            }
        }
        for file in ["anchor", "checkpoints"].iter().filter_map(|name| input.files.get(*name)) {
            split_notes(file).0.iter().for_each(|note| self.add_note(note));
        }
        if let Some(head) = head {
            self.heads.insert(head, input.files);
        }
    }

    fn add_note(&mut self, note: &[u8]) {
        let Some((note, Checkpoint { log, size, head, .. })) = checkpoint(note) else { return };
        let origin = Checkpoint::origin(&log);
        if [key(), next_key()].iter().any(|key| note.is_signed_by(&origin, &key.public())) {
            self.signed.insert((log, size, head.to_hex()));
        }
    }
}
