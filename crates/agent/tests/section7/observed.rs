//! The events that hooks observe: a denial or a change is recorded and has no effect, nobody is asked, and what is injected is part
//! of the next call.

use std::sync::{Arc, Mutex};

use amplifier_agent::provider::{Script, ScriptedFault, ScriptedResponse};
use amplifier_agent::tool::ToolError;
use amplifier_core::{HookResult, Map, TOOL_PRE};
use serde_json::json;

use crate::common::{Run, World, tool};
use crate::section7::gate;

/// A session of two turns in which every observed event but those of faults happens.
fn two_turns() -> World {
    let uses_tool = ScriptedResponse::text("Let me see.").calling("Echo", json!({ "text": "hi" }));
    World::new(Script::new([uses_tool, ScriptedResponse::text("Done."), ScriptedResponse::text("Again.")]))
}

/// A person is asked in the first turn, and agrees.
fn granted() -> World {
    let world = two_turns();
    world.hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("May it?"));
    world
}

/// A person is asked in the first turn, and does not agree.
fn refused() -> World {
    let world = two_turns().person(&["Deny"]);
    world.hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("May it?"));
    world
}

fn broken_tool() -> World {
    let uses_tool = ScriptedResponse::text("").calling("Broken", json!({}));
    let world = World::new(Script::new([uses_tool, ScriptedResponse::text("Done."), ScriptedResponse::text("Again.")]));
    let broken = tool("Broken", &world.inputs, |_| async { Err(ToolError::Failed("it broke".into())) });
    world.tool(broken)
}

fn broken_provider() -> World {
    World::new(Script::new([ScriptedResponse::failing(ScriptedFault::Rejected), ScriptedResponse::text("Done.")]))
}

/// The first turn needs more steps than there are.
fn broken_turn() -> World {
    two_turns().options(|options| options.steps = 1)
}

async fn run(world: World) -> Run {
    world
        .run_by(async |session| {
            let first = session.prompt("go").await;
            session.notify("alert", "look here").await;
            vec![first, session.prompt("again").await]
        })
        .await
}

/// The result of `gate` changes nothing, and is on record.
async fn has_no_effect(event: &str, world: fn() -> World, answer: HookResult, word: &str) {
    let usual = run(world()).await;
    let world = world();
    gate(&world.hooks, event, answer);
    let run = run(world).await;
    // The audit log is looked at below: `saw` leaves it out for an event that never happens.
    assert_eq!(run.saw("no:event"), usual.saw("no:event"));
    let reports = run.records("hook_report", event);
    let of_gate: Vec<_> = reports.iter().filter(|report| report["body"]["hook"] == "gate").collect();
    assert_eq!(of_gate[0]["body"]["answer"], word);
    let fields = |run: &Run| -> Vec<String> {
        let data = &run.records("event", event)[0]["body"]["data"];
        data.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(fields(&run), fields(&usual), "the record has the data as it was");
}

/// The injection of `gate` is part of the next call, if there is one, and of none before.
async fn inject_reaches_the_next_call(event: &str, world: World) {
    let made = Arc::new(Mutex::new(None));
    let (provider, noted) = (world.provider.clone(), made.clone());
    let inject = move |_| {
        let mut noted = noted.lock().unwrap();
        noted.is_none().then(|| *noted = Some(provider.requests().len())).map(|()| HookResult::inject("mind this"))
    };
    world.hooks.hook(event).named("gate").run(inject).unwrap();
    let run = run(world).await;
    let made = made.lock().unwrap().expect("the event happened");
    let has_it: Vec<bool> =
        run.saw(event).model.iter().map(|call| call.contains(&"system: mind this".into())).collect();
    let expected: Vec<bool> = (0..has_it.len()).map(|call| call >= made).collect();
    assert_eq!(has_it, expected, "{made} calls were made before");
}

macro_rules! observed {
    ($($name:ident: $event:literal in $world:ident,)+) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn deny_has_no_effect() {
                has_no_effect($event, $world, HookResult::deny("not now"), "deny").await;
            }

            #[tokio::test]
            async fn modify_has_no_effect() {
                has_no_effect($event, $world, HookResult::modify(Map::new()), "modify").await;
            }

            #[tokio::test]
            async fn inject_is_part_of_the_next_call_if_there_is_one() {
                inject_reaches_the_next_call($event, $world()).await;
            }

            #[tokio::test]
            async fn ask_asks_nobody() {
                has_no_effect($event, $world, HookResult::ask("Really?"), "ask_user").await;
            }
        }
    )+};
}

observed! {
    session_end: "session:end" in two_turns,
    prompt_complete: "prompt:complete" in two_turns,
    orchestrator_complete: "orchestrator:complete" in two_turns,
    execution_start: "execution:start" in two_turns,
    execution_complete: "execution:complete" in two_turns,
    user_notification: "user:notification" in two_turns,
    error_tool: "error:tool" in broken_tool,
    error_provider: "error:provider" in broken_provider,
    error_orchestration: "error:orchestration" in broken_turn,
    approval_required: "approval:required" in granted,
    approval_granted: "approval:granted" in granted,
    approval_denied: "approval:denied" in refused,
}
