//! `provider:request` and `provider:response`.

use std::sync::{Arc, Mutex};

use amplifier_agent::Orchestrator;
use amplifier_core::{HookResult, Injection, PROVIDER_RESPONSE};
use serde_json::{Value, json};

use crate::common::{ORCHESTRATORS, World, texts};
use crate::section7::{Cell, gate, one_tool, refused};

/// The history of a turn that ended with a refusal: the next turn begins with a prompt again.
fn says_why(reason: &str) -> Vec<String> {
    vec!["user: go".to_owned(), format!("assistant: Denied by hook gate: {reason}")]
}

mod request {
    use super::*;

    const EVENT: &str = "provider:request";

    #[tokio::test]
    async fn deny_and_no_call_is_made_and_the_turn_says_why() {
        Cell::deny(EVENT)
            .check(|saw| {
                refused(saw, "refused: Denied by hook gate: not now");
                saw.history = says_why("not now");
                saw.audit = texts(&["deny by gate: not now"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_messages_of_this_call_alone() {
        Cell::modify(EVENT, "messages", json!([{ "role": "user", "content": "walk" }]))
            .check(|saw| {
                saw.model[0] = texts(&["user: walk"]);
                saw.audit = texts(&["modify", "intent", "continue", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_parameters_of_this_call_alone() {
        let cell = Cell::modify(EVENT, "parameters", json!({ "temperature": 0.5 }));
        cell.clone().check(|saw| saw.audit = texts(&["modify", "intent", "continue", "intent"])).await;
        let parameters: Vec<Value> = cell.run().await.requests.into_iter().map(|call| call.parameters.into()).collect();
        assert_eq!(parameters, [json!({ "temperature": 0.5 }), json!({})]);
    }

    #[tokio::test]
    async fn modify_and_inject_at_the_same_event_both_count() {
        let changes =
            [("messages", json!([{ "role": "user", "content": "walk" }])), ("parameters", json!({ "max_tokens": 7 }))];
        let world = World::new(one_tool());
        for (field, value) in changes {
            gate(&world.hooks, EVENT, HookResult::set(field, value));
        }
        gate(&world.hooks, EVENT, HookResult::inject("mind this"));
        let run = world.run(&["go"]).await;
        assert_eq!(run.saw(EVENT).model[0], ["user: walk", "system: mind this"]);
        assert_eq!(Value::from(run.requests[0].parameters.clone()), json!({ "max_tokens": 7 }));
        // Changes apply to one call; injections stay.
        let later = ["user: go", "system: mind this", "assistant: Let me see. [call-1]", "tool: hi"];
        assert_eq!(run.saw(EVENT).model[1], later);
    }

    #[tokio::test]
    async fn inject_is_part_of_this_call() {
        Cell::inject(EVENT)
            .check(|saw| {
                saw.model.iter_mut().for_each(|request| request.insert(1, "system: mind this".into()));
                saw.history.insert(1, "system: mind this".into());
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "intent", "continue", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn inject_for_one_call_is_part_of_this_call_alone_and_never_of_the_history() {
        Cell::new(EVENT, HookResult::inject(Injection::new("mind this").ephemeral()))
            .check(|saw| {
                saw.model[0].push("system: mind this".into());
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "intent", "continue", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn inject_says_where_it_came_from() {
        let run = Cell::inject(EVENT).run().await;
        let metadata = &run.requests[0].messages[1].metadata;
        let origin = ["source", "hook_name", "event"].map(|field| metadata.get(field).and_then(Value::as_str));
        assert_eq!(origin, [Some("hook"), Some("gate"), Some(EVENT)]);
        assert!(metadata["timestamp"].is_string());
    }

    #[tokio::test]
    async fn ask_and_allow_makes_the_call() {
        Cell::ask(EVENT, "Allow")
            .check(|saw| {
                saw.asked = texts(&["gate at provider:request: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "intent", "continue", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_and_no_call_is_made() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                refused(saw, "refused: Denied by hook gate: User denied: Really?");
                saw.history = says_why("User denied: Really?");
                saw.asked = texts(&["gate at provider:request: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
            })
            .await;
    }
}

mod response {
    use super::*;

    const EVENT: &str = "provider:response";

    #[tokio::test]
    async fn deny_withholds_the_response() {
        Cell::deny(EVENT)
            .check(|saw| {
                refused(saw, "refused: Denied by hook gate: not now");
                saw.model = vec![texts(&["user: go"])];
                saw.history = says_why("not now");
                saw.audit = texts(&["deny by gate: not now", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_text_before_display_and_history() {
        Cell::modify(EVENT, "content", json!("Changed."))
            .check(|saw| {
                saw.model[1][1] = "assistant: Changed. [call-1]".into();
                saw.watched[0] = "text Changed.".into();
                saw.history[1] = "assistant: Changed. [call-1]".into();
                saw.audit = texts(&["modify", "outcome", "continue", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_of_the_last_response_reaches_whoever_asked_and_every_event_after_it() {
        for orchestrator in ORCHESTRATORS {
            let world = World::new(one_tool()).orchestrator(orchestrator);
            let change = |event: amplifier_core::Event<amplifier_core::ProviderResponse>| {
                (event.content() == Some("Done.")).then(|| HookResult::set("content", "Changed."))
            };
            world.hooks.hook(PROVIDER_RESPONSE).named("gate").run(change);
            let run = world.run(&["go"]).await;
            let saw = run.saw(EVENT);
            assert_eq!(saw.ends, ["answered: Changed."]);
            assert_eq!(saw.watched.last().unwrap(), "text Changed.");
            assert_eq!(saw.history.last().unwrap(), "assistant: Changed.");
            assert_eq!(run.events("execution:complete")[0]["response"], "Changed.");
            assert_eq!(run.events("orchestrator:complete")[0]["final_message"]["content"], "Changed.");
            assert_eq!(run.events("prompt:complete")[0]["response"], "Changed.");
        }
    }

    #[tokio::test]
    async fn modify_that_redacts_leaves_nothing_of_the_text_on_disk() {
        for orchestrator in ORCHESTRATORS {
            let cell = Cell::modify(EVENT, "content", json!("Changed."));
            let run = cell.world().orchestrator(orchestrator).run(&["go"]).await;
            assert!(!run.files.contains("Let me see."), "in {}", orchestrator.as_str());
        }
    }

    #[tokio::test]
    async fn nothing_is_shown_before_a_gate_has_spoken() {
        for orchestrator in ORCHESTRATORS {
            let world = World::new(one_tool()).orchestrator(orchestrator);
            let (screen, before) = (world.screen.clone(), Arc::new(Mutex::new(Vec::new())));
            let noted = before.clone();
            world.hooks.on(PROVIDER_RESPONSE, move |_| noted.lock().unwrap().push(screen.pieces()));
            world.run(&["go"]).await;
            let before = before.lock().unwrap().clone();
            assert_eq!(before[0], [""; 0], "{}", orchestrator.as_str());
            assert_eq!(before[1].concat(), "Let me see.", "{}", orchestrator.as_str());
        }
    }

    #[tokio::test]
    async fn text_is_shown_as_it_comes_when_nobody_can_change_it() {
        for (orchestrator, expected) in [
            (Orchestrator::Basic, &["Let me see.", "Done."][..]),
            (Orchestrator::Streaming, &["Let ", "me ", "see.", "Done."]),
        ] {
            let world = World::new(one_tool()).orchestrator(orchestrator);
            let screen = world.screen.clone();
            world.run(&["go"]).await;
            assert_eq!(screen.pieces(), expected);
        }
    }

    #[tokio::test]
    async fn inject_is_part_of_the_next_call_and_not_between_a_call_and_its_result() {
        for orchestrator in ORCHESTRATORS {
            let mut saw = Cell::inject(EVENT).world().orchestrator(orchestrator).run(&["go"]).await.saw(EVENT);
            // On which side of the answer it stands is left open.
            for lines in [&mut saw.model[1], &mut saw.history] {
                let injected = lines.iter().position(|line| line == "system: mind this").expect("it is there");
                assert_ne!(lines[injected - 1], "assistant: Let me see. [call-1]");
                lines.remove(injected);
            }
            let mut expected = crate::section7::usual(one_tool).await;
            expected.audit =
                texts(&["inject_context", "injection of gate: mind this", "outcome", "continue", "outcome"]);
            assert_eq!(saw, expected, "{}", orchestrator.as_str());
        }
    }

    #[tokio::test]
    async fn ask_and_allow_goes_on_with_the_response() {
        Cell::ask(EVENT, "Allow")
            .check(|saw| {
                saw.asked = texts(&["gate at provider:response: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "outcome", "continue", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_withholds_the_response() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                refused(saw, "refused: Denied by hook gate: User denied: Really?");
                saw.model = vec![texts(&["user: go"])];
                saw.history = says_why("User denied: Really?");
                saw.asked = texts(&["gate at provider:response: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?", "outcome"]);
            })
            .await;
    }
}
