//! Tools that are used outside of a turn: hooks stand around them all the same.

use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse, ToolSpec};
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_agent::{Session, Store, TurnEnd};
use amplifier_core::{
    DataChange, HookRegistry, HookResult, Injection, Map, Message, Speaker, TOOL_POST, TOOL_PRE, data,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Says what it is told, and fails on request.
struct Echo;

impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "Echo".to_owned(), description: String::new(), input_schema: json!({ "type": "object" }) }
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        async move {
            match input.get("text").and_then(Value::as_str) {
                Some(text) => Ok(ToolOutput::text(text)),
                None => Err(ToolError::Failed("nothing to say".to_owned())),
            }
        }
        .boxed()
    }
}

async fn session(hooks: HookRegistry, answers: impl IntoIterator<Item = ScriptedResponse>) -> Session {
    let provider = ScriptedProvider::new(Script::new(answers));
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(Echo)];
    Session::builder(Arc::new(provider)).hooks(hooks).tools(tools).start().await.unwrap()
}

fn says(text: &str) -> Map {
    data! { "text": text }.into()
}

#[tokio::test]
async fn the_conversation_has_the_call_its_result_and_what_hooks_inject_behind_it() {
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, |_| HookResult::inject(Injection::new("before")));
    hooks.on(TOOL_POST, |_| HookResult::inject(Injection::new("after")));
    let session = session(hooks, [ScriptedResponse::text("Go on.")]).await;

    let used = session.execute_tool("Echo", says("hello")).await;
    assert!(used.success);
    assert_eq!((used.result, used.text.as_str()), (Some(json!({ "output": "hello" })), "hello"));

    let history = session.history();
    let said: Vec<(Speaker, &str)> = history.iter().map(|one| (one.role, one.content.as_str())).collect();
    let system = Speaker::System;
    assert_eq!(said, [(Speaker::Assistant, ""), (Speaker::Tool, "hello"), (system, "before"), (system, "after")]);
    assert_eq!(history[0].tool_calls[0].id, used.id);
    assert_eq!(history[1].tool_call_id.as_deref(), Some(used.id.as_str()));
    // A turn goes on from there.
    assert_eq!(session.prompt("and now?").await, TurnEnd::Answered("Go on.".to_owned()));
}

#[tokio::test]
async fn a_denied_tool_does_not_run() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::deny("not today"));
    let session = session(hooks, []).await;
    let used = session.execute_tool("Echo", says("hello")).await;
    assert_eq!((used.success, used.result), (false, None));
    assert_eq!(used.text, "Denied by hook guard: not today");
    assert_eq!(session.history()[1], Message::tool_result(used.id, "Denied by hook guard: not today"));
}

#[tokio::test]
async fn a_withheld_result_is_no_success() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_POST).named("censor").run(|_| HookResult::deny("secret"));
    let session = session(hooks, []).await;
    let used = session.execute_tool("Echo", says("hello")).await;
    assert_eq!((used.success, used.result, used.text.as_str()), (false, None, "Denied by hook censor: secret"));
}

#[tokio::test]
async fn hooks_change_what_runs_and_what_comes_of_it() {
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, |_| HookResult::modify(DataChange::Set("tool_input".into(), json!({ "text": "other" }))));
    hooks.on(TOOL_POST, |post| {
        assert_eq!(*post.tool_result(), json!({ "output": "other" }));
        HookResult::set("tool_result", json!({ "output": "[redacted]" }))
    });
    let session = session(hooks, []).await;
    assert_eq!(session.execute_tool("Echo", says("hello")).await.text, "[redacted]");
}

#[tokio::test]
async fn a_tool_that_fails_or_is_not_there_says_so() {
    let session = session(HookRegistry::new(), []).await;
    let failed = session.execute_tool("Echo", Map::new()).await;
    assert_eq!((failed.success, failed.text.as_str()), (false, "Error: nothing to say"));
    let unknown = session.execute_tool("Ecco", Map::new()).await;
    assert_eq!(
        (unknown.success, unknown.text.as_str()),
        (false, "Error: unknown tool `Ecco`; expected one of Echo, Task")
    );
}

/// Nobody can call it: a session has one of that name.
struct Other;

impl Tool for Other {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "Task".to_owned(), ..Echo.spec() }
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Echo.run(input)
    }
}

#[tokio::test]
async fn a_tool_is_not_replaced_by_the_one_that_delegates() {
    let builder =
        || Session::builder(Arc::new(ScriptedProvider::new(Script::new([])))).tools([Arc::new(Other) as Arc<dyn Tool>]);
    let said = "the tool name `Task` is reserved; choose another name";
    for refused in [builder().start().await, builder().only(["Task".to_owned()]).start().await] {
        assert_eq!(refused.map(drop).map_err(|error| error.to_string()), Err(said.to_owned()));
    }
}

#[tokio::test]
async fn a_shared_session_that_has_ended_can_be_read_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let begin = || {
        let provider = ScriptedProvider::new(Script::new([ScriptedResponse::text("Hello.")]));
        Session::builder(Arc::new(provider)).store(Store::new(folder.path()))
    };
    let first = begin().start().await.unwrap();
    first.prompt("hi").await;
    first.end_shared("complete").await.unwrap();
    first.end_shared("complete").await.unwrap();
    assert_eq!(first.prompt("and?").await, TurnEnd::Failed("the session has ended".to_owned()));
    assert_eq!(first.execute_tool("Task", Map::new()).await.text, "Error: the session has ended");
    assert_eq!(first.compact().await, Err(TurnEnd::Failed("the session has ended".to_owned())));
    assert_eq!(first.history().len(), 2);
    let second = begin().resume("last").await.unwrap();
    assert_eq!(second.history(), first.history());
}
