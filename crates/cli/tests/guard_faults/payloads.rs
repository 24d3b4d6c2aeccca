//! Payloads that no client should send. A call that cannot be understood is denied, with the reason.

use amplifier_guard::Client;
use serde_json::{Value, json};

use super::{FORBIDDEN, check_allowed, check_denied, payload, shell_of, shell_payload};
use crate::guard::{Guarded, text};

/// Replaces the name of the event, in payloads that have one.
fn with_event(mut payload: Value, event: &str) -> Value {
    payload["hook_event_name"] = json!(event);
    payload
}

#[test]
fn a_payload_that_cannot_be_read_denies_in_every_client() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        let whole = shell_payload(client, &guarded.workspace(), "t-1", "ls").to_string().into_bytes();
        let replaced = |bytes: &[u8]| {
            let text = String::from_utf8(whole.clone()).unwrap();
            let (before, after) = text.split_once("ls").unwrap();
            [before.as_bytes(), bytes, after.as_bytes()].concat()
        };
        let deep = shell_payload(client, &guarded.workspace(), "t-1", "DEEP").to_string();
        let deep = deep.replace("\"DEEP\"", &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        for (bytes, expected) in [
            (Vec::new(), "not a JSON object"),
            (b"[]".to_vec(), "not a JSON object"),
            (b"null".to_vec(), "not a JSON object"),
            (whole[..whole.len() - 1].to_vec(), "not a JSON object"),
            ([&whole[..], b"\0"].concat(), "not a JSON object"),
            ([&whole[..], &whole].concat(), "not a JSON object"),
            (replaced(b"\xff\xfe"), "not a JSON object"),
            (replaced(b"\0"), "not a JSON object"),
            (replaced(b"\xed\xa0\x80"), "not a JSON object"),
            (deep.into_bytes(), "not a JSON object"),
            (b"{}".to_vec(), "no usable field"),
        ] {
            let output = guarded.ask(client, &bytes);
            check_denied(client, &output, expected);
            assert!(text(&output).contains("amplifier guard"), "{}", text(&output));
        }
    }
    guarded.check_log();
}

#[test]
fn an_input_of_another_type_denies_in_every_client() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        for input in [json!(null), json!([]), json!(7), json!("rm -rf /"), json!([{ "command": "ls" }])] {
            let payload = payload(client, &guarded.workspace(), "t-1", shell_of(client), &input).to_string();
            check_denied(client, &guarded.ask(client, payload.as_bytes()), "no usable field");
        }
    }
}

#[test]
fn ten_megabytes_are_decided_and_recorded_in_every_client() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        let (allowed, denied) = (format!("t-large-{client}"), format!("t-denied-{client}"));
        let input = |command: &str| json!({ "command": command, "description": "x".repeat(10 << 20) });
        for (id, command) in [(&allowed, "ls"), (&denied, FORBIDDEN)] {
            let payload = payload(client, &guarded.workspace(), id, shell_of(client), &input(command)).to_string();
            let output = guarded.ask(client, payload.as_bytes());
            match command {
                FORBIDDEN => check_denied(client, &output, "no-force-push"),
                _ => check_allowed(client, &output),
            }
        }
    }
    guarded.check_log();
    for client in Client::ALL {
        let intent = format!("\"canary-t-large-{client}\"");
        assert!(guarded.has_record(&[&intent, "\"intent\""]), "{client}");
        guarded.check_denial_recorded(&format!("canary-t-denied-{client}"));
    }
}

#[test]
fn nesting_that_can_be_read_is_decided_in_every_client() {
    let guarded = Guarded::installed();
    let nested: Value = serde_json::from_str(&format!("{}1{}", "[".repeat(100), "]".repeat(100))).unwrap();
    for client in Client::ALL {
        for (command, is_denied) in [("ls", false), (FORBIDDEN, true)] {
            let input = json!({ "command": command, "nested": nested });
            let id = format!("t-nested-{client}-{is_denied}");
            let payload = payload(client, &guarded.workspace(), &id, shell_of(client), &input).to_string();
            let output = guarded.ask(client, payload.as_bytes());
            match is_denied {
                true => check_denied(client, &output, "no-force-push"),
                false => check_allowed(client, &output),
            }
        }
    }
    guarded.check_log();
}

#[test]
fn characters_that_hide_a_command_do_not_hide_it_from_the_rules() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        for hidden in [
            "ls\0; git push --force",
            "\u{202e}git push --force",
            "\u{1b}[2K git push --force",
            "ls\r\ngit push --force",
        ] {
            let payload = shell_payload(client, &guarded.workspace(), "t-1", hidden).to_string();
            check_denied(client, &guarded.ask(client, payload.as_bytes()), "no-force-push");
        }
    }
}

#[test]
fn an_unknown_event_about_a_tool_is_decided_and_any_other_passes() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        let known = shell_payload(client, &guarded.workspace(), &format!("t-unknown-{client}"), FORBIDDEN);
        let unknown = with_event(known, "BeforeEverything").to_string();
        check_denied(client, &guarded.ask(client, unknown.as_bytes()), "no-force-push");
        let mut other = with_event(shell_payload(client, &guarded.workspace(), "t-1", "ls"), "SomethingHappened");
        for key in ["tool_name", "toolName", "tool_input", "toolArgs"] {
            other.as_object_mut().unwrap().remove(key);
        }
        if let Some(input) = other.pointer_mut("/input").and_then(Value::as_object_mut) {
            input.remove("tool");
        }
        let output = guarded.ask(client, other.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{client}: {}", text(&output));
        assert!(output.stderr.is_empty(), "{client}: {}", text(&output));
    }
}

#[test]
fn a_version_that_nobody_measured_is_decided_with_its_unknown_fields() {
    let guarded = Guarded::installed();
    for client in Client::ALL {
        for (command, is_denied) in [("ls", false), (FORBIDDEN, true)] {
            let id = format!("t-version-{client}-{is_denied}");
            let mut payload = shell_payload(client, &guarded.workspace(), &id, command);
            let fields = payload.as_object_mut().unwrap();
            for key in ["version", "client_version", "tool_meta"] {
                fields.insert(key.to_owned(), json!({ "number": "99.0.0", "name": [1, null] }));
            }
            if client == Client::Cursor {
                fields.insert("cursor_version".to_owned(), json!("99.0.0"));
            }
            let output = guarded.ask(client, payload.to_string().as_bytes());
            match is_denied {
                true => check_denied(client, &output, "no-force-push"),
                false => check_allowed(client, &output),
            }
        }
    }
    guarded.check_log();
}
