//! The example `audit`: what people see of a log.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod common;

use std::fs;
use std::process::Command;

use amplifier_audit::{FileAnchor, SigningKey};
use common::{Place, intent, json, message, outcome};

/// Runs it; gives its exit code, what it printed, and what it said about errors.
fn audit(arguments: &[&str]) -> (i32, String, String) {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    let program = program.join("examples").join("audit");
    let output = Command::new(&program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{}: {error}; examples are built by `cargo test` without `--test`", program.display())
    });
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn sample() -> (Place, String) {
    let place = Place::new();
    let log = place.options().anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
    for record in [message("s-1", "hello"), intent("s-1", "a"), outcome("s-1", "a"), intent("s-2", "b\u{1b}[31m")] {
        log.take(&record).unwrap();
    }
    log.seal_blocking("s-1", "complete").unwrap();
    log.close().unwrap();
    let folder = place.log().display().to_string();
    (place, folder)
}

#[test]
fn a_sound_log_is_said_to_be_sound_and_what_that_proves() {
    let (place, folder) = sample();
    let (code, out, error) = audit(&["verify", &folder]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("sound: 8 records in 1 segments, log "), "{out}");
    for said in [
        "proved",
        "not proved",
        "say which key",
        "compare with an anchor",
        "1 sessions sealed, 1 not",
        "in doubt: record 5",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(!out.contains('\u{1b}'), "nothing of a log reaches the terminal as more than text");

    let key = SigningKey::load(&place.key()).unwrap().public().to_string();
    let anchored = place.at("anchored").display().to_string();
    let (code, out, _) = audit(&["verify", &folder, "--key", &key, "--checkpoints", &anchored, "--json"]);
    let report = json(&out);
    assert_eq!((code, &report["verdict"], &report["trust"]), (0, &"sound".into(), &"key_known".into()));
    assert_eq!((&report["anchored"], &report["unanchored"]), (&7.into(), &1.into()));
}

#[test]
fn exit_codes_tell_sound_unsound_and_unreadable_apart() {
    let (place, folder) = sample();
    let whole = fs::read_to_string(place.segment(1)).unwrap();

    fs::write(place.segment(1), whole.replace("hello", "hallo")).unwrap();
    let (code, out, _) = audit(&["verify", &folder]);
    assert_eq!(code, 1, "{out}");
    assert!(out.starts_with("UNSOUND") && out.contains("seg-000001.jsonl:3: its bytes do not have the hash"), "{out}");
    let (code, out, _) = audit(&["verify", &folder, "--json"]);
    assert_eq!((code, &json(&out)["findings"][0]["problem"]), (1, &"edited".into()));

    fs::write(place.segment(1), format!("{whole}{{")).unwrap();
    let (code, out, _) = audit(&["verify", &folder]);
    assert_eq!(code, 3, "{out}");
    assert!(out.starts_with("UNREADABLE"), "{out}");

    let (code, out, error) = audit(&["verify", &place.at("nothing").display().to_string()]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(error.contains("there is no log here"), "{error}");
    assert!(!place.at("nothing").exists(), "verifying makes nothing");

    let (code, _, error) = audit(&["verify"]);
    assert_eq!(code, 2);
    assert!(error.contains("Usage"), "{error}");
    let (code, _, error) = audit(&["verify", &folder, "--key", "abc"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn records_are_shown_by_session_kind_and_place() {
    let (_place, folder) = sample();
    let shown = |arguments: &[&str]| {
        let (code, out, error) = audit(&[&["show", &folder], arguments].concat());
        assert_eq!((code, error.as_str()), (0, ""));
        out
    };
    assert_eq!(shown(&[]).lines().count(), 8);
    let intents = shown(&["--kind", "intent"]);
    assert_eq!(intents.lines().count(), 2);
    assert!(intents.lines().next().unwrap().contains("s-1"), "{intents}");
    assert!(!intents.contains('\u{1b}'));
    assert_eq!(shown(&["--session", "s-2"]).lines().count(), 1);
    assert_eq!(shown(&["--from", "6"]).lines().count(), 2);
    let last = shown(&["--last", "1", "--json"]);
    assert_eq!(json(&last)["kind"], "checkpoint");
    let (code, _, error) = audit(&["show", &folder, "--kind", "nonsense"]);
    assert_eq!(code, 2);
    assert!(error.contains("approval_request"), "{error}");
}

#[test]
fn a_record_can_be_proved_to_someone_who_has_only_the_key() {
    let (place, folder) = sample();
    let (code, out, _) = audit(&["prove", &folder, "2"]);
    assert_eq!(code, 0);
    let file = place.at("proof.json");
    let key = SigningKey::load(&place.key()).unwrap().public().to_string();
    let check = |text: &str, key: &str| {
        fs::write(&file, text).unwrap();
        let (code, out, _) = audit(&["check", &file.display().to_string(), "--key", key]);
        (code, out)
    };
    let (code, said) = check(&out, &key);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("proved: the record is in the log"), "{said}");
    assert_eq!(check(&out.replace("hello", "hallo"), &key).0, 1);
    assert_eq!(check(&out.replacen("\"seq\": 2", "\"seq\": 3", 1), &key).0, 1);
    let other = SigningKey::generate().unwrap().public().to_string();
    assert!(check(&out, &other).1.contains("not signed with that key"));

    let (code, _, error) = audit(&["prove", &folder, "8"]);
    assert_eq!((code, error.trim()), (3, "record 8 is not there, or no checkpoint covers it yet"));
}

#[test]
fn the_exit_code_tells_although_nobody_reads() {
    let (place, folder) = sample();
    let text = fs::read_to_string(place.segment(1)).unwrap();
    fs::write(place.segment(1), text.replace("hello", "hallo")).unwrap();
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    let mut child = Command::new(program.join("examples").join("audit"))
        .args(["verify", &folder])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Where no signature is at issue, forty lines of Python see the same.
#[test]
fn forty_lines_of_python_agree() {
    let python = |folder: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain.py");
        assert!(fs::read_to_string(script).unwrap().lines().count() <= 40);
        Command::new("python3").args([script, folder]).output().unwrap().status.success()
    };
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
