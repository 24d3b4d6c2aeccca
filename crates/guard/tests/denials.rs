//! No output for a denial can be read as permission. The readers here follow the measured behavior of each client, not the code of the adapters.

use amplifier_guard::{Change, Client, ClientEvent, Dialect, EventKind, GuardAnswer, HookOutput, answer};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::samples;

/// Returns `true` if the client runs the tool, or processes the prompt, after this output of its hook.
fn proceeds(event: &ClientEvent, output: &HookOutput) -> bool {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text.trim()).ok();
    let stdout = object(&output.stdout);
    let field = |key: &str| stdout.as_ref().and_then(|fields| fields.get(key)).and_then(Value::as_str);
    let nested = |key: &str| stdout.as_ref()?.get("hookSpecificOutput")?.get(key)?.as_str();
    let is_tool = matches!(event.kind, EventKind::ToolPre(_));
    let has_reason = |reason: Option<&str>| reason.is_some_and(|reason| !reason.trim().is_empty());
    match event.client {
        Client::Claude => {
            let denied =
                if is_tool { nested("permissionDecision") == Some("deny") } else { field("decision") == Some("block") };
            !denied && output.code != 2
        }
        Client::Codex if output.code == 2 => output.stderr.trim().is_empty(),
        Client::Codex if output.code != 0 => true,
        Client::Codex => {
            let known = ["hookSpecificOutput", "systemMessage", "decision", "reason"];
            let is_known = stdout.iter().flat_map(Map::keys).all(|key| known.contains(&key.as_str()));
            let nested_deny =
                nested("permissionDecision") == Some("deny") && has_reason(nested("permissionDecisionReason"));
            !(is_known && (nested_deny || field("decision") == Some("block") && has_reason(field("reason"))))
        }
        Client::Gemini => {
            let text = if output.stdout.trim().is_empty() { &output.stderr } else { &output.stdout };
            match object(text) {
                Some(fields) => !matches!(fields.get("decision").and_then(Value::as_str), Some("deny" | "block")),
                None => output.code < 2 || text.trim().is_empty(),
            }
        }
        Client::Copilot if is_tool => {
            let decision = match event.dialect {
                Dialect::Own => field("permissionDecision"),
                Dialect::Nested => nested("permissionDecision"),
            };
            decision != Some("deny") && output.code == 0
        }
        Client::Copilot => field("decision") != Some("block"),
        Client::Opencode => output.code == 0 && field("decision") == Some("proceed"),
        Client::Cursor => match &stdout {
            _ if output.code == 2 => false,
            None => false,
            Some(fields) if is_tool => fields.get("permission").and_then(Value::as_str) != Some("deny"),
            Some(fields) => fields.get("continue") != Some(&json!(false)),
        },
    }
}

fn change(event: &ClientEvent, text: &str) -> Option<Change> {
    match &event.kind {
        EventKind::ToolPre(_) => Some(Change::Input(json!({ "command": text }))),
        EventKind::Prompt { .. } => Some(Change::Prompt(text.to_owned())),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_denial_is_never_read_as_permission(
        reason in any::<String>(),
        context in prop::collection::vec(any::<String>(), 0..3),
        messages in prop::collection::vec(any::<String>(), 0..3),
        is_changed in any::<bool>(),
    ) {
        for event in samples::gates() {
            let change = change(event, &reason).filter(|_| is_changed);
            let given = GuardAnswer { denial: Some(reason.clone()), change, context: context.clone(), messages: messages.clone() };
            let output = answer(event, &given).output;
            prop_assert!(!proceeds(event, &output), "{} {}: {output:?}", event.client, event.name);
            prop_assert!(output.stdout.len() + output.stderr.len() < 64 << 10);
        }
    }

    #[test]
    fn a_failure_of_the_guard_denies_in_every_client(reason in any::<String>()) {
        for event in samples::gates() {
            let output = HookOutput::failure(&reason);
            prop_assert!(!proceeds(event, &output), "{} {}: {output:?}", event.client, event.name);
        }
    }

    #[test]
    fn a_change_that_a_client_cannot_apply_denies(text in "[a-z]{1,8}") {
        for event in samples::gates() {
            let given = GuardAnswer { change: change(event, &text), ..GuardAnswer::default() };
            let reply = answer(event, &given);
            let is_denied = reply.losses.iter().any(|loss| loss.denies());
            prop_assert_eq!(!proceeds(event, &reply.output), is_denied, "{} {}", event.client, event.name);
            // If it is not denied, the client gets the change.
            prop_assert!(is_denied || reply.output.stdout.contains(&text), "{} {}", event.client, event.name);
        }
    }
}

#[test]
fn the_readers_of_this_test_see_permission_where_it_is() {
    for event in samples::gates() {
        let output = answer(event, &GuardAnswer::default()).output;
        assert!(proceeds(event, &output), "{} {}: {output:?}", event.client, event.name);
    }
}
