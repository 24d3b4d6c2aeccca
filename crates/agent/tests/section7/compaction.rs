//! `context:pre_compact` and `decision:context_resolution`.

use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_core::{HookResult, Injection};
use serde_json::json;

use crate::common::{Run, World};
use crate::section7::gate;

const EVENT: &str = "context:pre_compact";
const DECISION: &str = "decision:context_resolution";

/// A model that can read 200 tokens.
fn world() -> World {
    let script = Script::new(["A.", "B.", "C.", "D.", "E."].map(ScriptedResponse::text));
    World::with(ScriptedProvider::new(script).with_context_limit(200))
}

/// Three turns. The conversation is too long when the second begins.
async fn three_turns(world: World) -> Run {
    world.run(&[&"and ".repeat(130), &"but ".repeat(25), "third"]).await
}

/// The same with that answer of `gate`.
async fn run(answer: HookResult) -> Run {
    let world = world();
    gate(&world.hooks, EVENT, answer);
    three_turns(world).await
}

/// For each request, whether it asks for a summary and how many messages it has.
fn requests(run: &Run) -> Vec<(bool, usize)> {
    let asks_for_summary = |messages: &[amplifier_core::Message]| {
        messages.last().is_some_and(|message| message.content.contains("has to be shortened"))
    };
    run.requests.iter().map(|request| (asks_for_summary(&request.messages), request.messages.len())).collect()
}

fn decisions(run: &Run) -> Vec<String> {
    run.saw(EVENT).audit
}

#[tokio::test]
async fn no_answer_and_the_conversation_is_shortened_in_the_second_turn() {
    let run = run(HookResult::proceed()).await;
    assert_eq!(run.saw(EVENT).ends, ["answered: A.", "answered: C.", "answered: D."]);
    assert_eq!(requests(&run)[..2], [(false, 1), (true, 2)]);
    assert_eq!(decisions(&run), ["continue"]);
    assert_eq!(run.events("context:post_compact").len(), 1);
    assert!(run.history[0].content.ends_with("B."), "the history begins with the summary");
}

#[tokio::test]
async fn deny_puts_it_off_once_and_then_it_happens() {
    let run = run(HookResult::deny("not now")).await;
    assert_eq!(run.saw(EVENT).ends, ["answered: A.", "answered: B.", "answered: D."]);
    // The second turn sees everything; the third begins with a summary of all but the last messages.
    assert_eq!(requests(&run)[..3], [(false, 1), (false, 3), (true, 3)]);
    assert_eq!(decisions(&run), ["deny by gate: not now", "continue"]);
    assert_eq!(run.events("context:post_compact").len(), 1);
    assert!(run.history[0].content.ends_with("C."));
}

#[tokio::test]
async fn deny_by_a_hook_that_always_denies_puts_it_off_once() {
    let world = world();
    world.hooks.hook(EVENT).named("gate").run(|_| HookResult::deny("never")).unwrap();
    let run = three_turns(world).await;
    assert_eq!(requests(&run)[..3], [(false, 1), (false, 3), (true, 3)]);
    assert_eq!(run.events("context:post_compact").len(), 1);
}

#[tokio::test]
async fn modify_changes_the_target() {
    let usual = run(HookResult::proceed()).await;
    let smaller = run(HookResult::set("target_tokens", 15)).await;
    assert_eq!(smaller.records("event", EVENT)[0]["body"]["data"]["target_tokens"], 15);
    assert_eq!(decisions(&smaller), ["modify"]);
    let tokens = |run: &Run| run.events("context:post_compact")[0]["current_tokens"].as_u64().unwrap();
    assert!(tokens(&smaller) < tokens(&usual), "{} < {}", tokens(&smaller), tokens(&usual));
}

#[tokio::test]
async fn inject_is_carried_into_the_compacted_context() {
    let run = run(HookResult::inject("mind this")).await;
    let saw = run.saw(EVENT);
    assert!(saw.history.contains(&"system: mind this".to_owned()), "{:?}", saw.history);
    assert!(saw.model[2].contains(&"system: mind this".to_owned()), "{:?}", saw.model[2]);
    assert_eq!(decisions(&run), ["inject_context", "injection of gate: mind this"]);
}

#[tokio::test]
async fn ask_asks_nobody() {
    for person in ["Allow", "Deny"] {
        let world = world().person(&[person]);
        gate(&world.hooks, EVENT, HookResult::ask("Really?"));
        let run = three_turns(world).await;
        assert_eq!(run.questions.len(), 0);
        assert_eq!(run.events("context:post_compact").len(), 1);
        assert_eq!(run.saw(EVENT).ends, ["answered: A.", "answered: C.", "answered: D."]);
    }
}

#[tokio::test]
async fn a_person_can_have_it_shortened_and_hooks_are_told_who_wanted_it() {
    let world = World::new(Script::new(["A.", "B.", "C."].map(ScriptedResponse::text)));
    let run = world
        .run_by(async |session| {
            let first = session.prompt("one").await;
            session.compact().await.unwrap();
            vec![first, session.prompt("two").await]
        })
        .await;
    assert_eq!(run.saw(EVENT).ends, ["answered: A.", "answered: C."]);
    assert_eq!(run.events(EVENT)[0]["trigger"], json!("manual"));
    assert_eq!(run.events("context:post_compact").len(), 1);
}

#[tokio::test]
async fn what_is_appended_after_shortening_is_what_a_resumed_session_goes_on_with() {
    let script = Script::new(["A.", "B.", "C.", "D."].map(ScriptedResponse::text));
    let world = World::with(ScriptedProvider::new(script).with_context_limit(200));
    let run = world.run_and_resume(&"and ".repeat(150), "go on").await;
    let last = run.saw(EVENT).model.pop().unwrap();
    assert_eq!(run.saw(EVENT).history[..last.len()], last);
}

#[tokio::test]
async fn inject_for_one_call_is_part_of_the_next_call_and_never_of_the_history() {
    let run = run(HookResult::inject(Injection::new("mind this").ephemeral())).await;
    let times = |lines: &[String]| lines.iter().filter(|line| *line == "system: mind this").count();
    let saw = run.saw(EVENT);
    assert_eq!(saw.model.iter().map(|call| times(call)).sum::<usize>(), 1, "{:?}", saw.model);
    assert_eq!(times(&saw.history), 0, "{:?}", saw.history);
}

/// An injection at another event during a compaction.
async fn injected_meanwhile(event: &'static str) -> Run {
    let world = world();
    let (recorder, spoke) = (world.recorder.clone(), AtomicBool::new(false));
    let inject = move |_| {
        let is_shortening = recorder.names().iter().any(|name| name == DECISION || name == EVENT);
        let speaks = (is_shortening || event == DECISION) && !spoke.swap(true, Ordering::Relaxed);
        speaks.then(|| HookResult::inject("mind this"))
    };
    world.hooks.hook(event).named("gate").run(inject).unwrap();
    three_turns(world).await
}

#[tokio::test]
async fn inject_when_the_strategy_is_chosen_has_no_effect() {
    let run = injected_meanwhile(DECISION).await;
    let saw = run.saw(DECISION);
    assert!(!saw.model.iter().chain([&saw.history]).any(|lines| lines.contains(&"system: mind this".to_owned())));
    assert_eq!(saw.audit, ["inject_context"]);
    assert_eq!(run.events("context:post_compact").len(), 1);
}

/// Three turns in which `gate` answers so when the strategy is chosen.
async fn decided(answer: HookResult) -> Run {
    let world = world().person(&["Deny"]);
    gate(&world.hooks, DECISION, answer);
    three_turns(world).await
}

#[tokio::test]
async fn deny_of_the_strategy_means_the_default_one() {
    let run = decided(HookResult::deny("not this way")).await;
    // As without an answer: the second turn begins with a summary.
    assert_eq!(requests(&run)[..2], [(false, 1), (true, 2)]);
    assert_eq!(run.saw(DECISION).audit, ["deny by gate: not this way"]);
    assert_eq!(run.events(EVENT).len(), 1);
    assert_eq!(run.events("context:post_compact").len(), 1);
}

#[tokio::test]
async fn modify_changes_the_strategy() {
    let run = decided(HookResult::set("strategy", "truncate")).await;
    // No summary is asked for.
    assert!(requests(&run).iter().all(|(asks_for_summary, _)| !asks_for_summary), "{:?}", requests(&run));
    assert_eq!(run.saw(DECISION).ends, ["answered: A.", "answered: B.", "answered: C."]);
    assert_eq!(run.history[0].content, "Older messages of the conversation were removed.");
    assert_eq!(run.events("context:post_compact").len(), 1);
}

#[tokio::test]
async fn modify_to_an_unknown_strategy_means_the_default_one() {
    for unknown in [json!("forget everything"), json!(7), json!(null)] {
        let run = decided(HookResult::set("strategy", unknown)).await;
        assert_eq!(requests(&run)[..2], [(false, 1), (true, 2)]);
    }
}

#[tokio::test]
async fn ask_about_the_strategy_asks_nobody() {
    let run = decided(HookResult::ask("Really?")).await;
    assert_eq!(run.questions.len(), 0);
    assert_eq!(requests(&run)[..2], [(false, 1), (true, 2)]);
}

#[tokio::test]
async fn what_is_injected_when_the_summary_has_come_is_not_lost() {
    let saw = injected_meanwhile("provider:response").await.saw(EVENT);
    assert!(saw.model[2].contains(&"system: mind this".to_owned()), "{:?}", saw.model[2]);
}

#[tokio::test]
async fn a_sub_agent_without_tools_is_asked_for_a_summary_too() {
    let task = "and ".repeat(180);
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "count" })),
        ScriptedResponse::text("Four."),
    ]);
    script.agents.insert("general".into(), ["Count the words.", "It is four."].map(ScriptedResponse::text).into());
    let world = World::with(ScriptedProvider::new(script).with_context_limit(200));
    gate(&world.hooks, "agent:spawn", HookResult::set("task", task));
    gate(&world.hooks, "agent:spawn", HookResult::set("config_override", json!({ "tools": [] })));
    let run = world.run(&["go"]).await;
    assert_eq!(run.saw(EVENT).ends, ["answered: Four."]);
    let asks_for_summary: Vec<bool> = requests(&run).into_iter().map(|(asks, _)| asks).collect();
    assert_eq!(asks_for_summary, [false, true, false, false]);
}
