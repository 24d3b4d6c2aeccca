//! No output for a denial can be read as permission.

use amplifier_guard::{Change, Client, ClientEvent, Dialect, EventKind, GuardAnswer, HookOutput, answer};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::readers::{Gate, proceeds as reads_as_permission};
use crate::samples;

fn gate(event: &ClientEvent) -> Gate {
    match event.kind {
        EventKind::ToolPre(_) | EventKind::Spawn { .. } => Gate::Tool,
        _ => Gate::Prompt,
    }
}

fn proceeds(event: &ClientEvent, output: &HookOutput) -> bool {
    reads_as_permission(event.client, event.dialect, gate(event), output)
}

/// Returns `true` if the client opens its own dialog after this output of its hook.
fn asks(event: &ClientEvent, output: &HookOutput) -> bool {
    let Ok(stdout) = serde_json::from_str::<Value>(&output.stdout) else { return false };
    let decision = match event.client {
        Client::Claude => stdout.pointer("/hookSpecificOutput/permissionDecision"),
        Client::Gemini => stdout.get("decision"),
        Client::Copilot => stdout.get("permissionDecision"),
        _ => None,
    };
    output.code == 0 && decision == Some(&json!("ask"))
}

fn change(event: &ClientEvent, text: &str) -> Option<Change> {
    match &event.kind {
        EventKind::ToolPre(_) | EventKind::Spawn { .. } => Some(Change::Input(json!({ "command": text }))),
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
            let given = GuardAnswer { denial: Some(reason.clone()), question: None, change, context: context.clone(), messages: messages.clone() };
            let output = answer(event, &given).output;
            prop_assert!(!proceeds(event, &output), "{} {}: {output:?}", event.client, event.name);
            prop_assert!(output.stdout.len() + output.stderr.len() < 64 << 10);
        }
    }

    #[test]
    fn a_question_opens_a_dialog_or_denies(question in any::<String>(), context in prop::collection::vec(any::<String>(), 0..3), is_changed in any::<bool>()) {
        for event in samples::gates() {
            let change = change(event, "echo").filter(|_| is_changed);
            let is_kept = change.is_none();
            let given = GuardAnswer { question: Some(question.clone()), change, context: context.clone(), ..GuardAnswer::default() };
            let reply = answer(event, &given);
            let asks = asks(event, &reply.output);
            prop_assert!(asks || !proceeds(event, &reply.output), "{} {}: {reply:?}", event.client, event.name);
            let has_dialog = event.client.has_dialog() && event.dialect == Dialect::Own && matches!(event.kind, EventKind::ToolPre(_));
            prop_assert_eq!(asks, has_dialog && is_kept, "{} {}", event.client, event.name);
            prop_assert_eq!(reply.losses[0].denies(), !asks);
            let automatic = ClientEvent { mode: Some("auto".to_owned()), ..event.clone() };
            prop_assert!(!proceeds(event, &answer(&automatic, &given).output), "{} {}", event.client, event.name);
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

#[test]
fn every_client_has_a_gate_among_the_samples() {
    for client in Client::ALL {
        for wanted in [Gate::Tool, Gate::Prompt] {
            let found = samples::gates().iter().any(|event| event.client == client && gate(event) == wanted);
            assert!(found, "no sample of {client}: {wanted:?}");
        }
    }
    for wanted in [Gate::Tool, Gate::Prompt] {
        let is_nested = |event: &&ClientEvent| event.client == Client::Copilot && event.dialect == Dialect::Nested;
        assert!(samples::gates().iter().filter(is_nested).any(|event| gate(event) == wanted), "{wanted:?}");
    }
}
