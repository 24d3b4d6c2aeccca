//! What goes wrong: who is told, in which form, and by which exit code.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Place, Ran, Running};

/// A bundle with a test that does not hold.
const FAILING: &str = "\
hooks:
  - rule: no
    on: tool:pre
    deny: No.
tests:
  - name: yes
    event: tool:pre
    expect: { decision: continue }
";

/// Runs it where nobody reads what it prints.
fn unread(mut command: Command) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code().unwrap(), out: String::new(), error }
}

/// The same program without a home.
fn without_home(place: &Place, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.env_remove("AMPLIFIER_HOME");
    Running::start(command).end()
}

#[test]
fn a_verdict_keeps_its_exit_code_when_nobody_reads_it() {
    let place = Place::with(json!([{ "error": "rejected" }]));
    place.write("failing.yaml", FAILING);
    let bundle = place.at("failing.yaml").display().to_string();
    for arguments in [vec!["hooks", "test", &bundle], vec!["hooks", "test", "--json", &bundle], vec!["doctor"]] {
        assert_eq!(place.amplifier(&arguments).code, 1, "{arguments:?}");
        assert_eq!(unread(place.command(&arguments)), Ran { code: 1, out: String::new(), error: String::new() });
    }
    assert_eq!(unread(place.scripted(&["run", "Greet me"])).code, 1);
    place.answers(json!([{ "text": "Good morning." }]));
    assert_eq!(unread(place.scripted(&["run", "Greet me"])).code, 0);
    assert_eq!(unread(place.scripted(&["run", "--json", "Greet me"])).code, 0);
}

#[test]
fn what_is_to_be_done_is_done_whether_or_not_anybody_reads_it() {
    let place = Place::with(json!([]));
    assert_eq!(unread(place.command(&["hooks", "new", "command", "new"])).code, 0);
    assert!(place.at("workspace/new/bundle.yaml").exists());
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", FAILING);
    assert_eq!(unread(place.command(&["hooks", "trust", "--yes"])).code, 0);
    assert!(place.amplifier(&["hooks", "trusted", "--json"]).fine().contains("\"is_trusted_now\":true"));
}

#[cfg(target_os = "linux")]
#[test]
fn events_that_cannot_be_written_are_no_success() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.scripted(&["run", "--json", "Greet me"]).stdout(full).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("{\"error\":\"the events cannot be written to standard output: "), "{error}");
    place.check_sealed(1);
}

#[test]
fn programs_read_what_went_wrong_as_json() {
    let place = Place::with(json!([]));
    let check = |arguments: &[&str], code: i32| {
        let ran = place.amplifier(arguments);
        let line: Value = serde_json::from_str(&ran.error).unwrap_or_else(|_| panic!("{arguments:?}: {ran:?}"));
        assert_eq!((ran.code, &line["exit_code"]), (code, &json!(code)), "{arguments:?}");
        assert!(line["error"].as_str().is_some_and(|text| !text.is_empty()), "{line}");
        // The last line of `run` is a result in any case.
        let result = format!("{}\n", json!({ "result": "error", "text": line["error"] }));
        let is_run = arguments[0] == "run" && !line["error"].to_string().contains("unexpected argument");
        assert_eq!(ran.out, if is_run { result } else { String::new() }, "{arguments:?}");
    };
    check(&["run", "--json", "Greet me"], 1);
    check(&["run", "--json", ""], 2);
    check(&["run", "--json", "--approvals", "allow", "Greet me"], 2);
    for (command, code) in [("verify", 4), ("stats", 1), ("show", 1)] {
        check(&["audit", command, "--json", "/nonexistent"], code);
    }
    check(&["hooks", "replay", "--json", "--bundle", "nowhere.yaml"], 4);
    check(&["run", "--json", "--no-such-flag"], 2);
    check(&["sessions", "show", "--json"], 2);
    place.write("home/config.toml", "approvals = 3\n");
    check(&["run", "--json", "Greet me"], 1);
    check(&["doctor", "--json"], 4);
}

#[test]
fn what_needs_no_home_does_without() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    place.run(&["Greet me"]).fine();
    place.write("failing.yaml", FAILING);
    let (log, bundle) = (place.at("home/audit").display().to_string(), place.at("failing.yaml").display().to_string());
    for arguments in [
        vec!["audit", "verify", &log],
        vec!["audit", "show", &log],
        vec!["hooks", "validate", &bundle],
        vec!["hooks", "schema"],
        vec!["hooks", "trace", "last", "--log", &log],
        vec!["events"],
    ] {
        assert!(!without_home(&place, &arguments).fine().is_empty(), "{arguments:?}");
    }
    assert!(!std::path::Path::new("/nonexistent").exists(), "nothing is created for a missing home");
    let missing = "amplifier: no home folder found; set HOME or AMPLIFIER_HOME\n";
    for (arguments, code) in [(["audit", "verify"], 4), (["audit", "stats"], 1), (["hooks", "list"], 1)] {
        let ran = without_home(&place, &arguments);
        assert_eq!((ran.code, ran.error.as_str()), (code, missing), "{arguments:?}");
    }
}

/// What `doctor` says about something, if it is not well.
fn trouble(place: &Place, what: &str) -> Option<String> {
    let mut command = place.scripted(&["doctor", "--json"]);
    command.env("AMPLIFIER_CONFINEMENT", "off");
    let ran = Running::start(command).end();
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == what).unwrap();
    assert_eq!(ran.code, i32::from(report["ok"] != true), "{report}");
    (found["ok"] != true).then(|| found["about"].as_str().unwrap().to_owned())
}

#[test]
fn the_doctor_finds_an_audit_log_that_sessions_cannot_write_to() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    assert_eq!(trouble(&place, "audit log"), None);
    assert!(!place.at("home/audit").exists() && !place.at("home/audit.key").exists());
    place.run(&["Greet me"]).fine();
    let before = place.amplifier(&["audit", "stats", "--json"]).fine();
    assert_eq!(trouble(&place, "audit log"), None);
    // Looking leaves nothing behind.
    assert_eq!(place.amplifier(&["audit", "stats", "--json"]).fine(), before);
    std::fs::rename(place.at("home/audit.key"), place.at("home/elsewhere")).unwrap();
    assert_eq!(place.run(&["Greet me"]).code, 1);
    assert!(trouble(&place, "audit log").unwrap().starts_with("the audit log "));
}

#[test]
fn the_doctor_finds_anchors_that_cannot_work_and_sessions_say_so_once() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    let program = place.at("nowhere").display().to_string();
    for (anchor, problem) in [
        ("\"..\"".to_owned(), "Is a directory"),
        ("{ command = [\"no-such-program\"] }".to_owned(), "program not found"),
        (format!("{{ command = [{program:?}] }}"), "program not found"),
    ] {
        place.write("home/config.toml", &format!("anchors = [{anchor}]\n"));
        let about = trouble(&place, "anchors").unwrap();
        assert!(about.contains("cannot store checkpoints") && about.contains(problem), "{about}");
    }
    place.write("home/config.toml", "anchors = [\"..\"]\n");
    let Ran { code, out, error } = place.run(&["Greet me"]);
    assert_eq!((code, out.as_str()), (0, "Good morning.\n"));
    assert_eq!(error.matches("does not have its newest checkpoint").count(), 1, "{error}");

    // One that works, and is not made by looking at it.
    place.write("home/config.toml", "anchors = [\"deep/anchored\"]\n");
    assert_eq!(trouble(&place, "anchors"), None);
    assert!(!place.at("home/deep").exists());
    place.write("home/config.toml", "anchors = [\"\"]\n");
    place.amplifier(&["doctor"]).check_unchecked(&format!(
        "amplifier: the configuration `{}`: an anchor names no file",
        place.at("home/config.toml").display()
    ));
}
