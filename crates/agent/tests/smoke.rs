//! A turn, from end to end.

use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse, ToolSpec};
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_agent::{Session, TurnEnd};
use amplifier_core::{HookRegistry, HookResult, Map, TOOL_POST, TOOL_PRE};
use futures::future::BoxFuture;
use serde_json::json;

struct Echo;

impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "Echo".into(), description: "Says it again".into(), input_schema: json!({ "type": "object" }) }
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(input["text"].as_str().unwrap_or_default())) })
    }
}

#[tokio::test]
async fn a_turn_uses_a_tool_and_answers() {
    let script = Script::new([
        ScriptedResponse::text("Wait.").calling("Echo", json!({ "text": "hi" })),
        ScriptedResponse::text("Done."),
    ]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, |_| HookResult::set("tool_input", json!({ "text": "changed" })));
    hooks.on(TOOL_POST, |_| HookResult::inject("look again"));
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(Echo)];
    let session = Session::builder(provider.clone()).hooks(hooks).tools(tools).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Done.".to_owned()));
    session.end("complete").await.unwrap();
    let seen: Vec<_> = provider.requests().pop().unwrap().messages.into_iter().map(|message| message.content).collect();
    assert_eq!(seen, ["go", "Wait.", "changed", "look again"]);
}

#[tokio::test]
async fn an_agent_delegates_to_another() {
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "count" })),
        ScriptedResponse::text("Four."),
    ]);
    script.agents.insert("general".into(), vec![ScriptedResponse::text("It is four.")]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let session = Session::builder(provider.clone()).start().await.unwrap();
    assert_eq!(session.prompt("how many?").await, TurnEnd::Answered("Four.".to_owned()));
    let seen: Vec<_> = provider.requests().pop().unwrap().messages.into_iter().map(|message| message.content).collect();
    assert_eq!(seen, ["how many?", "", "It is four."]);
}
