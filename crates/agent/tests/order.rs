//! The events of a turn: which, in which order, and with which data.

mod data;

use amplifier_agent::Orchestrator;
use amplifier_agent::provider::{Script, ScriptedFault, ScriptedResponse};
use amplifier_agent::tool::ToolOutput;
use amplifier_core::{EventData, HookResult, TOOL_PRE};
use serde_json::json;

use crate::common::{ORCHESTRATORS, Run, World, tool};

fn one_tool() -> Script {
    let thinks = ScriptedResponse { thinking: Some("Hm.".into()), ..ScriptedResponse::text("See.") };
    Script::new([thinks.calling("Echo", json!({ "text": "hi" })), ScriptedResponse::text("Done.")])
}

fn one_agent() -> Script {
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "count" })),
        ScriptedResponse::text("Four."),
    ]);
    script.agents.insert("general".into(), vec![ScriptedResponse::text("4")]);
    script
}

/// The events in order; those of sub-agents are indented.
fn order(run: &Run) -> Vec<String> {
    let line = |(name, data): &(String, EventData)| match data.session_id() == Some(&run.session) {
        true => name.clone(),
        false => format!("  {name}"),
    };
    run.events.iter().map(line).collect()
}

const ANSWER_IN_PIECES: [&str; 3] = ["content_block:start", "content_block:delta", "content_block:end"];

#[tokio::test]
async fn a_turn_with_a_tool_in_loop_basic() {
    let run = World::new(one_tool()).orchestrator(Orchestrator::Basic).run(&["go"]).await;
    let expected = [
        "session:start",
        "prompt:submit",
        "execution:start",
        "provider:request",
        "thinking:final",
        "provider:response",
        "decision:tool_resolution",
        "tool:pre",
        "tool:post",
        "provider:request",
        "provider:response",
        "execution:complete",
        "orchestrator:complete",
        "prompt:complete",
        "session:end",
    ];
    assert_eq!(order(&run), expected);
}

#[tokio::test]
async fn a_turn_with_a_tool_in_loop_streaming() {
    let run = World::new(one_tool()).orchestrator(Orchestrator::Streaming).run(&["go"]).await;
    let [start, delta, end] = ANSWER_IN_PIECES;
    let expected = [
        "session:start",
        "prompt:submit",
        "execution:start",
        "provider:request",
        start,
        delta,
        "thinking:delta",
        "thinking:final",
        end,
        start,
        delta,
        end,
        start,
        end,
        "provider:response",
        "decision:tool_resolution",
        "tool:pre",
        "tool:post",
        "provider:request",
        start,
        delta,
        end,
        "provider:response",
        "execution:complete",
        "orchestrator:complete",
        "prompt:complete",
        "session:end",
    ];
    assert_eq!(order(&run), expected);
    let kinds: Vec<_> = run.events("content_block:start").iter().map(|block| block["block_type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "text"]);
    let indexes: Vec<_> = run.events("content_block:end").iter().map(|block| block["index"].clone()).collect();
    assert_eq!(indexes, [0, 1, 2, 0]);
}

#[tokio::test]
async fn a_turn_with_a_sub_agent_in_both_orchestrators() {
    for orchestrator in ORCHESTRATORS {
        let run = World::new(one_agent()).orchestrator(orchestrator).run(&["go"]).await;
        let is_piece = |line: &String| ANSWER_IN_PIECES.contains(&line.trim());
        let order: Vec<String> = order(&run).into_iter().filter(|line| !is_piece(line)).collect();
        let expected = [
            "session:start",
            "prompt:submit",
            "execution:start",
            "provider:request",
            "provider:response",
            "decision:tool_resolution",
            "tool:pre",
            "decision:agent_resolution",
            "agent:spawn",
            "  session:start",
            "  prompt:submit",
            "  execution:start",
            "  provider:request",
            "  provider:response",
            "  execution:complete",
            "  orchestrator:complete",
            "  prompt:complete",
            "  session:end",
            "agent:complete",
            "tool:post",
            "provider:request",
            "provider:response",
            "execution:complete",
            "orchestrator:complete",
            "prompt:complete",
            "session:end",
        ];
        assert_eq!(order, expected, "{}", orchestrator.as_str());
    }
}

#[tokio::test]
async fn a_person_who_is_asked_is_notified_before_and_hooks_hear_of_the_answer_before_the_tool_runs() {
    for (answer, heard) in [("Allow", "approval:granted"), ("Deny", "approval:denied")] {
        let world = World::new(one_tool()).orchestrator(Orchestrator::Basic).person(&[answer]);
        world.hooks.hook(TOOL_PRE).named("gate").run(|_| HookResult::ask("Really?"));
        let run = world.run(&["go"]).await;
        let order = run.own_events();
        let at =
            |name: &str| order.iter().position(|event| *event == name).unwrap_or_else(|| panic!("{name}: {order:?}"));
        assert!(at("approval:required") < at(heard));
        let notifications = run.events("user:notification");
        assert_eq!(notifications[0]["notification_type"], "approval_required");
        assert!(at("user:notification") < at(heard), "{order:?}");
        if answer == "Allow" {
            assert!(at(heard) < at("tool:post"));
        }
    }
}

#[tokio::test]
async fn a_tool_tells_what_it_read_and_wrote() {
    let script = Script::new([ScriptedResponse::text("").calling("Copy", json!({})), ScriptedResponse::text("Done.")]);
    let world = World::new(script).orchestrator(Orchestrator::Basic);
    let copy =
        tool("Copy", &world.inputs, |_| async { Ok(ToolOutput::text("copied").reading("a", 3).writing("b", 4)) });
    let run = world.tool(copy).run(&["go"]).await;
    let own = run.own_events();
    let from_tool: Vec<_> = own.into_iter().skip_while(|event| *event != "tool:pre").take(4).collect();
    let mut sorted = from_tool.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["artifact:read", "artifact:write", "tool:post", "tool:pre"], "{from_tool:?}");
    assert_eq!(
        (&run.events("artifact:read")[0]["path"], &run.events("artifact:read")[0]["bytes"]),
        (&json!("a"), &json!(3))
    );
    assert_eq!(
        (&run.events("artifact:write")[0]["path"], &run.events("artifact:write")[0]["bytes"]),
        (&json!("b"), &json!(4))
    );
}

#[tokio::test]
async fn the_end_of_a_session_counts_what_happened_in_it() {
    let run = World::new(one_tool()).run(&["go"]).await;
    let end = run.events("session:end")[0];
    assert_eq!(end["reason"], "complete");
    assert_eq!((&end["stats"]["total_messages"], &end["stats"]["tool_invocations"]), (&json!(4), &json!(1)));
    let used = |data: &EventData| {
        ["input_tokens", "output_tokens"].iter().map(|field| data["usage"][field].as_u64().unwrap()).sum::<u64>()
    };
    let used: u64 = run.events("provider:response").into_iter().map(used).sum();
    assert_eq!(end["stats"]["total_tokens"], used);
}

#[tokio::test]
async fn a_turn_that_fails_says_so_in_its_last_events() {
    let run = World::new(Script::new([ScriptedResponse::failing(ScriptedFault::Rejected)])).run(&["go"]).await;
    assert_eq!(run.events("execution:complete")[0]["status"], "error");
    assert_eq!(run.events("orchestrator:complete")[0]["status"], "error");
}

#[tokio::test]
async fn a_turn_that_was_stopped_says_so_in_its_last_events() {
    let world = World::new(Script::new([
        ScriptedResponse::text("").calling("Stop", json!({})),
        ScriptedResponse::text("Done."),
    ]));
    let cancel = world.cancel.clone();
    let stop = tool("Stop", &world.inputs, move |_| {
        cancel.request();
        async { Ok(ToolOutput::text("stopping")) }
    });
    let run = world.tool(stop).run(&["go"]).await;
    assert_eq!(run.events("execution:complete")[0]["status"], "interrupted");
    assert_eq!(run.events("orchestrator:complete")[0]["status"], "interrupted");
    assert_eq!(run.events("cancel:requested")[0]["level"], "graceful");
    assert_eq!(run.events("cancel:completed")[0]["level"], "graceful");
}
