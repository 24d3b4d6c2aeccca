//! What is kept of sessions.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::run::said;
use crate::common::{Place, Ran};

/// A place with two sessions.
fn place() -> Place {
    let place = Place::with(json!([
        { "text": "I look.", "tools": [{ "name": "Bash", "input": { "command": "ls" } }] },
        { "text": "Nothing\u{1b}[2J there." }
    ]));
    place.run(&["Look around"]);
    place.answers(json!([{ "text": "Good morning." }]));
    place.run(&["Greet me"]);
    place
}

fn ids(place: &Place) -> Vec<String> {
    let list = place.amplifier(&["sessions", "list", "--json"]).fine();
    let session = |line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    list.lines().map(session).collect()
}

#[test]
fn sessions_are_listed_the_newest_first() {
    let place = place();
    let list = place.amplifier(&["sessions", "list"]).fine();
    let ids = ids(&place);
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = list.lines().map(columns).collect();
    assert_eq!(rows[0], ["ID", "STARTED", "TURNS", "ENDED", "TITLE"]);
    for (row, id, title) in [(&rows[1], &ids[0], "Greet me"), (&rows[2], &ids[1], "Look around")] {
        // The console shows the same short id, and every command accepts it.
        assert_eq!([&*row[0], &row[2], &row[3], &row[4]], [&id[id.len() - 6..], "1", "complete", title]);
        let shown = place.amplifier(&["sessions", "show", &row[0]]).fine();
        assert!(shown.contains(&format!("Session `{id}`")), "{shown}");
    }
    assert_eq!(rows.len(), 3);
}

#[test]
fn where_there_are_none_it_says_how_to_begin_one() {
    let place = Place::with(json!([]));
    let hint = "No sessions yet. Start one with `amplifier chat` or `amplifier run`.\n";
    assert_eq!(place.amplifier(&["sessions", "list"]).fine(), hint);
    let failed = place.amplifier(&["sessions", "show", "last"]);
    failed.check_failed("amplifier: unknown session `last`; run `amplifier sessions list` to list the sessions");
}

#[test]
fn a_session_is_shown_line_by_line_with_nothing_that_a_terminal_would_obey() {
    let place = place();
    let id = &ids(&place)[1];
    let shown = place.amplifier(&["sessions", "show", id]).fine();
    let (head, rest) = shown.split_once("## User").unwrap();
    assert!(head.starts_with(&format!("# Look around\n\nSession `{id}`, begun 2")), "{head}");
    let expected = "\n\nLook around\n\n## Assistant\n\nI look.\n\n**Bash**\n\n```json\n{\n  \"command\": \"ls\"\n}\n```\n\n## Tool\n\n```\nDenied by hook";
    assert!(rest.starts_with(expected), "{rest}");
    assert!(rest.ends_with("\n## Assistant\n\nNothing␛[2J there.\n"), "{rest}");
    let json = place.amplifier(&["sessions", "show", id, "--json"]).fine();
    assert_eq!(json, place.amplifier(&["sessions", "export", id, "--format", "jsonl"]).fine());
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let place = place();
    let ids = ids(&place);
    let show = |id: &str| place.amplifier(&["sessions", "show", id]);
    assert_eq!(show(&ids[0][..30]).fine(), show("last").fine());
    show(&ids[0][..3]).check_failed(&format!(
        "amplifier: ambiguous session id `{}`: 2 sessions match: `{}`, `{}`; give more characters",
        &ids[0][..3],
        ids[1],
        ids[0]
    ));
}

#[test]
fn a_session_is_exported_as_it_is_and_never_over_another_file() {
    let place = place();
    let id = &ids(&place)[1];
    assert_eq!(place.conversation(), [said("user", "Greet me"), said("assistant", "Good morning.")]);
    let export = |file: &str| place.amplifier(&["sessions", "export", id, "-o", file]);
    assert_eq!(export("copy.md").fine(), "");
    let copy = place.read("workspace/copy.md");
    assert!(copy.ends_with("\nNothing\u{1b}[2J there.\n"), "{copy}");
    assert_eq!(place.amplifier(&["sessions", "export", id]).fine(), copy);
    let mode = std::fs::metadata(place.at("workspace/copy.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    place.write("workspace/mine.md", "mine");
    export("mine.md").check_failed("amplifier: `mine.md` already exists; choose another name");
    std::os::unix::fs::symlink("elsewhere.md", place.at("workspace/link.md")).unwrap();
    export("link.md").check_failed("amplifier: `link.md` already exists; choose another name");
    assert_eq!(
        (place.read("workspace/mine.md").as_str(), place.at("workspace/elsewhere.md").exists()),
        ("mine", false)
    );
    export("no/folder.md").check_failed("amplifier: `no/folder.md`: No such file or directory (os error 2)");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = Place::with(json!([{ "text": "word ".repeat(100_000) }]));
    place.run(&["Talk"]);
    let mut bash = Command::new("bash");
    bash.args([
        "-c",
        "\"$0\" sessions show last | head -n 1; echo \"${PIPESTATUS[0]}\"",
        env!("CARGO_BIN_EXE_amplifier"),
    ]);
    let output = bash.env("AMPLIFIER_HOME", place.at("home")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!((text(output.stdout).as_str(), text(output.stderr).as_str()), ("# Talk\n0\n", ""));
}

#[test]
fn a_conversation_needs_a_terminal() {
    let place = place();
    let explanation = "amplifier: `amplifier chat` needs a terminal; without a terminal, use `amplifier run`";
    for arguments in [&["chat"][..], &["sessions", "resume"], &["sessions", "fork", "last"]] {
        let Ran { code, out, error } = place.amplifier(arguments);
        assert_eq!((code, out.as_str(), error.trim_end()), (1, "", explanation));
    }
    assert_eq!(ids(&place).len(), 2);
}

#[test]
fn a_session_that_a_module_named_is_listed_and_shown_under_its_name() {
    let place = Place::with(json!([{ "text": "It is a test." }]));
    place.write("bundle.yaml", "hooks:\n  - module: hooks-session-naming\n");
    place.run(&[
        "Hi! Could you please explain the parser? It is long.",
        "--bundle",
        place.at("bundle.yaml").to_str().unwrap(),
    ]);
    let list = place.amplifier(&["sessions", "list"]).fine();
    assert!(list.lines().nth(1).unwrap().ends_with("  Explain the parser?"), "{list}");
    let shown = place.amplifier(&["sessions", "show", "last"]).fine();
    assert!(shown.starts_with("# Explain the parser?\n"), "{shown}");
    let json: Value = serde_json::from_str(&place.amplifier(&["sessions", "list", "--json"]).fine()).unwrap();
    assert_eq!(json["title"], "Hi! Could you please explain the parser? It is long.");
    assert_eq!(json["name"], "Explain the parser?");
}

#[test]
fn all_records_of_a_model_call_take_at_most_3_kib_in_a_long_conversation() {
    let read = |n: usize| json!({ "text": format!("Step {n}: I look at the next file."), "tools": [{ "name": "Read", "input": { "file_path": "notes.txt" } }] });
    let place = Place::with((0..50).map(read).chain([json!({ "text": "Done." })]).collect());
    place.write("workspace/notes.txt", "short content\n");
    assert_eq!(place.run(&["Look"]).code, 0);
    let segment = std::fs::read_to_string(place.at("home/audit/seg-000001.jsonl")).unwrap();
    let mut calls: Vec<usize> = Vec::new();
    for line in segment.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let is_new = record["event"] == "provider:request" && record["kind"] == "event";
        calls.extend(is_new.then_some(0));
        if let (Some(call), Some("provider:request" | "provider:response")) =
            (calls.last_mut(), record["event"].as_str())
        {
            *call += line.len() + 1;
        }
    }
    // The last ones have a hundred messages before them.
    let (whole, long) = (calls.iter().sum::<usize>() / calls.len(), calls.split_off(40));
    println!("{whole} bytes a call, {long:?} in the last ones");
    assert!(long.len() == 11 && long.iter().all(|call| *call <= 3 << 10), "{long:?}");
    assert!(place.amplifier(&["audit", "verify"]).fine().starts_with("sound: "));
}
