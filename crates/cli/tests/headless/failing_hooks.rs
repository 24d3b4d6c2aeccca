//! Hooks that fail: the user is told, in the terminal and in JSON, and a hook of a bundle denies where an operation waits for it.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::common::Place;

/// A server that treats every connection in this way, as long as the test runs.
fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            // The request is read first: closing with unread bytes would reset the connection.
            let _ = connection.read(&mut [0; 65536]);
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/hook")
}

/// A place where the model reads a file twice.
fn place() -> Place {
    let read = json!({ "tools": [{ "name": "Read", "input": { "file_path": "a.txt" } }] });
    let place = Place::with(json!([read, read, { "text": "Done." }]));
    place.write("workspace/a.txt", "one line\n");
    place
}

/// Ways to fail: the name of the hook, what it is, and what the user reads about it.
fn ways() -> Vec<(&'static str, String, &'static str)> {
    let worker = |script: &str| format!("worker: [sh, -c, '{script}']");
    vec![
        ("exit-code", "command: 'echo broken >&2; exit 3'".to_owned(), "broken"),
        ("crash", "command: 'kill -SEGV $$'".to_owned(), "signal"),
        ("missing", "command: ['./there-is-no-such-program']".to_owned(), "there-is-no-such-program"),
        ("time-out", "command: 'sleep 600'\n    timeout: 0.3".to_owned(), "300ms"),
        ("garbage", "command: 'cat >/dev/null; echo this is no JSON'".to_owned(), "not JSON"),
        ("no-object", "command: 'cat >/dev/null; echo \"[1]\"'".to_owned(), "found a list"),
        ("killed-worker", worker("read -r line; kill -KILL $$"), "worker"),
        ("garbage-worker", worker("while read -r line; do echo garbage; done"), "worker"),
        ("http-500", format!("http: {}", server("HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n")), "500"),
        ("closed", format!("http: {}", server("")), ""),
    ]
}

fn bundle(ways: &[(&'static str, String, &'static str)], settings: &str) -> String {
    let hook =
        |(name, hook, _): &(&str, String, &str)| format!("  - name: {name}\n    on: tool:pre\n{settings}    {hook}\n");
    format!("hooks:\n{}", ways.iter().map(hook).collect::<String>())
}

#[test]
fn every_hook_that_fails_is_told_once_in_the_terminal_and_in_json() {
    let place = place();
    let ways = ways();
    place.write("home/bundle.yaml", &bundle(&ways, "    on_error: continue\n"));
    let ran = place.run(&["--json", "Read it twice"]);
    assert_eq!(ran.code, 0, "{}", ran.error);
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages: Vec<Value> = lines.filter(|line| line["event"] == "display:message").collect();
    for (name, _, cause) in &ways {
        let source = format!("hook:{name}");
        let told: Vec<_> = messages.iter().filter(|message| message["data"]["source"] == *source).collect();
        assert_eq!(told.len(), 1, "{name}: {told:?}\n{}", ran.error);
        let data = &told[0]["data"];
        let text = data["text"].as_str().unwrap();
        assert_eq!(data["level"], "warning");
        assert!(text.starts_with("failed at tool:pre: ") && text.contains(cause), "{name}: {text}");
        assert!(text.ends_with("; the operation went on without this hook"), "{name}: {text}");
        let shown = format!("▲ warning  hook {name}: failed at tool:pre: ");
        assert_eq!(ran.error.matches(&shown).count(), 1, "{name}: {}", ran.error);
    }
    let recorded = place.amplifier(&["audit", "export", "--kind", "message"]).fine();
    for (name, ..) in &ways {
        assert_eq!(recorded.matches(&format!("\"hook:{name}\"")).count(), 1, "{name}: {recorded}");
    }
}

#[test]
fn a_failing_hook_of_a_bundle_denies_by_default_and_is_named_once() {
    for way in ways() {
        let place = place();
        place.write("home/bundle.yaml", &bundle(std::slice::from_ref(&way), ""));
        let ran = place.run(&["Read it"]);
        let name = way.0;
        let result = place.conversation().into_iter().find(|(role, _)| role == "tool").unwrap().1;
        let head = format!("Denied by hook {name}: the hook failed: ");
        assert!(result.starts_with(&head) && result.contains(way.2), "{name}: {result}");
        assert_eq!(result.matches(&format!("hook {name}")).count(), 1, "{name}: {result}");
        assert!(ran.error.contains("; the operation was denied"), "{name}: {}", ran.error);
    }
}

#[test]
fn a_failing_hook_of_a_bundle_lets_go_on_what_has_happened_already() {
    let place = place();
    place.write("home/bundle.yaml", "hooks:\n  - { name: broken, on: 'tool:post', command: 'exit 1' }\n");
    let ran = place.run(&["Read it"]);
    assert_eq!(ran.code, 0, "{}", ran.error);
    assert!(place.conversation().iter().any(|(role, text)| role == "tool" && text.contains("one line")));
    assert!(ran.error.contains("▲ warning  hook broken: failed at tool:post: "), "{}", ran.error);
}

#[test]
fn a_misspelt_denial_denies_whatever_on_error_says() {
    let place = place();
    let hook = r#"cat >/dev/null; echo '{"action": "deny", "reson": "no"}'"#;
    let hooks = json!({ "hooks": [{ "name": "guard", "on": "tool:pre", "on_error": "continue", "command": hook }] });
    place.write("home/bundle.yaml", &hooks.to_string());
    place.run(&["Read it"]);
    let result = place.conversation().into_iter().find(|(role, _)| role == "tool").unwrap().1;
    assert!(result.starts_with("Denied by hook guard: the hook failed: ") && result.contains("reson"), "{result}");
}
