//! Tools that are asked for together, tools that fail, and providers that do.

mod cancel;
mod faults;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::{ToolError, ToolOutput};
use amplifier_core::{Event, HookResult, TOOL_PRE, ToolPre};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use crate::common::{Run, World, tool};

/// One answer that calls all of these, then another one.
fn calling(calls: &[(&str, Value)]) -> Script {
    let first =
        calls.iter().fold(ScriptedResponse::text(""), |answer, (name, input)| answer.calling(name, input.clone()));
    Script::new([first, ScriptedResponse::text("Done.")])
}

/// Fails instead of hanging for ever.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(90), future).await.expect("it hangs")
}

/// The calls for which that event happened, in order.
fn calls_of(run: &Run, event: &str) -> Vec<String> {
    run.events(event).iter().map(|data| data.text("tool_call_id").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_that_are_asked_for_together_run_together() {
    let world = World::new(calling(&[("Meet", json!({})), ("Meet", json!({})), ("Meet", json!({}))]));
    let barrier = Arc::new(Barrier::new(3));
    let meet = tool("Meet", &world.inputs, move |_| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(ToolOutput::text("met"))
        }
    });
    let run = in_time(world.tool(meet).run(&["go"])).await;
    assert_eq!(
        run.saw("").model[1],
        ["user: go", "assistant:  [call-1] [call-2] [call-3]", "tool: met", "tool: met", "tool: met"]
    );
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls_whichever_tool_is_done_first() {
    let world = World::new(calling(&[("First", json!({})), ("Second", json!({}))]));
    let second_is_done = Arc::new(Notify::new());
    let (waits, tells) = (second_is_done.clone(), second_is_done);
    let first = tool("First", &world.inputs, move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Ok(ToolOutput::text("one"))
        }
    });
    let second = tool("Second", &world.inputs, move |_| {
        let tells = tells.clone();
        async move {
            tells.notify_one();
            Ok(ToolOutput::text("two"))
        }
    });
    let run = in_time(world.tool(first).tool(second).run(&["go"])).await;
    assert_eq!(run.saw("").model[1][2..], ["tool: one", "tool: two"]);
    assert_eq!(calls_of(&run, "tool:pre"), ["call-1", "call-2"]);
    assert_eq!(calls_of(&run, "tool:post"), ["call-1", "call-2"]);
    let results: Vec<_> = run.history[2..4].iter().map(|message| message.tool_call_id.clone().unwrap()).collect();
    assert_eq!(results, ["call-1", "call-2"]);
}

#[tokio::test]
async fn hooks_of_tools_that_run_together_run_one_at_a_time_in_the_order_of_the_calls() {
    let echo = |text: &str| ("Echo", json!({ "text": text }));
    let world = World::new(calling(&[echo("a"), echo("b"), echo("c")]));
    let inside = Arc::new(AtomicUsize::new(0));
    for event in ["decision:tool_resolution", "tool:pre", "tool:post"] {
        let inside = inside.clone();
        let slow = move |_| {
            let inside = inside.clone();
            async move {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "another hook runs");
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        };
        // A hook that fails denies, so that the assertion above is not overlooked.
        world.hooks.hook(event).named("slow").on_error(amplifier_core::OnError::Deny).run(slow).unwrap();
    }
    let run = in_time(world.run(&["go"])).await;
    assert_eq!(run.saw("").model[1][2..], ["tool: a", "tool: b", "tool: c"]);
    for event in ["decision:tool_resolution", "tool:pre", "tool:post"] {
        assert_eq!(calls_of(&run, event), ["call-1", "call-2", "call-3"], "{event}");
    }
}

#[tokio::test]
async fn a_tool_that_is_denied_does_not_keep_the_others_from_running() {
    let echo = |text: &str| ("Echo", json!({ "text": text }));
    let world = World::new(calling(&[echo("a"), echo("b"), echo("c")]));
    let denies = |event: Event<ToolPre>| (event.tool_input()["text"] == "b").then(|| HookResult::deny("no b"));
    world.hooks.hook(TOOL_PRE).named("gate").run(denies);
    let run = world.run(&["go"]).await;
    assert_eq!(run.saw("").model[1][2..], ["tool: a", "tool: Denied by hook gate: no b", "tool: c"]);
    assert_eq!(run.inputs.len(), 2);
}

#[tokio::test]
async fn injections_of_tools_that_run_together_follow_all_their_results() {
    let echo = |text: &str| ("Echo", json!({ "text": text }));
    let world = World::new(calling(&[echo("a"), echo("b")]));
    let injects =
        |event: Event<ToolPre>| HookResult::inject(format!("about {}", event.tool_input()["text"].as_str().unwrap()));
    world.hooks.hook(TOOL_PRE).named("gate").run(injects);
    let run = world.run(&["go"]).await;
    assert_eq!(run.saw("").model[1][2..], ["tool: a", "tool: b", "system: about a", "system: about b"]);
}

/// Runs a tool that fails beside one that does not, and looks at what becomes of it.
async fn failing(world: World) -> Run {
    let run = in_time(world.run(&["go"])).await;
    let saw = run.saw("");
    assert_eq!(saw.ends, ["answered: Done."]);
    assert_eq!(saw.model[1].last().unwrap(), "tool: hi", "the other tool ran");
    let [error] = run.events("error:tool")[..] else { panic!("one tool failed") };
    assert_eq!(error.text("tool_name"), Some(run.events("tool:post")[0]["tool_name"].as_str().unwrap()));
    let successes: Vec<_> = run.events("tool:post").iter().map(|post| post["success"].clone()).collect();
    assert_eq!(successes, [false, true]);
    let outcomes: Vec<_> =
        run.records("outcome", "tool:post").iter().map(|one| one["body"]["success"].clone()).collect();
    assert_eq!(outcomes, [false, true]);
    run
}

#[tokio::test]
async fn a_tool_that_fails_tells_the_model_why() {
    let world = World::new(calling(&[("Broken", json!({})), ("Echo", json!({ "text": "hi" }))]));
    let broken = tool("Broken", &world.inputs, |_| async { Err(ToolError::Failed("it broke".into())) });
    let run = failing(world.tool(broken)).await;
    assert_eq!(run.saw("").model[1][2], "tool: Error: it broke");
}

#[tokio::test]
async fn a_tool_that_panics_fails() {
    let world = World::new(calling(&[("Bad", json!({})), ("Echo", json!({ "text": "hi" }))]));
    let bad = tool("Bad", &world.inputs, |_| async { panic!("it fell over") });
    let run = failing(world.tool(bad)).await;
    assert!(run.saw("").model[1][2].starts_with("tool: Error: "), "{:?}", run.saw("").model[1][2]);
}

#[tokio::test]
async fn a_tool_that_is_not_there_fails() {
    let world = World::new(calling(&[("Nothing", json!({})), ("Echo", json!({ "text": "hi" }))]));
    let run = failing(world).await;
    assert!(run.saw("").model[1][2].contains("Nothing"), "{:?}", run.saw("").model[1][2]);
}

#[tokio::test]
async fn input_that_is_no_object_fails_and_the_tool_does_not_run() {
    for input in [json!("text"), json!([1]), json!(7), json!(true)] {
        let world = World::new(calling(&[("Echo", input.clone()), ("Echo", json!({ "text": "hi" }))]));
        let run = in_time(world.run(&["go"])).await;
        let saw = run.saw("");
        assert_eq!(saw.ends, ["answered: Done."]);
        assert_eq!(saw.model[1][2], format!("tool: Error: invalid input of `Echo`: expected an object, not {input}"));
        assert_eq!(saw.model[1][3], "tool: hi", "the other tool ran");
        assert_eq!(saw.tool, [r#"Echo {"text":"hi"}"#]);
    }
}

#[tokio::test]
async fn no_input_at_all_is_an_empty_object() {
    let run = World::new(calling(&[("Echo", Value::Null)])).run(&["go"]).await;
    assert_eq!(run.saw("").tool, ["Echo {}"]);
    assert_eq!(run.events("tool:pre")[0]["tool_input"], json!({}));
}

#[tokio::test]
async fn a_result_without_text_reaches_the_model_as_json() {
    let world = World::new(calling(&[("Data", json!({}))]));
    let data = tool("Data", &world.inputs, |_| async { Ok(ToolOutput::default().with("rows", 3)) });
    let run = world.tool(data).run(&["go"]).await;
    assert_eq!(run.saw("").model[1][2], r#"tool: {"rows":3}"#);
}
