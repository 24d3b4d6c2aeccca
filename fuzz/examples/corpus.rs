//! Makes the corpus anew: `cargo run --example corpus`. Ids and times differ every time, so only do it if the format
//! has changed, or if there is something to add. What was added by hand, after a crash for instance, stays.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use amplifier_audit::{Hash, Log, LogOptions, SigningKey};
use amplifier_core::{AuditEntry, AuditRecord, Level, TOOL_POST, TOOL_PRE, IntentEntry, MessageEntry, OutcomeEntry};
use amplifier_fuzz::{EVERY, Files, Input, Memory, Mode, key, next_key, segments, split_notes};

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = |target: &str, inputs: Vec<(String, Vec<u8>)>| {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).unwrap();
        inputs.iter().for_each(|(name, input)| fs::write(folder.join(name), input).unwrap());
    };
    let (sound, broken) = (sound_logs(), broken_logs());
    write("record", records(&sound));
    write("note", notes(&sound));
    write("redact", redactions());
    write("verify", sound.iter().chain(&broken).map(as_input).collect());
    write("open", crashed_logs().iter().chain(&broken).map(as_input).collect());
}

type Logs = Vec<(&'static str, Mode, Files)>;

const AS_IT_IS: Mode = Mode { chained: false, numbered: false, signed: false, other: false };
const CHAINED: Mode = Mode { chained: true, ..AS_IT_IS };
const NUMBERED: Mode = Mode { numbered: true, ..CHAINED };
const SIGNED: Mode = Mode { signed: true, ..NUMBERED };
const OTHER: Mode = Mode { other: true, ..AS_IT_IS };

fn as_input((name, mode, files): &(&'static str, Mode, Files)) -> (String, Vec<u8>) {
    (format!("{name}-{}", char::from(mode.letter())), Input { mode: *mode, files: files.clone() }.write())
}

/// What a log is after that was done with it.
fn log(options: impl FnOnce(LogOptions) -> LogOptions, with: impl FnOnce(&Log)) -> Files {
    go_on(Files::new(), options, with)
}

fn go_on(files: Files, options: impl FnOnce(LogOptions) -> LogOptions, with: impl FnOnce(&Log)) -> Files {
    let storage = Arc::new(Memory::new(files));
    let usual = Log::on(storage.clone(), key()).checkpoint_every(EVERY).checkpoint_after(Duration::from_secs(60));
    let log = options(usual).open().unwrap();
    with(&log);
    log.close().unwrap();
    storage.files()
}

fn usual(options: LogOptions) -> LogOptions {
    options
}

fn record(session: Option<&str>, turn: u64, entry: AuditEntry) -> AuditRecord {
    let event = if matches!(entry, AuditEntry::Outcome(_)) { TOOL_POST.name() } else { TOOL_PRE.name() };
    AuditRecord { at: SystemTime::now(), session: session.map(str::to_owned), turn, event, entry }
}

fn message(log: &Log, text: &str) {
    let entry = AuditEntry::Message(MessageEntry { shown: true, source: "m".into(), level: Level::Info, text: text.into() });
    log.take(&record(None, 0, entry)).unwrap();
}

fn intent(log: &Log, session: &str, call: &str) {
    let entry = AuditEntry::Intent(IntentEntry { digest: None, tool_call_id: Some(call.into()) });
    log.take(&record(Some(session), 1, entry)).unwrap();
}

fn outcome(log: &Log, session: &str, call: &str) {
    let entry = AuditEntry::Outcome(OutcomeEntry { success: Some(true), tool_call_id: Some(call.into()) });
    log.take(&record(Some(session), 1, entry)).unwrap();
}

fn session(log: &Log) {
    intent(log, "s", "c");
    outcome(log, "s", "c");
    log.seal_blocking("s", "done").unwrap();
}

fn small() -> Files {
    log(usual, |log| message(log, "hello"))
}

/// What is there when a crash came after the first record.
fn begun() -> Files {
    let mut files = log(usual, |_| ());
    files.remove("checkpoints");
    last_lines(&mut files, 1);
    files
}

fn two_segments() -> Files {
    log(|options| options.segment_bytes(600), |log| ["a", "b"].iter().for_each(|text| message(log, text)))
}

fn retained() -> Files {
    let with = |log: &Log| {
        ["a", "b"].iter().for_each(|text| message(log, text));
        log.checkpoint().unwrap();
        log.retain(1).unwrap();
    };
    log(|options| options.segment_bytes(600), with)
}

fn with_blob() -> Files {
    log(|options| options.blob_above(8), |log| message(log, "large"))
}

fn blob_of(files: &Files) -> Hash {
    let name = files.keys().find_map(|name| name.strip_prefix("blobs/")).unwrap();
    Hash::from_hex(&name.as_bytes()[3..]).unwrap()
}

fn sound_logs() -> Logs {
    let empty = log(usual, |_| ());
    let sealed = log(usual, session);
    let in_doubt = log(usual, |log| intent(log, "s", "c"));
    let rotated = log(usual, |log| log.rotate_key(next_key()).unwrap());
    let erased = go_on(with_blob(), usual, |log| log.erase(blob_of(&with_blob())).unwrap());
    let mut anchored = small();
    anchored.insert("anchor".into(), anchored["checkpoints"].clone());
    let mut unsigned = small();
    last_lines(&mut unsigned, 1);
    unsigned.remove("checkpoints");
    vec![
        ("empty", AS_IT_IS, empty.clone()),
        ("empty", NUMBERED, empty),
        ("small", AS_IT_IS, small()),
        ("small", SIGNED, small()),
        ("sealed", CHAINED, sealed.clone()),
        ("sealed", SIGNED, sealed),
        ("in-doubt", CHAINED, in_doubt),
        ("rotated", AS_IT_IS, rotated),
        ("segments", CHAINED, two_segments()),
        ("blob", CHAINED, with_blob()),
        ("erased", CHAINED, erased),
        ("retained", CHAINED, retained()),
        ("retained", SIGNED, retained()),
        ("anchored", SIGNED, anchored),
        ("unsigned", CHAINED, unsigned),
    ]
}

/// Removes lines from the end of the last segment.
fn last_lines(files: &mut Files, removed: usize) {
    let (_, file) = segments(files).pop().unwrap();
    let lines: Vec<_> = file.split_inclusive(|&byte| byte == b'\n').collect();
    *file = lines[..lines.len() - removed].concat();
}

fn broken_logs() -> Logs {
    let edited = replaced(small(), "hello", "hallo");
    let breach = go_on(edited.clone(), usual, |_| ());
    let mut shortened = small();
    last_lines(&mut shortened, 2);
    let largest = u64::MAX.to_string();
    let last = u32::MAX.to_string();
    let mut last_segment = replaced(retained(), "\"seg\":3", &format!("\"seg\":{last}"));
    let file = last_segment.remove("seg-000003.jsonl").unwrap();
    last_segment.insert(format!("seg-{last}.jsonl"), file);
    vec![
        ("edited", AS_IT_IS, edited),
        ("breach", CHAINED, breach),
        ("shortened", AS_IT_IS, shortened),
        ("handed-over", AS_IT_IS, handed_over()),
        ("last-segment", CHAINED, last_segment),
        ("without-checkpoints", CHAINED, replaced(small(), "\"every\":4", &format!("\"every\":{largest}"))),
        ("with-many", CHAINED, replaced(begun(), "\"every\":4", "\"every\":1")),
        ("odd-id", CHAINED, replaced(begun(), "\"log\":\"", "\"log\":\"0")),
    ]
}

/// The files with another text in all segments.
fn replaced(mut files: Files, text: &str, by: &str) -> Files {
    for (_, file) in segments(&mut files) {
        *file = String::from_utf8_lossy(file).replace(text, by).into_bytes();
    }
    files
}

/// A log of somebody else, who names our key as the next. That takes no signature of ours.
fn handed_over() -> Files {
    let storage = Arc::new(Memory::default());
    let log = Log::on(storage.clone(), SigningKey::from_seed([3; 32])).open().unwrap();
    message(&log, "forged");
    log.checkpoint().unwrap();
    log.rotate_key(key()).unwrap();
    log.close().unwrap();
    let mut files = storage.files();
    files.remove("checkpoints");
    let (_, file) = segments(&mut files).pop().unwrap();
    let text = String::from_utf8_lossy(file);
    let end = text.find("key_rotation").and_then(|at| Some(at + text[at..].find('\n')? + 1)).unwrap();
    file.truncate(end);
    files
}

fn torn() -> Files {
    let mut files = small();
    let (_, file) = segments(&mut files).pop().unwrap();
    file.truncate(file.len() - 9);
    files
}

fn crashed_logs() -> Logs {
    let recovered = go_on(torn(), usual, |_| ());
    let mut half_a_note = small();
    let notes = half_a_note.get_mut("checkpoints").unwrap();
    notes.truncate(notes.len() - 9);
    let mut left = two_segments();
    left.insert("seg-000003.jsonl.tmp".into(), b"{\"v\":1".to_vec());
    let mut junk = small();
    segments(&mut junk).pop().unwrap().1.extend_from_slice(b"no record\n");
    let mut new_segment = small();
    new_segment.insert("seg-000002.jsonl".into(), Vec::new());
    vec![
        ("nothing", AS_IT_IS, Files::new()),
        ("begun", AS_IT_IS, begun()),
        ("small", SIGNED, small()),
        ("small", OTHER, small()),
        ("segments", NUMBERED, two_segments()),
        ("blob", CHAINED, with_blob()),
        ("sealed", Mode { other: true, ..SIGNED }, log(usual, session)),
        ("torn", CHAINED, torn()),
        ("recovered", CHAINED, recovered),
        ("half-a-note", AS_IT_IS, half_a_note),
        ("left", CHAINED, left),
        ("junk", CHAINED, junk),
        ("empty-segment", CHAINED, new_segment),
    ]
}

/// One line of each kind, some of them for the target to hash.
fn records(logs: &Logs) -> Vec<(String, Vec<u8>)> {
    let mut records: Vec<(String, Vec<u8>)> = Vec::new();
    for (_, _, files) in logs {
        for (_, file) in segments(&mut files.clone()) {
            for line in file.split(|&byte| byte == b'\n') {
                let Ok(record) = amplifier_audit::Record::parse(line) else { continue };
                let kind = record.kind.as_str();
                if !records.iter().any(|(name, _)| name == kind) {
                    records.push((kind.to_owned(), line.to_vec()));
                    records.push((format!("{kind}-hashed-later"), [b"+", &line[..line.len() - 72]].concat()));
                }
            }
        }
    }
    records
}

fn notes(logs: &Logs) -> Vec<(String, Vec<u8>)> {
    let mut notes: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, mode, files) in logs {
        let Some(file) = files.get("checkpoints") else { continue };
        for (number, note) in split_notes(file).0.iter().enumerate() {
            let name = format!("{name}-{}-{number}", char::from(mode.letter()));
            if notes.len() < 6 {
                notes.push((name, note.to_vec()));
            }
        }
    }
    let note = String::from_utf8(notes[0].1.clone()).unwrap();
    let signature = note.lines().last().unwrap();
    notes.push(("file".into(), format!("{note}\n{note}\n").into_bytes()));
    notes.push(("torn-file".into(), format!("{note}\n{note}").into_bytes()));
    notes.push(("two-signatures".into(), format!("{note}{signature}\n").into_bytes()));
    notes.push(("witness".into(), format!("{note}— witness/\u{e9} AAAAAAE=\n").into_bytes()));
    notes.push(("text".into(), format!("any\n\ntext\n\n{signature}\n").into_bytes()));
    notes
}

fn redactions() -> Vec<(String, Vec<u8>)> {
    let inputs = [
        ("tokens", "", "", r#"["ghp_0123456789abcdefghij","sk-ant-0123456789abcdef_","AKIAIOSFODNN7EXAMPLE"]"#),
        (
            "more-tokens",
            "",
            "",
            r#"["glpat-0123456789abcdef","xoxb-0123456789-ab","AIzaSyA0123456789abcdefghijklmnopqrstuv"]"#,
        ),
        ("jwt", "", "", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
        ("private-key", "", "", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nafter"),
        ("webhook", "", "", "https://hooks.slack.com/services/T0/B0/abc"),
        ("url", "", "", r#"{"url":"postgres://user:hunter2@host/db"}"#),
        ("header", "", "", r#"curl -H "Authorization: Bearer abcdef0123456789" -H 'Cookie: a=b; c=d'"#),
        ("assignments", "", "", r#"password=swordfish API_KEY: "k3y-0123" --token abc123def token => 'x'"#),
        ("escaped", "", "", r#"{"text":"{\"client_secret\":\"abc\",\"n\":1}\\nsk-0123456789abcdefghijklmn"}"#),
        ("fields", "", "", r#"{"db_password":"x","apiKey":12,"tokens":[1],"token":[1,"a",null,true,{"b":2}]}"#),
        ("keys", "", "", r#"{"password=abc":1,"4111111111111111":2}"#),
        ("cards", "", "", r#"["4111 1111 1111 1111","378282246310005","5500-0000-0000-0004",4111111111111111]"#),
        ("card-after-escape", "", "", "é4111111111111111\u{7f}"),
        ("marker", "", "", "a [redacted kind=token len=3 hmac=0123456789abcdef] token=abc"),
        ("half-a-marker", "", "", "[redacted kind=token len=3 hmac=password=abcdef]"),
        ("placeholders", "", "", "password=${PASSWORD} token=<token> secret=**** --password %s"),
        ("pattern", r"badge-(?<secret>\d{6})", "", "he showed badge-301422"),
        ("alternatives", "(?i)alpha|beta?|(gam)+ma", "", "ALPHA bet gamgamma"),
        ("repetitions", r"x{3}abc*[de]?\.fgh+", "", "xxxab.fgh xxxabcccd.fghhh"),
        ("classes", r"[\d\w--a]{2}literal\x41", "", "12literalA"),
        ("field", "", "pin", r#"{"card_pin":1234,"cardPin":"a","spin":1,"p-i_n":"x"}"#),
        ("odd-field", "lit", "ü\"_-x", r#"{"ü\"x":"lit","_ü\"-x":0}"#),
        ("empty-match", "a*", "-", "bab"),
        ("nested", "", "", r#"[[[{"a":{"b":["authorization: basic dXNlcjpwYXNz"]}}]]]"#),
    ];
    inputs
        .iter()
        .map(|(name, pattern, field, text)| ((*name).into(), format!("{pattern}\n{field}\n{text}").into()))
        .collect()
}
