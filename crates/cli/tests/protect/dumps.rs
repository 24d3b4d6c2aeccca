//! No core dump of the program can be had: it would contain the keys.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::json;

use crate::common::{Place, send_signal};

/// Lifts the limit of a process, as any process of its user can, and has it aborted.
fn abort(mut process: Child) -> ExitStatus {
    let pid = process.id().to_string();
    // It may be refused, which is as good.
    _ = Command::new("prlimit").args(["--core=unlimited:unlimited", "--pid", &pid]).stderr(Stdio::null()).status();
    send_signal("ABRT", process.id());
    process.wait().unwrap()
}

#[test]
fn an_aborted_session_leaves_no_core_dump() {
    let command = json!({ "command": "echo begun > began; sleep 1000" });
    let place = Place::with(json!([{ "tools": [{ "name": "Bash", "input": command }] }]));
    place.rules(json!({ "confirm:*": "allow" }));
    let mut other = Command::new("sleep");
    other.arg("1000").current_dir(place.at("workspace"));
    if !abort(other.spawn().unwrap()).core_dumped() {
        eprintln!("NOT TESTED: this system writes no core dumps of any program");
    }
    let began = place.pipe("workspace/began");
    let mut session = place.scripted(&["run", "Wait"]);
    let session = session.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(began.line(), "begun");
    assert!(!abort(session).core_dumped());
}

#[test]
fn programs_that_a_session_starts_write_no_core_dumps() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "ulimit -Hc; ulimit -Sc" } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    assert_eq!(place.run(&["Look"]).code, 0);
    let said = place.conversation();
    assert!(said.contains(&("tool".to_owned(), "0\n0".to_owned())), "{said:?}");
}
