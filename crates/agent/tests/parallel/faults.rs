//! Providers that fail, with tokio's time standing still.

use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedFault, ScriptedResponse};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::{ORCHESTRATORS, Run, World};

fn script(faults: &[ScriptedFault]) -> Script {
    let faults = faults.iter().map(|fault| ScriptedResponse::failing(*fault));
    Script::new(faults.chain([ScriptedResponse::text("Done."), ScriptedResponse::text("Again.")]))
}

/// The fields of every event of that name.
fn fields(run: &Run, event: &str, fields: &[&str]) -> Vec<Vec<Value>> {
    run.events(event).iter().map(|data| fields.iter().map(|field| data[*field].clone()).collect()).collect()
}

/// The number of recorded intents of model calls, and the events of their outcomes.
fn intents_and_outcomes(run: &Run) -> (usize, Vec<Value>) {
    let outcomes = run.audit.iter().filter(|record| {
        record["kind"] == "outcome"
            && ["provider:response", "error:provider"].contains(&record["event"].as_str().unwrap())
    });
    let intents = run.records("intent", "provider:request").len();
    (intents, outcomes.map(|outcome| outcome["event"].clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_cannot_answer_is_asked_again_after_twice_as_long_each_time() {
    for orchestrator in ORCHESTRATORS {
        let begun = Instant::now();
        let world =
            World::new(script(&[ScriptedFault::Unavailable, ScriptedFault::Unavailable])).orchestrator(orchestrator);
        let run = world.run(&["go"]).await;
        assert_eq!(run.saw("").ends, ["answered: Done."]);
        assert_eq!(run.requests.len(), 3);
        assert!(run.requests.iter().all(|request| *request == run.requests[0]), "the same is asked again");
        let retries = fields(&run, "provider:retry", &["provider", "attempt", "delay_ms"]);
        assert_eq!(retries, [[json!("scripted"), json!(1), json!(1000)], [json!("scripted"), json!(2), json!(2000)]]);
        assert!(run.events("provider:retry").iter().all(|retry| retry["error"]["kind"] == "unavailable"));
        assert!(begun.elapsed() >= Duration::from_secs(3));
        assert_eq!(run.events("provider:throttle").len(), 0);
        assert_eq!(run.history.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_to_slow_down_is_asked_again_when_it_said() {
    let begun = Instant::now();
    let run = World::new(script(&[ScriptedFault::Throttled])).run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["answered: Done."]);
    assert_eq!(fields(&run, "provider:throttle", &["provider", "delay_ms"]), [[json!("scripted"), json!(10)]]);
    assert_eq!(fields(&run, "provider:retry", &["attempt", "delay_ms"]), [[json!(1), json!(10)]]);
    assert!(begun.elapsed() >= Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_too_early_is_asked_for_again_and_leaves_nothing_in_the_history() {
    for orchestrator in ORCHESTRATORS {
        let cut_off =
            ScriptedResponse { error: Some(ScriptedFault::Truncated), ..ScriptedResponse::text("Half of it") };
        let world = World::new(Script::new([cut_off, ScriptedResponse::text("All of it.")])).orchestrator(orchestrator);
        let run = world.run(&["go"]).await;
        assert_eq!(run.saw("").ends, ["answered: All of it."]);
        assert_eq!(run.saw("").history, ["user: go", "assistant: All of it."]);
        assert_eq!(run.events("provider:retry")[0]["error"]["kind"], "truncated");
        assert_eq!(run.events("provider:response").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn tools_of_an_answer_that_ends_too_early_do_not_run() {
    let cut_off = ScriptedResponse {
        error: Some(ScriptedFault::Truncated),
        ..ScriptedResponse::text("Half").calling("Echo", json!({ "text": "hi" }))
    };
    let run = World::new(Script::new([cut_off, ScriptedResponse::text("Done.")])).run(&["go"]).await;
    assert_eq!(run.inputs, []);
    assert_eq!(run.events("tool:pre").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_rejected_is_not_sent_again() {
    for orchestrator in ORCHESTRATORS {
        let run = World::new(script(&[ScriptedFault::Rejected])).orchestrator(orchestrator).run(&["go", "again"]).await;
        let saw = run.saw("");
        assert_eq!(saw.ends.len(), 2);
        assert!(saw.ends[0].starts_with("failed: "), "{}", saw.ends[0]);
        assert_eq!(saw.ends[1], "answered: Done.", "the session goes on");
        assert_eq!(run.events("provider:retry").len(), 0);
        let [error] = run.events("error:provider")[..] else { panic!("one call failed") };
        assert_eq!((error.text("provider"), error["error"]["kind"].as_str()), (Some("scripted"), Some("rejected")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_on_failing_is_given_up() {
    let faults = [ScriptedFault::Unavailable, ScriptedFault::Truncated, ScriptedFault::Throttled];
    let run = World::new(script(&faults)).options(|options| options.retries = 2).run(&["go"]).await;
    assert!(run.saw("").ends[0].starts_with("failed: "), "{:?}", run.saw("").ends);
    assert_eq!(run.requests.len(), 3);
    assert_eq!(fields(&run, "provider:retry", &["attempt"]), [[1], [2]]);
    assert_eq!(run.events("error:provider").last().unwrap()["error"]["kind"], "throttled");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_nothing_is_given_up_in_time_and_asked_again() {
    let silent = ScriptedResponse { delay_ms: 3_600_000, ..ScriptedResponse::text("Too late.") };
    let world = World::new(Script::new([silent, ScriptedResponse::text("Done.")]));
    let run = world.options(|options| options.call_timeout = Duration::from_secs(60)).run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["answered: Done."]);
    assert_eq!(run.events("provider:retry")[0]["error"]["kind"], "timed_out");
}

#[tokio::test(start_paused = true)]
async fn every_intent_to_ask_the_model_has_an_outcome_on_record() {
    for fault in
        [ScriptedFault::Unavailable, ScriptedFault::Throttled, ScriptedFault::Truncated, ScriptedFault::Rejected]
    {
        let run = World::new(script(std::slice::from_ref(&fault))).run(&["go"]).await;
        let (intents, outcomes) = intents_and_outcomes(&run);
        assert_eq!(intents, outcomes.len(), "{fault:?}: {outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_whose_model_fails_gives_its_parent_the_failure() {
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "count" })),
        ScriptedResponse::text("Sorry."),
    ]);
    script.agents.insert("general".into(), vec![ScriptedResponse::failing(ScriptedFault::Rejected)]);
    let run = World::new(script).run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["answered: Sorry."]);
    assert_eq!(run.events("agent:complete")[0]["status"], "error");
    assert_eq!(run.events("tool:post")[0]["success"], false);
}
