//! `agent:spawn` and `agent:complete`.

use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::{
    AGENT_SPAWN, AgentSpawn, DECISION_AGENT_RESOLUTION, DecisionAgentResolution, Event, HookResult, PROMPT_SUBMIT,
    PromptSubmit,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::common::{Saw, World, texts};
use crate::section7::{Cell, one_agent};

/// The parent reads this instead of what the sub-agent said. Delegating is using a tool, so a refusal reads as a failure of it.
fn reads(saw: &mut Saw, success: bool, result: &str) {
    let last = saw.model.last_mut().unwrap();
    last[2] = format!("tool: {result}");
    saw.history[2] = format!("tool: {result}");
    saw.watched[2] = format!("ended call-1 {success}: {result}");
}

fn is_not_spawned(saw: &mut Saw, reason: &str) {
    saw.model.remove(1);
    reads(saw, false, &format!("Error: {reason}"));
}

#[tokio::test]
async fn the_usual_turn_with_a_sub_agent_is_as_the_other_tests_take_it_to_be() {
    let expected = Saw {
        ends: texts(&["answered: Four."]),
        model: vec![
            texts(&["user: go"]),
            texts(&["agent general", "user: count"]),
            texts(&["user: go", "assistant: Let me ask. [call-1]", "tool: It is four."]),
        ],
        watched: texts(&[
            "text Let me ask.",
            r#"begins call-1 {"task":"count"}"#,
            "ended call-1 true: It is four.",
            "text Four.",
        ]),
        history: texts(&["user: go", "assistant: Let me ask. [call-1]", "tool: It is four.", "assistant: Four."]),
        ..Saw::default()
    };
    assert_eq!(crate::section7::usual(one_agent).await, expected);
}

mod spawn {
    use super::*;

    const EVENT: &str = "agent:spawn";

    #[tokio::test]
    async fn deny_and_it_is_not_spawned() {
        Cell::deny(EVENT)
            .script(one_agent)
            .check(|saw| {
                is_not_spawned(saw, "Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_task() {
        let cell = Cell::modify(EVENT, "task", json!("guess")).script(one_agent);
        cell.clone()
            .check(|saw| {
                saw.model[1][1] = "user: guess".into();
                saw.audit = texts(&["modify", "intent"]);
            })
            .await;
        assert_eq!(cell.run().await.events("agent:complete")[0]["task"], "guess");
    }

    #[tokio::test]
    async fn modify_changes_the_configuration() {
        let cell = Cell::modify(EVENT, "config_override", json!({ "tools": ["Echo"] })).script(one_agent);
        cell.clone().check(|saw| saw.audit = texts(&["modify", "intent"])).await;
        let run = cell.run().await;
        let override_of_child = &run.events("session:start")[1]["mount_plan"]["config_override"];
        assert_eq!(override_of_child, &json!({ "tools": ["Echo"] }));
        let tools: Vec<_> = run.requests[1].tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(tools, ["Echo"]);
    }

    #[tokio::test]
    async fn modify_of_the_configuration_that_cannot_be_read_spawns_nothing() {
        let unreadable = [
            json!({ "tools": "Echo" }),
            json!({ "tools": null }),
            json!({ "only": ["Echo"] }),
            json!(5),
            json!([]),
            json!([["Echo"], "You echo."]),
        ];
        for unreadable in unreadable {
            let run = Cell::modify(EVENT, "config_override", unreadable).script(one_agent).run().await;
            assert_eq!(run.events("session:start").len(), 1);
            assert_eq!(run.events("agent:complete")[0]["status"], "error");
        }
    }

    #[tokio::test]
    async fn inject_lands_in_the_context_of_the_child() {
        Cell::inject(EVENT)
            .script(one_agent)
            .check(|saw| {
                saw.model[1].insert(1, "system: mind this".into());
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_spawns_it() {
        Cell::ask(EVENT, "Allow")
            .script(one_agent)
            .check(|saw| {
                saw.asked = texts(&["gate at agent:spawn: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_and_it_is_not_spawned() {
        Cell::ask(EVENT, "Deny")
            .script(one_agent)
            .check(|saw| {
                is_not_spawned(saw, "Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at agent:spawn: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
            })
            .await;
    }
}

mod between {
    use super::*;

    fn two_agents() -> Script {
        let both = ScriptedResponse::text("")
            .calling("Task", json!({ "task": "one", "agent_name": "first" }))
            .calling("Task", json!({ "task": "two", "agent_name": "second" }));
        let mut script = Script::new([both, ScriptedResponse::text("Done.")]);
        for agent in ["first", "second"] {
            script.agents.insert(agent.into(), vec![ScriptedResponse::text(agent)]);
        }
        script
    }

    #[tokio::test]
    async fn each_of_two_children_gets_what_was_injected_for_it() {
        let world = World::new(two_agents());
        let inject = |event: Event<AgentSpawn>| HookResult::inject(format!("for {}", event.agent_name()));
        world.hooks.hook(AGENT_SPAWN).named("gate").run(inject);
        let run = world.run(&["go"]).await;
        let model = run.saw("").model;
        assert!(model.contains(&texts(&["agent first", "system: for first", "user: one"])), "{model:?}");
        assert!(model.contains(&texts(&["agent second", "system: for second", "user: two"])), "{model:?}");
        assert_eq!(model[3], ["user: go", "assistant:  [call-1] [call-2]", "tool: first", "tool: second"]);
    }

    #[tokio::test]
    async fn what_is_injected_elsewhere_while_a_child_is_spawned_does_not_reach_that_child() {
        let world = World::new(two_agents());
        let chosen = Arc::new(Notify::new());
        let (waits, tells) = (chosen.clone(), chosen);
        let spawn = move |event: Event<AgentSpawn>| {
            let waits = (event.agent_name() == "first").then(|| waits.clone());
            async move {
                if let Some(waits) = waits {
                    waits.notified().await;
                }
            }
        };
        // One after the other: then the second one is not chosen meanwhile, and this waits in vain.
        world.hooks.hook(AGENT_SPAWN).named("slow").timeout(Duration::from_millis(100)).run(spawn);
        let choose = move |event: Event<DecisionAgentResolution>| {
            let is_second = event.agent_name() == "second";
            is_second.then(|| tells.notify_one()).map(|()| HookResult::inject("about the second"))
        };
        world.hooks.hook(DECISION_AGENT_RESOLUTION).named("gate").run(choose);
        let run = tokio::time::timeout(Duration::from_secs(90), world.run(&["go"])).await.expect("it hangs");
        let model = run.saw("").model;
        assert!(model.contains(&texts(&["agent first", "user: one"])), "{model:?}");
    }

    #[tokio::test]
    async fn what_is_injected_after_a_spawn_was_stopped_reaches_the_parent() {
        let world = World::new(Script::new([
            ScriptedResponse::text("").calling("Task", json!({ "task": "count" })),
            ScriptedResponse::text("Next."),
        ]));
        let cancel = world.cancel.clone();
        let stop = move |_| {
            cancel.request();
            cancel.request();
            std::future::pending::<()>()
        };
        world.hooks.hook(AGENT_SPAWN).named("slow").run(stop);
        let inject = |event: Event<PromptSubmit>| (event.prompt() == "next").then(|| HookResult::inject("mind this"));
        world.hooks.hook(PROMPT_SUBMIT).named("gate").run(inject);
        let run = tokio::time::timeout(Duration::from_secs(90), world.run(&["go", "next"])).await.expect("it hangs");
        let saw = run.saw("");
        assert_eq!(saw.ends, ["interrupted", "answered: Next."]);
        assert!(saw.model[1].contains(&"system: mind this".to_owned()), "{:?}", saw.model[1]);
    }
}

mod complete {
    use super::*;

    const EVENT: &str = "agent:complete";

    #[tokio::test]
    async fn deny_and_the_parent_gets_the_reason() {
        Cell::deny(EVENT)
            .script(one_agent)
            .check(|saw| {
                reads(saw, false, "Error: Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_result() {
        Cell::modify(EVENT, "result", json!({ "output": "It is five." }))
            .script(one_agent)
            .check(|saw| {
                reads(saw, true, "It is five.");
                saw.audit = texts(&["modify", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn inject_lands_in_the_context_of_the_parent_after_the_result() {
        Cell::inject(EVENT)
            .script(one_agent)
            .check(|saw| {
                saw.model[2].push("system: mind this".into());
                saw.history.insert(3, "system: mind this".into());
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_hands_the_result_on() {
        Cell::ask(EVENT, "Allow")
            .script(one_agent)
            .check(|saw| {
                saw.asked = texts(&["gate at agent:complete: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_and_the_parent_gets_the_reason() {
        Cell::ask(EVENT, "Deny")
            .script(one_agent)
            .check(|saw| {
                reads(saw, false, "Error: Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at agent:complete: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?", "outcome"]);
            })
            .await;
    }
}
