//! Stopping a turn: nothing is left without an end on record.

use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::ToolOutput;
use serde_json::json;
use tokio::sync::Notify;

use crate::common::{World, tool};
use crate::parallel::in_time;

#[tokio::test]
async fn stopping_gracefully_lets_the_running_tool_finish() {
    let world = World::new(Script::new([
        ScriptedResponse::text("").calling("Stop", json!({})),
        ScriptedResponse::text("Done."),
    ]));
    let cancel = world.cancel.clone();
    let stop = tool("Stop", &world.inputs, move |_| {
        cancel.request();
        async { Ok(ToolOutput::text("finished")) }
    });
    let run = in_time(world.tool(stop).run(&["go"])).await;
    assert_eq!(run.saw("").ends, ["interrupted"]);
    assert_eq!(run.requests.len(), 1);
    assert_eq!(run.history[2].content, "finished");
}

#[tokio::test]
async fn stopping_at_once_ends_a_tool_and_gives_its_call_a_result() {
    let world = World::new(Script::new([
        ScriptedResponse::text("").calling("Endless", json!({})),
        ScriptedResponse::text("Done."),
        ScriptedResponse::text("Next."),
    ]));
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
    let run = in_time(world.tool(endless).run(&["go", "next"])).await;
    assert_eq!(run.saw("").ends, ["interrupted", "answered: Done."]);
    let results = run.history.iter().filter(|message| message.tool_call_id.as_deref() == Some("call-1"));
    assert_eq!(results.count(), 1, "the model never sees a call without a result");
}

#[tokio::test]
async fn stopping_while_the_model_is_asked_ends_the_call() {
    let slow = ScriptedResponse { delay_ms: 3_600_000, ..ScriptedResponse::text("Never.") };
    let world = World::new(Script::new([slow, ScriptedResponse::text("Next.")]));
    let (cancel, recorder) = (world.cancel.clone(), world.recorder.clone());
    tokio::spawn(async move {
        while !recorder.names().contains(&"provider:request".to_owned()) {
            tokio::task::yield_now().await;
        }
        cancel.request();
        cancel.request();
    });
    let run = in_time(world.run(&["go", "next"])).await;
    assert_eq!(run.saw("").ends, ["interrupted", "answered: Next."]);
}
