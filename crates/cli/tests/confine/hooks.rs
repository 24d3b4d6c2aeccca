//! Hooks that are confined, and those that are not.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::is_possible;
use crate::common::Place;

/// Tries everything that confinement is about, and tells it as the reason of a denial.
const TRIES: &str = r#"
import json, socket, sys

def tried(what):
    try:
        what().close()
        return "yes"
    except OSError:
        return "no"

def reason():
    network = tried(lambda: socket.create_connection(("127.0.0.1", PORT), 5))
    workspace = tried(lambda: open("WORKSPACE/made", "w"))
    elsewhere = tried(lambda: open("ELSEWHERE/made", "w"))
    return f"network {network}, workspace {workspace}, elsewhere {elsewhere}"

if sys.argv[1] == "command":
    print(reason(), file=sys.stderr)
    sys.exit(2)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "result": {"action": "deny", "reason": reason()}}), flush=True)
"#;

/// What a hook says that is confined in this way.
fn tried(kind: &str, confine: &str) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::with(json!([]));
    let program = TRIES
        .replace("PORT", &server.local_addr().unwrap().port().to_string())
        .replace("WORKSPACE", &place.at("workspace").display().to_string())
        .replace("ELSEWHERE", &place.at("elsewhere").display().to_string());
    std::fs::create_dir(place.at("elsewhere")).unwrap();
    place.write("tries.py", &program);
    let bundle = format!(
        "hooks:\n  - {kind}: [python3, tries.py, {kind}]\n    name: tries\n    on: tool:pre\n    on_error: deny\n{confine}"
    );
    place.write("bundle.yaml", &bundle);
    let file = place.at("bundle.yaml").display().to_string();
    let data = r#"{"tool_name": "Glob", "tool_input": {"pattern": "*"}}"#;
    let said = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--json", "--bundle", &file]).fine();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["decision"], &said["denied_by"]), (&json!("deny"), &json!("tries")), "{said}");
    said["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_hook_can_do_what_its_confinement_leaves() {
    if !is_possible(&[]) {
        return;
    }
    let cases = [
        ("", "network yes, workspace yes, elsewhere yes"),
        ("    confine: {}\n", "network no, workspace no, elsewhere no"),
        ("    confine: { network: false, write: none }\n", "network no, workspace no, elsewhere no"),
        ("    confine: { write: temporary }\n", "network no, workspace no, elsewhere no"),
        ("    confine: { network: true }\n", "network yes, workspace no, elsewhere no"),
        ("    confine: { write: workspace }\n", "network no, workspace yes, elsewhere no"),
        ("    confine: { write: all }\n", "network no, workspace yes, elsewhere yes"),
    ];
    for kind in ["command", "worker"] {
        for (confine, expected) in cases {
            assert_eq!(tried(kind, confine), expected, "{kind} {confine}");
        }
    }
}

#[test]
fn a_mistake_in_confine_is_told() {
    let place = Place::with(json!([]));
    let file = place.at("bundle.yaml").display().to_string();
    let check = |hook: &str, problem: &str| {
        place.write("bundle.yaml", &format!("hooks:\n  - {hook}\n    on: tool:pre\n"));
        let ran = place.amplifier(&["hooks", "validate", &file]);
        assert_eq!(ran.code, 1);
        assert!(ran.error.contains(problem), "{}", ran.error);
    };
    check("command: x\n    confine:", "`confine` is empty; write `confine: {}` for no network and no writing");
    check("command: x\n    confine: { netwrok: false }", "unknown key `netwrok`; did you mean `network`?");
    check("command: x\n    confine: { write: some }", "some");
    check("http: http://127.0.0.1:1\n    confine: {}", "`confine` applies to hooks of the kind `command`");
}

/// A linter that tries everything, and finds what it could do.
const LINTER: &str = r#"
import os, socket, tempfile

def tried(what):
    try:
        what().close()
        return "yes"
    except OSError:
        return "no"

network = tried(lambda: socket.create_connection(("127.0.0.1", PORT), 5))
workspace = tried(lambda: open("made", "w"))
temporary = tried(lambda: tempfile.NamedTemporaryFile())
left = sorted(os.listdir(os.environ.get("TMPDIR", "/nowhere"))) if "TMPDIR" in os.environ else "none"
try:
    open(os.path.join(os.environ["TMPDIR"], "left"), "w").close()
except (OSError, KeyError):
    pass
key = "yes" if os.path.getsize("HOME/audit.key") else "no"
print(f"network {network}, workspace {workspace}, temporary {temporary}, found {left}, key {key}")
"#;

/// What the model reads of a linter that is confined in this way, after two writes.
fn linted(config: &str) -> Vec<String> {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let write = |file: &str| json!({ "text": "I write.", "tools": [{ "name": "Write", "input": { "file_path": file, "content": "x" } }] });
    let place = Place::with(json!([write("a.txt"), write("b.txt"), { "text": "Done." }]));
    place.rules(json!({ "confirm:*": "allow" }));
    let linter = LINTER
        .replace("PORT", &server.local_addr().unwrap().port().to_string())
        .replace("HOME", &place.at("home").display().to_string());
    place.write("linter.py", &linter);
    let program = place.at("linter.py").display().to_string();
    place.write(
        "home/bundle.yaml",
        &format!(
            "hooks:\n  - module: hooks-linter\n    config:\n{config}      linters: [{{ name: tries, files: '*.txt', command: [python3, '{program}', '{{file}}'] }}]\n"
        ),
    );
    let ran = place.run(&["Write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let exported = place.amplifier(&["sessions", "export", "last", "--format", "jsonl"]).fine();
    let found = exported.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let (_, said) = line.pointer("/message/content")?.as_str()?.split_once(".txt:\n")?;
        Some(said.to_owned())
    });
    found.collect()
}

#[test]
fn linters_are_confined_unless_that_is_switched_off() {
    if !is_possible(&[]) {
        return;
    }
    let confined = "network no, workspace no, temporary yes, found [], key no";
    assert_eq!(linted(""), [confined; 2]);
    let free = "network yes, workspace yes, temporary yes, found none, key yes";
    assert_eq!(linted("      confine: false\n"), [free; 2]);
    let some = "network yes, workspace yes, temporary yes, found none, key no";
    assert_eq!(linted("      confine: { network: true, write: workspace }\n"), [some; 2]);
}

#[test]
fn a_mistake_in_the_confinement_of_a_module_is_told() {
    let place = Place::with(json!([]));
    let file = place.at("bundle.yaml").display().to_string();
    let check = |module: &str, config: &str, problem: &str| {
        place.write("bundle.yaml", &format!("hooks:\n  - module: {module}\n    config: {config}\n"));
        let ran = place.amplifier(&["hooks", "validate", &file]);
        assert_eq!(ran.code, 1);
        assert!(ran.error.contains(problem), "{}", ran.error);
    };
    check("hooks-linter", "{ confine: true }", "expected sandbox limits, such as `{ network: true }`, or `false`");
    check("hooks-linter", "{ confine: { netwrok: true } }", "unknown option `netwrok`");
    check("hooks-notify", "{ confine: {} }", "`confine` needs a `command`");
}
