//! Two verifiers that were written apart come to the same verdict: [`Verifier`] and `verify.py`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Place, intent, message, outcome};
use amplifier_audit::{
    FileAnchor, Folder, Hash, Lock, Log, LogOptions, Note, PublicKey, RecordSource, SigningKey, Storage, Verifier,
};

type Files = BTreeMap<String, Vec<u8>>;

/// A log, and what is known of it elsewhere.
#[derive(Clone)]
struct Sample {
    name: String,
    files: Files,
    anchored: Vec<u8>,
    key: PublicKey,
    /// The results of both verifiers without external data, and with the checkpoints and the key.
    codes: Option<(u8, u8)>,
}

impl Sample {
    /// Its files, in a place of their own.
    fn placed(&self) -> Place {
        let place = Place::new();
        for (name, bytes) in &self.files {
            let path = place.log().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        place
    }
}

/// Runs both verifiers on each, with and without what is known.
fn check(samples: &[Sample]) {
    let next = Mutex::new(samples.iter());
    let differences = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(sample) = { next.lock().unwrap().next() } {
                    differences.lock().unwrap().extend(differences_of(sample));
                }
            });
        }
    });
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

fn differences_of(sample: &Sample) -> Vec<String> {
    let place = sample.placed();
    let knowing_nothing = Verifier::new();
    let mut knowing_all = Verifier::new().key(sample.key);
    let mut known = vec!["-".to_owned(), sample.key.to_string()];
    if !sample.anchored.is_empty() {
        fs::write(place.at("anchored"), &sample.anchored).unwrap();
        known[0] = place.at("anchored").display().to_string();
        knowing_all = knowing_all.checkpoints(&sample.anchored).unwrap();
    }
    let (expected, known_expected) = sample.codes.unzip();
    let mut differences = Vec::new();
    let cases =
        [("knowing nothing", knowing_nothing, vec![], expected), ("knowing all", knowing_all, known, known_expected)];
    for (knowledge, verifier, arguments, expected) in cases {
        let report = verifier.folder(place.log());
        let code = report.as_ref().map_or(4, |report| report.integrity().exit_code());
        let (python, said) = verify_py(&place.log(), &arguments);
        if i32::from(code) != python || expected.is_some_and(|expected| expected != code) {
            let report = report.map_or_else(|error| error.to_string(), |report| report.to_string());
            let short = report.lines().take(6).collect::<Vec<_>>().join("\n    ");
            let expected = expected.map_or(String::new(), |expected| format!(", expected {expected}"));
            differences
                .push(format!("{} {knowledge}: {code} and {python}{expected}\n  {said}    {short}", sample.name));
        }
    }
    differences
}

fn verify_py(log: &Path, arguments: &[String]) -> (i32, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify.py");
    let output = Command::new("python3").arg(script).arg(log).args(arguments).output();
    let output = output.expect("this test needs `python3`");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), said)
}

/// A folder to which nothing can be written for a while.
struct Flaky {
    folder: Folder,
    fails: AtomicBool,
}

impl Flaky {
    fn works(&self) -> io::Result<&Folder> {
        if self.fails.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(&self.folder) }
    }
}

impl RecordSource for Flaky {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        self.folder.size(file)
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        self.folder.read(file, from)
    }
}

impl Storage for Flaky {
    fn lock(&self) -> io::Result<Lock> {
        self.folder.lock()
    }
    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        self.works()?.append(file, bytes)
    }
    fn sync(&self, file: &str) -> io::Result<()> {
        self.works()?.sync(file)
    }
    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        self.folder.truncate(file, size)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.works()?.rename(from, to)
    }
    fn remove(&self, file: &str) -> io::Result<()> {
        self.folder.remove(file)
    }
    fn make_folder(&self, folder: &str) -> io::Result<()> {
        self.folder.make_folder(folder)
    }
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.works()?.sync_folder(folder)
    }
}

/// Makes a log with the library; `write` writes to it, and may look at its folder.
fn made(name: &str, write: impl FnOnce(&Place)) -> Sample {
    let place = Place::new();
    SigningKey::create(&place.key()).unwrap();
    let key = SigningKey::load(&place.key()).unwrap().public();
    write(&place);
    let anchored = fs::read(place.at("anchored")).unwrap_or_default();
    Sample { name: name.to_owned(), files: read_folder(&place.log(), ""), anchored, key, codes: Some((0, 0)) }
}

fn options(place: &Place) -> LogOptions {
    place.options().anchor(FileAnchor::new(place.at("anchored"))).checkpoint_after(Duration::from_secs(3_600))
}

fn read_folder(folder: &Path, prefix: &str) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            files.extend(read_folder(&path, &format!("{name}/")));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn fill(log: &Log, session: &str, count: usize) {
    for number in 0..count / 3 {
        let call = format!("call-{number}");
        let text = format!("number {number}: \u{e9}\u{1f600} \"quoted\"\n");
        for record in [intent(session, &call), message(session, &text), outcome(session, &call)] {
            log.take(&record).unwrap();
        }
    }
}

fn session(name: &str, records: usize, options: impl Fn(LogOptions) -> LogOptions) -> Sample {
    made(name, |place| {
        let log = options(self::options(place)).open().unwrap();
        fill(&log, "one", records);
        log.seal_blocking("one", "complete").unwrap();
        log.close().unwrap();
    })
}

fn segments() -> Sample {
    made("segments", |place| {
        let log = options(place).segment_bytes(6_000).checkpoint_every(24).open().unwrap();
        for session in ["one", "two"] {
            fill(&log, session, 30);
            log.seal_blocking(session, "complete").unwrap();
        }
        log.close().unwrap();
    })
}

/// The key changes twice.
fn rotated() -> Sample {
    made("rotated", |place| {
        let log = options(place).segment_bytes(9_000).open().unwrap();
        for _ in 0..2 {
            fill(&log, "one", 15);
            log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        }
        fill(&log, "one", 15);
        log.close().unwrap();
    })
}

fn blobs() -> Sample {
    made("blobs", |place| {
        let log = options(place).blob_above(300).open().unwrap();
        for letter in ["a", "b", "c"] {
            fill(&log, "one", 3);
            log.take(&message("one", &letter.repeat(1_000))).unwrap();
        }
        log.checkpoint().unwrap();
        let files = read_folder(&place.log(), "");
        let blob = files.keys().find_map(|name| name.strip_prefix("blobs/")).unwrap();
        log.erase(Hash::from_hex(&blob.as_bytes()[3..]).unwrap()).unwrap();
        log.close().unwrap();
    })
}

/// A process that was killed while it wrote a record and a checkpoint, and one that goes on.
fn recovered() -> Sample {
    made("recovered", |place| {
        for _ in 0..2 {
            let log = options(place).open().unwrap();
            fill(&log, "one", 9);
            log.close().unwrap();
            let text = fs::read(place.segment(1)).unwrap();
            fs::write(place.segment(1), [&text[..], &text[..100]].concat()).unwrap();
        }
        options(place).open().unwrap().close().unwrap();
    })
}

/// The disk was full for a while, and the session ended after that.
fn gap() -> Sample {
    made("gap", |place| {
        let folder = Arc::new(Flaky { folder: Folder::new(place.log()), fails: AtomicBool::new(false) });
        let key = SigningKey::load(&place.key()).unwrap();
        let log = Log::on(folder.clone(), key).anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
        fill(&log, "one", 9);
        log.checkpoint().unwrap();
        folder.fails.store(true, Ordering::SeqCst);
        let receipt = log.take(&message("one", "lost")).unwrap();
        log.flush_blocking(receipt).unwrap_err();
        folder.fails.store(false, Ordering::SeqCst);
        let begun = Instant::now();
        while log.status().failure.is_some() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not recover");
            std::thread::sleep(Duration::from_millis(1));
        }
        fill(&log, "one", 9);
        log.seal_blocking("one", "complete").unwrap();
        log.close().unwrap();
        assert_eq!(place.verify().gaps, 1);
    })
}

/// Someone was at the log while nobody wrote to it, and the next writer noticed.
fn breach() -> Sample {
    let sample = made("breach", |place| {
        let log = options(place).open().unwrap();
        fill(&log, "one", 9);
        log.close().unwrap();
        let text = fs::read_to_string(place.segment(1)).unwrap();
        fs::write(place.segment(1), text.replace("number 1", "number 9")).unwrap();
        options(place).open().unwrap().close().unwrap();
        assert_eq!(place.verify().breaches, 1);
    });
    Sample { codes: Some((1, 1)), ..sample }
}

/// The oldest segments are gone, and with them the record of a new key.
fn retained() -> Sample {
    made("retained", |place| {
        let log = options(place).segment_bytes(5_000).open().unwrap();
        for session in ["one", "two", "three"] {
            fill(&log, session, 21);
            log.seal_blocking(session, "complete").unwrap();
            if session == "one" {
                log.rotate_key(SigningKey::generate().unwrap()).unwrap();
            }
        }
        log.retain(2).unwrap();
        fill(&log, "four", 9);
        log.close().unwrap();
        assert!(place.verify().first > 0);
    })
}

/// A log while it is written to: nothing covers its last records yet.
fn running() -> Sample {
    let mut files = Files::new();
    let sample = made("running", |place| {
        let log = options(place).checkpoint_every(12).open().unwrap();
        fill(&log, "one", 33);
        log.flush_blocking(log.take(&message("one", "last")).unwrap()).unwrap();
        files = read_folder(&place.log(), "");
    });
    // What the anchor has may cover more than was there a moment ago.
    Sample { files, anchored: Vec::new(), ..sample }
}

/// Logs of every sort, as the library left them.
fn untouched() -> Vec<Sample> {
    vec![
        made("nothing but its beginning", |place| options(place).open().unwrap().close().unwrap()),
        session("short", 9, |options| options),
        session("every 2", 30, |options| options.checkpoint_every(2)),
        made("policy changes", |place| {
            let log = options(place).open().unwrap();
            // What a body says is no business of a verifier.
            log.policy_change(&serde_json::json!({ "blob": "sha256:?" })).unwrap();
            log.policy_change(&serde_json::json!({ "blob": 1, "bytes": 2 })).unwrap();
            // It may be refused, but must not make the log unreadable.
            let _ = log.policy_change(&"words");
            log.close().unwrap();
        }),
        running(),
        segments(),
        rotated(),
        blobs(),
        recovered(),
        gap(),
        breach(),
        retained(),
    ]
}

#[test]
fn both_say_the_same_about_logs_that_nobody_touched() {
    let long = session("3,000 records", 3_000, |options| options);
    let begun = Instant::now();
    check(std::slice::from_ref(&long));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    check(&untouched());
}

/// The records of one segment.
fn lines(files: &Files, file: &str) -> Vec<String> {
    String::from_utf8(files[file].clone()).unwrap().lines().map(str::to_owned).collect()
}

fn with_lines(mut files: Files, file: &str, lines: &[String]) -> Files {
    files.insert(file.to_owned(), lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect());
    files
}

/// The line with a hash that fits it.
fn hashed(line: &str) -> String {
    let hashed = &line[..line.len() - 72];
    format!("{hashed},\"h\":\"{}\"}}", Hash::leaf(hashed.as_bytes()))
}

/// Numbers, links and hashes the lines from there on anew.
fn link(lines: &mut [String], from: usize) {
    for number in from..lines.len() {
        let line = &lines[number];
        let (seq, prev) = (line.find("\"seq\":").unwrap(), line.find("\"prev\":").unwrap());
        let before = number.checked_sub(1).map(|before| &lines[before][lines[before].len() - 66..][..64]);
        let before = before.unwrap_or(&line[prev + 8..prev + 72]);
        let first: u64 = lines[0].split("\"seq\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        let linked =
            format!("{}\"seq\":{},\"prev\":\"{before}{}", &line[..seq], first + number as u64, &line[prev + 72..]);
        lines[number] = hashed(&linked);
    }
}

const FIRST: &str = "seg-000001.jsonl";

/// One log changed in every way that one can think of.
fn variants(sample: &Sample) -> Vec<Sample> {
    let mut variants = Vec::new();
    let mut add = |name: String, files: Files| {
        variants.push(Sample { name: format!("{}: {name}", sample.name), files, codes: None, ..sample.clone() });
    };
    let files = || sample.files.clone();
    let segments: Vec<&String> = sample.files.keys().filter(|name| name.starts_with("seg-")).collect();
    let (first, last) = (segments[0].as_str(), segments[segments.len() - 1].as_str());
    let all = lines(&sample.files, last);
    let count = all.len();

    let mut names = vec![first, last, "checkpoints"];
    names.dedup();
    for name in names {
        let size = sample.files[name].len();
        // Everywhere in the file, and each bit of its last bytes.
        let places =
            (0..4).map(|part| (size * part / 4 + part * 7, part)).chain((0..4).map(|bit| (size - 1 - bit, 7 - bit)));
        for (byte, bit) in places.filter(|(byte, _)| *byte < size) {
            let mut files = files();
            files.get_mut(name).unwrap()[byte] ^= 1 << bit;
            add(format!("bit {bit} of byte {byte} of {name}"), files);
        }
    }
    if let Some(blob) = sample.files.keys().find(|name| name.starts_with("blobs/")) {
        let mut changed = files();
        changed.get_mut(blob).unwrap()[10] ^= 1;
        add("a blob".to_owned(), changed);
        let mut changed = files();
        changed.remove(blob);
        add("a blob less".to_owned(), changed);
    }
    for number in [0, count / 2, count - 2, count - 1] {
        let mut edited = all.clone();
        edited[number] = hashed(&edited[number].replacen("\"writer\":\"", "\"writer\":\"0", 1));
        add(format!("record {number} edited and hashed"), with_lines(files(), last, &edited));
        for (from, name) in [(number, "it"), (number + 1, "all after it")] {
            let mut rewritten = edited.clone();
            link(&mut rewritten, from);
            add(format!("record {number} edited, {name} linked"), with_lines(files(), last, &rewritten));
        }
        let mut dropped = edited[..=number].to_vec();
        let rest = edited[number + 1..].iter();
        dropped.extend(rest.filter(|line| !line.contains("\"kind\":\"checkpoint\"")).cloned());
        link(&mut dropped, number);
        add(format!("all from record {number} without checkpoints"), with_lines(files(), last, &dropped));
        let mut removed = all.clone();
        removed.remove(number);
        add(format!("record {number} deleted"), with_lines(files(), last, &removed));
        let mut repeated = all.clone();
        repeated.insert(count / 2, all[number].clone());
        add(format!("record {number} repeated"), with_lines(files(), last, &repeated));
        let mut swapped = all.clone();
        swapped.swap(number, (number + 1) % count);
        add(format!("record {number} swapped with the next"), with_lines(files(), last, &swapped));
        add(format!("cut after record {number}"), with_lines(files(), last, &all[..=number]));
        let mut torn = with_lines(files(), last, &all[..number]);
        torn.get_mut(last).unwrap().extend_from_slice(&all[number].as_bytes()[..50]);
        add(format!("cut in record {number}"), torn);
    }
    for more in [1, 300] {
        let mut longer = all.clone();
        let made_up = all[count / 2].replace("checkpoint", "event");
        longer.extend(std::iter::repeat_n(made_up, more));
        link(&mut longer, count);
        add(format!("{more} more records"), with_lines(files(), last, &longer));
    }
    for name in segments.iter().map(|name| name.as_str()).chain(["checkpoints"]) {
        let mut less = files();
        less.remove(name);
        add(format!("without {name}"), less);
        let mut empty = files();
        empty.insert(name.to_owned(), Vec::new());
        add(format!("with an empty {name}"), empty);
        for (what, bytes) in
            [("an empty line", &b"\n"[..]), ("two", b"\n\n"), ("words", b"words"), ("a line", b"words\n")]
        {
            let mut more = files();
            more.get_mut(name).unwrap().extend_from_slice(bytes);
            add(format!("{what} at the end of {name}"), more);
        }
    }
    let mut odd = files();
    odd.insert("seg-9.jsonl".to_owned(), sample.files[last].clone());
    add("a segment under a name that nobody looks for".to_owned(), odd);
    let version = all[count - 1].replacen("{\"v\":1,", "{\"v\":2,", 1);
    let mut later = all.clone();
    later[count - 1] = hashed(&version);
    add("the last record of another version".to_owned(), with_lines(files(), last, &later));
    let garbled: Vec<String> = std::iter::repeat_n("words".to_owned(), 120).chain(all.clone()).collect();
    add("a hundred lines of words".to_owned(), with_lines(files(), last, &garbled));
    variants
}

/// Another log in the place of this one.
fn replaced(sample: &Sample, other: &Sample) -> Vec<Sample> {
    let with = |name: &str, files| Sample { name: format!("{}: {name}", sample.name), files, ..sample.clone() };
    let mut mixed = other.files.clone();
    mixed.insert("checkpoints".to_owned(), sample.files["checkpoints"].clone());
    vec![
        Sample { codes: Some((0, 1)), ..with("replaced by another log", other.files.clone()) },
        Sample { codes: Some((1, 1)), ..with("replaced by another log, but not its checkpoints", mixed) },
    ]
}

#[test]
fn both_say_the_same_about_logs_that_someone_changed() {
    let short = session("short", 9, |options| options);
    let (segments, rotated, blobs, retained) = (segments(), rotated(), blobs(), retained());
    let mut all = variants(&short);
    for sample in [&segments, &rotated, &blobs, &retained] {
        // Some of each: a run of the script takes a while.
        all.extend(variants(sample).into_iter().step_by(7));
    }
    all.extend(replaced(&short, &segments));
    all.extend(replaced(&rotated, &short));
    println!("{} changed logs", all.len());
    assert!(all.len() >= 60, "{}", all.len());
    check(&all);
}

#[test]
fn both_refuse_a_log_that_only_names_the_known_key() {
    let mut sample = session("impostor", 9, |options| options);
    let mut unsigned = lines(&sample.files, FIRST);
    unsigned.retain(|line| !line.contains("\"kind\":\"checkpoint\""));
    unsigned[1] = unsigned[1].replacen("\"session\":\"one\"", "\"session\":\"two\"", 1);
    link(&mut unsigned, 1);
    sample.files = with_lines(sample.files, FIRST, &unsigned[..8]);
    sample.files.remove("checkpoints");
    sample.anchored.clear();
    check(&[Sample { codes: Some((1, 1)), ..sample }]);
}

#[test]
fn both_refuse_a_record_with_its_keys_in_another_order() {
    let mut sample = session("order", 9, |options| options);
    let mut lines = lines(&sample.files, FIRST);
    let last = lines.last_mut().unwrap();
    *last = hashed(&last.replacen("{\"v\":1,", "{", 1).replacen("\"turn\":", "\"v\":1,\"turn\":", 1));
    sample.files = with_lines(sample.files, FIRST, &lines);
    check(&[Sample { codes: Some((4, 4)), ..sample }]);
}

#[test]
fn both_refuse_an_anchor_without_a_checkpoint() {
    let sample = session("anchor", 9, |options| options);
    let place = sample.placed();
    let half = &sample.anchored[..150];
    for anchored in [&b"no note"[..], b"no\n\nnote\n\n", half] {
        fs::write(place.at("anchored"), anchored).unwrap();
        let (code, said) = verify_py(&place.log(), &[place.at("anchored").display().to_string()]);
        assert_eq!((Verifier::new().checkpoints(anchored).is_err(), code), (true, 4), "{anchored:?}: {said}");
    }
}

#[test]
fn both_say_the_same_about_anchors_that_the_log_did_not_sign() {
    let sample = session("unsigned anchor", 9, |options| options);
    let note = String::from_utf8(sample.anchored.clone()).unwrap();
    let text = note.split_once("\n\n").unwrap().0.to_owned();
    let signed = |name: &str| {
        let note = Note::sign(text.clone(), name, &SigningKey::generate().unwrap());
        format!("{note}\n").into_bytes()
    };
    let with = |name: &str, anchored, code| {
        let name = format!("{}: {name}", sample.name);
        Sample { name, anchored, codes: Some((0, code)), ..sample.clone() }
    };
    check(&[
        with("witness", signed("witness.example"), 0),
        with("another key", signed(text.lines().next().unwrap()), 1),
        with("altered", note.replacen("\ntime 2", "\ntime 1", 1).into_bytes(), 1),
    ]);
}

/// Without signatures, forty lines of Python find the same problems.
#[test]
fn forty_lines_of_python_agree() {
    let python = |folder: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain.py");
        assert!(fs::read_to_string(script).unwrap().lines().count() <= 40);
        Command::new("python3").args([script, folder]).output().unwrap().status.success()
    };
    for sample in untouched() {
        let place = sample.placed();
        let is_sound = place.verify().is_sound();
        assert_eq!(python(&place.log().display().to_string()), is_sound, "{}", sample.name);
    }
    let place = Place::new();
    let log = place.options().segment_bytes(20_000).checkpoint_every(16).open().unwrap();
    for number in 0..100 {
        log.take(&message("s", &format!("number {number}"))).unwrap();
    }
    log.close().unwrap();
    let folder = place.log().display().to_string();
    assert!(place.verify().is_sound() && python(&folder));
    fs::remove_file(place.log().join("checkpoints")).unwrap();

    let whole = fs::read_to_string(place.segment(2)).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for at in (0..lines.len() - 1).step_by(7) {
        let mut edited: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        edited[at] = edited[at].replacen("\"v\":1", "\"v\":2", 1);
        let mut deleted = lines.clone();
        deleted.remove(at);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        let mut repeated = lines.clone();
        repeated.insert(at, lines[at]);
        for altered in [edited.concat(), deleted.concat(), swapped.concat(), repeated.concat()] {
            fs::write(place.segment(2), altered).unwrap();
            assert!(!place.verify().is_sound() && !python(&folder), "record {at} of the segment");
        }
    }
    fs::write(place.segment(2), &whole[..whole.len() - 3]).unwrap();
    assert!(!place.verify().is_sound() && !python(&folder));
    fs::write(place.segment(2), &whole).unwrap();
    assert!(place.verify().is_sound() && python(&folder));
}
