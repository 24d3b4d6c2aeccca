//! Sub-agents inherit hooks, approvals, audit and limits: there is no way around a gate by delegating.

use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::ToolOutput;
use amplifier_core::{Approval, Event, HookRegistry, HookResult, OverBudget, TOOL_POST, TOOL_PRE, ToolPost, ToolPre};
use serde_json::json;
use tokio::sync::Notify;

use crate::common::{Run, World, tool};

fn echo(text: &str) -> ScriptedResponse {
    ScriptedResponse::text("").calling("Echo", json!({ "text": text }))
}

fn delegate() -> ScriptedResponse {
    ScriptedResponse::text("").calling("Task", json!({ "task": "count" }))
}

fn script(
    parent: impl IntoIterator<Item = ScriptedResponse>,
    child: impl IntoIterator<Item = ScriptedResponse>,
) -> Script {
    let mut script = Script::new(parent);
    script.agents.insert("general".into(), child.into_iter().collect());
    script
}

/// Asks before `Echo` runs; the answer can last.
fn ask_before_echo(hooks: &HookRegistry) {
    let ask = || HookResult::ask(Approval::new("May it?").options(["Allow always", "Deny always"]));
    let asks = move |event: Event<ToolPre>| (event.tool_name() == "Echo").then(ask);
    hooks.hook(TOOL_PRE).named("asker").run(asks);
}

/// Injects after `Echo` has run.
fn inject_after_echo(hooks: &HookRegistry) {
    let injects = |event: Event<ToolPost>| (event.tool_name() == "Echo").then(|| HookResult::inject("mind this"));
    hooks.hook(TOOL_POST).named("injector").run(injects);
}

#[tokio::test]
async fn hooks_of_the_parent_stand_around_the_tools_of_the_child() {
    let world = World::new(script(
        [delegate(), ScriptedResponse::text("End.")],
        [echo("hi"), ScriptedResponse::text("Denied.")],
    ));
    let denies = |event: Event<ToolPre>| (event.tool_name() == "Echo").then(|| HookResult::deny("no echo"));
    world.hooks.hook(TOOL_PRE).named("gate").run(denies);
    let run = world.run(&["go"]).await;
    assert_eq!(run.inputs, []);
    assert_eq!(
        run.saw("").model[2],
        ["agent general", "user: count", "assistant:  [call-2]", "tool: Denied by hook gate: no echo"]
    );
}

#[tokio::test]
async fn allow_always_given_to_the_parent_counts_in_the_child() {
    let world = World::new(script(
        [echo("a"), delegate(), ScriptedResponse::text("End.")],
        [echo("b"), ScriptedResponse::text("Done.")],
    ));
    let world = world.person(&["Allow always", "Deny always"]);
    ask_before_echo(&world.hooks);
    let run = world.run(&["go"]).await;
    assert_eq!(run.questions.len(), 1);
    assert_eq!(run.inputs.len(), 2);
}

#[tokio::test]
async fn allow_always_given_to_the_child_counts_in_the_parent() {
    let world = World::new(script(
        [delegate(), echo("a"), ScriptedResponse::text("End.")],
        [echo("b"), ScriptedResponse::text("Done.")],
    ));
    let world = world.person(&["Allow always", "Deny always"]);
    ask_before_echo(&world.hooks);
    let run = world.run(&["go"]).await;
    assert_eq!(run.questions.len(), 1);
    assert_eq!(run.inputs.len(), 2);
}

#[tokio::test]
async fn deny_always_given_to_the_parent_counts_in_the_child() {
    let world = World::new(script(
        [echo("a"), delegate(), ScriptedResponse::text("End.")],
        [echo("b"), ScriptedResponse::text("Done.")],
    ));
    let world = world.person(&["Deny always", "Allow always"]);
    ask_before_echo(&world.hooks);
    let run = world.run(&["go"]).await;
    assert_eq!(run.questions.len(), 1);
    assert_eq!(run.inputs, []);
}

#[tokio::test]
async fn the_audit_log_has_the_child_as_a_session_of_its_own_that_is_sealed() {
    let run =
        World::new(script([delegate(), ScriptedResponse::text("End.")], [echo("b"), ScriptedResponse::text("Done.")]))
            .run(&["go"])
            .await;
    assert_eq!((run.report.sealed, run.report.unsealed.len()), (2, 0));
    let [of_task, of_echo] = run.records("event", "tool:pre")[..] else { panic!("two tools are on record") };
    assert_eq!(of_task["session"], run.session.as_str());
    assert_eq!(of_echo["session"], run.events("session:start")[1]["session_id"]);
    assert_ne!(of_echo["session"], of_task["session"]);
}

/// Room for one injection: the first is injected, the second dropped.
async fn one_injection(parent: [ScriptedResponse; 3]) -> Run {
    let world = World::new(script(parent, [echo("b"), ScriptedResponse::text("Done.")]));
    let world = world.config(|config| {
        config.injection_budget_per_turn = Some(3);
        config.over_budget = OverBudget::Drop;
    });
    inject_after_echo(&world.hooks);
    let run = world.run(&["go"]).await;
    let fates: Vec<_> = run.records("injection", "tool:post").iter().map(|one| one["body"]["fate"].clone()).collect();
    assert_eq!(fates, ["injected", "dropped"]);
    run
}

#[tokio::test]
async fn what_the_parent_used_of_the_injection_budget_is_gone_for_the_child() {
    let model = one_injection([echo("a"), delegate(), ScriptedResponse::text("End.")]).await.saw("").model;
    assert_eq!(model[3], ["agent general", "user: count", "assistant:  [call-3]", "tool: b"]);
}

#[tokio::test]
async fn what_the_child_used_of_the_injection_budget_is_gone_for_the_parent() {
    let history = one_injection([delegate(), echo("a"), ScriptedResponse::text("End.")]).await.saw("").history;
    assert!(!history.contains(&"system: mind this".to_owned()), "{history:?}");
}

#[tokio::test]
async fn steps_of_the_child_count_for_the_parent() {
    let world = World::new(script([delegate(), ScriptedResponse::text("End.")], [echo("a"), echo("b"), echo("c")]));
    let run = world.options(|options| options.steps = 3).run(&["go"]).await;
    assert_eq!(run.requests.len(), 3);
    assert_eq!(run.saw("").ends, ["failed: the turn reached its limit of 3 model calls"]);
    assert_eq!(run.events("agent:complete")[0]["status"], "error");
}

#[tokio::test]
async fn stopping_gracefully_lets_the_tool_of_the_child_finish_and_begins_nothing_new() {
    let world = World::new(script(
        [delegate(), ScriptedResponse::text("End.")],
        [ScriptedResponse::text("").calling("Slow", json!({})), ScriptedResponse::text("Done.")],
    ));
    let cancel = world.cancel.clone();
    let slow = tool("Slow", &world.inputs, move |_| {
        cancel.request();
        async { Ok(ToolOutput::text("finished")) }
    });
    let run = world.tool(slow).run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["interrupted"]);
    assert_eq!(run.requests.len(), 2);
    assert_eq!(run.events("tool:post")[0]["tool_result"]["output"], "finished");
    assert_eq!(run.events("agent:complete")[0]["status"], "interrupted");
    assert!(run.own_events().contains(&"cancel:requested") && run.own_events().contains(&"cancel:completed"));
}

#[tokio::test]
async fn stopping_at_once_ends_a_tool_of_the_child_that_would_never_end() {
    let world = World::new(script(
        [delegate(), ScriptedResponse::text("End.")],
        [ScriptedResponse::text("").calling("Endless", json!({})), ScriptedResponse::text("Done.")],
    ));
    let running = Arc::new(Notify::new());
    let begins = running.clone();
    let endless = tool("Endless", &world.inputs, move |_| {
        begins.notify_one();
        std::future::pending()
    });
    let cancel = world.cancel.clone();
    tokio::spawn(async move {
        running.notified().await;
        cancel.request();
        cancel.request();
    });
    let run = world.tool(endless).run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["interrupted"]);
    assert_eq!(run.requests.len(), 2);
    let level = &run.events("cancel:completed").last().unwrap()["level"];
    assert_eq!(level, "immediate");
}

#[tokio::test]
async fn agents_delegate_to_one_another_as_deep_as_is_allowed() {
    let mut script = Script::new([delegate(), ScriptedResponse::text("End.")]);
    script.agents.insert("general".into(), vec![delegate(), ScriptedResponse::text("Alone.")]);
    let run = World::new(script).options(|options| options.depth = 2).run(&["go"]).await;
    assert_eq!(run.events("agent:spawn").len(), 1);
    assert_eq!(run.saw("").ends, ["answered: End."]);
}
