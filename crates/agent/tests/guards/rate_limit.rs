use std::time::Duration;

use amplifier_agent::TurnEnd;
use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::Speaker;
use amplifier_core::testing::ManualClock;
use serde_json::json;

use super::{Setup, asked, check_problems, echoes};
use crate::common::Run;

/// The results of all tools, as the model read them.
fn results(run: &Run) -> Vec<&str> {
    let results = run.history.iter().filter(|message| message.role == Speaker::Tool);
    results.map(|message| message.content.as_str()).collect()
}

#[tokio::test]
async fn calls_above_the_limit_are_denied_until_there_is_room_again() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ tools: [Ec*], calls: 2, per: 10, action: deny }] }
        ",
    );
    let clock = ManualClock::new();
    let world = setup.world_in(setup.scope().clock(clock.clone()), echoes(7));
    let run = world
        .run_by(async |session| {
            let end = session.prompt("Echo").await;
            clock.advance(Duration::from_secs(5));
            vec![end, session.prompt("Echo").await]
        })
        .await;
    assert_eq!(run.ends.len(), 2);
    let denied =
        "Denied by hook hooks-rate-limit: `Echo` may be used 2 times in 10 s; the next call is possible in 5.0 s";
    assert_eq!(results(&run), ["hello", "hello", denied, denied, denied, denied, denied]);
}

#[tokio::test]
async fn there_is_room_again_after_a_while() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ calls: 2, per: 10, burst: 1, action: deny }] }
        ",
    );
    let clock = ManualClock::new();
    let call = || ScriptedResponse::text("I call.").calling("Echo", json!({ "text": "hello" }));
    let done = || ScriptedResponse::text("Done.");
    let script = Script::new([call(), call(), done(), call(), done()]);
    let run = setup
        .world_in(setup.scope().clock(clock.clone()), script)
        .run_by(async |session| {
            let first = session.prompt("Echo").await;
            clock.advance(Duration::from_secs(5));
            vec![first, session.prompt("Echo").await]
        })
        .await;
    let denied =
        "Denied by hook hooks-rate-limit: `Echo` may be used 2 times in 10 s; the next call is possible in 5.0 s";
    assert_eq!(results(&run), ["hello", denied, "hello"]);
}

#[tokio::test]
async fn calls_wait_for_room_but_not_for_ever() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ calls: 1, per: 10, action: wait, wait: 15 }] }
        ",
    );
    let clock = ManualClock::new();
    let echo = json!({ "text": "hello" });
    let two = ScriptedResponse::text("Two.").calling("Echo", echo.clone()).calling("Echo", echo.clone());
    let script = Script::new([two, ScriptedResponse::text("Done.")]);
    let world = setup.world_in(setup.scope().clock(clock.clone()), script);
    let (run, ()) = tokio::join!(world.run(&["Echo"]), clock.advance_when_waiting(Duration::from_secs(10)));
    assert_eq!(results(&run), ["hello", "hello"]);

    let setup =
        Setup::new("hooks:\n  - module: hooks-rate-limit\n    config: { limits: [{ calls: 1, per: 20, wait: 15 }] }\n");
    let run = setup.world_in(setup.scope().clock(ManualClock::new()), echoes(2)).run(&["Echo"]).await;
    let denied =
        "Denied by hook hooks-rate-limit: `Echo` may be used once in 20 s; the next call is possible in 20.0 s";
    assert_eq!(results(&run), ["hello", denied]);
}

#[tokio::test]
async fn a_person_can_allow_more() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ calls: 1, per: 3600, action: ask }] }
        ",
    );
    let run = setup.world(echoes(4)).person(&["Allow once", "Deny", "Allow always"]).run(&["Echo"]).await;
    let question = "`Echo` may be used once in 3600 s, and this is more. Allow it?";
    assert_eq!(asked(&run), [question; 3]);
    assert_eq!(results(&run).iter().filter(|result| **result == "hello").count(), 3);
}

#[tokio::test]
async fn the_model_has_limits_too_and_sub_agents_share_them() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ model: true, calls: 2, per: 3600, action: deny }, { tools: [Echo], calls: 1, per: 3600, action: deny }] }
        ",
    );
    let echo = || ScriptedResponse::text("I call.").calling("Echo", json!({ "text": "hello" }));
    let mut script = Script::new([
        ScriptedResponse::text("I delegate.").calling("Task", json!({ "task": "help", "agent_name": "helper" })),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("helper".to_owned(), vec![echo(), ScriptedResponse::text("I helped.")]);
    let run = setup.world_in(setup.scope().clock(ManualClock::new()), script).run(&["Work"]).await;
    let refused = "the model may be used 2 times in 3600 s; the next call is possible in 1800.0 s";
    let TurnEnd::Denied(refusal) = &run.ends[0] else { panic!("{:?}", run.ends) };
    assert_eq!((&*refusal.by, refusal.reason.as_str()), ("hooks-rate-limit", refused));
    assert_eq!(run.requests.len(), 2, "one by the agent and one by its helper");
    assert_eq!(run.inputs.len(), 1);

    let mut script = Script::new([
        echo().calling("Task", json!({ "task": "help", "agent_name": "helper" })),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("helper".to_owned(), vec![echo(), ScriptedResponse::text("I helped.")]);
    let setup = Setup::new(
        "hooks:\n  - module: hooks-rate-limit\n    config: { limits: [{ tools: [Echo], calls: 1, per: 3600, action: deny }] }\n",
    );
    let run = setup.world(script).run(&["Work"]).await;
    assert_eq!(run.inputs.iter().filter(|(tool, _)| tool == "Echo").count(), 1);
}

#[tokio::test]
async fn another_session_has_room_of_its_own() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-rate-limit
            config: { limits: [{ calls: 1, per: 3600, action: deny }] }
        ",
    );
    let world = setup.world(echoes(1));
    let hooks = world.hooks.clone();
    assert_eq!(results(&world.run(&["Echo"]).await), ["hello"]);
    let mut other = crate::common::World::new(echoes(1));
    other.recorder = amplifier_core::testing::EventRecorder::watch(&hooks);
    other.hooks = hooks;
    assert_eq!(results(&other.run(&["Echo"]).await), ["hello"]);
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-rate-limit",
        &[
            ("{ limits: [] }", "`limits` is empty: name at least one"),
            ("{ limits: [{ tools: [] }] }", "`limits[0]`: `tools` is empty: name at least one"),
            (
                "{ limits: [{ model: true, tools: [x] }] }",
                "`limits[0]`: `model` and `tools` exclude each other; write two limits",
            ),
            (
                "{ limits: [{ calls: 0 }] }",
                "`limits[0]`: `calls` and `burst` are 1 or more; to forbid a tool, deny it with a rule",
            ),
            ("{ limits: [{ per: 0 }] }", "`limits[0]`: `per` is 0: give a number of seconds above zero"),
            ("{ limits: [{ wait: -5 }] }", "`limits[0]`: `wait` is -5: give a number of seconds above zero"),
            (
                "{ limits: [{ action: drop }] }",
                "`limits[0].action`: unknown variant `drop`, expected one of `deny`, `ask`, `wait`",
            ),
            ("{ timeout: 0 }", "`timeout` is 0: give a number of seconds above zero"),
        ],
    );
}
