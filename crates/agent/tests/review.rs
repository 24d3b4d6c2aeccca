//! Regression tests from an adversarial review.

use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::provider::{
    Chunk, ModelRequest, Provider, ProviderError, Script, ScriptedCall, ScriptedProvider, ScriptedResponse, StopReason,
    TokenUsage,
};
use amplifier_agent::tool::{TodoTool, ToolOutput};
use amplifier_agent::{Session, SessionObserver, Store, TurnEnd};
use amplifier_core::{AGENT_SPAWN, HookRegistry, HookResult, Message, OnError, TOOL_POST, TOOL_PRE};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::json;
use tokio::sync::Notify;

use crate::common::{World, tool};

fn with_ids(calls: &[(&str, &str)]) -> Script {
    let tools = calls.iter().map(|(id, text)| ScriptedCall {
        id: Some((*id).to_owned()),
        name: "Echo".to_owned(),
        input: json!({ "text": text }),
    });
    Script::new([
        ScriptedResponse { tools: tools.collect(), ..ScriptedResponse::text("") },
        ScriptedResponse::text("Done."),
    ])
}

/// Every call of a request has exactly one result, directly behind it, and every result a call.
fn paired(messages: &[Message]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for message in messages {
        match &message.tool_call_id {
            Some(id) => match open.iter().position(|call| call == id) {
                Some(at) => drop(open.remove(at)),
                None => return Err(format!("a result of `{id}` without a call")),
            },
            None if !open.is_empty() => return Err(format!("no result of {open:?} before `{}`", message.content)),
            None => {}
        }
        for call in &message.tool_calls {
            if call.id.is_empty() || seen.contains(&call.id) {
                return Err(format!("the id `{}` is empty or stands twice", call.id));
            }
            seen.push(call.id.clone());
            open.push(call.id.clone());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("no result of {open:?}")) }
}

#[tokio::test]
async fn an_injection_never_stands_between_a_call_and_its_result_when_ids_are_the_same() {
    let world = World::new(with_ids(&[("same", "one"), ("same", "two")]));
    world.hooks.hook(TOOL_POST).named("linter").run(|_| HookResult::inject("mind this"));
    let run = world.run(&["go"]).await;
    let roles: Vec<String> =
        run.requests[1].messages.iter().map(|message| format!("{:?}", message.role).to_lowercase()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "system", "system"]);
}

#[tokio::test]
async fn the_ids_of_calls_are_unique_and_not_empty_whatever_a_model_says() {
    for ids in [[("same", "one"), ("same", "two")], [("", "one"), ("other", "two")]] {
        let run = World::new(with_ids(&ids)).run(&["go"]).await;
        assert_eq!(paired(&run.requests[1].messages), Ok(()));
    }
}

#[tokio::test]
async fn a_hook_that_changes_the_id_of_a_call_leaves_no_operation_in_doubt() {
    let world = World::new(with_ids(&[("call", "one")]));
    world.hooks.hook(TOOL_PRE).named("renames").run(|_| HookResult::set("tool_call_id", "another"));
    // `finish` checks that nothing is in doubt.
    world.run(&["go"]).await;
}

#[tokio::test]
async fn a_hook_that_changes_the_id_of_a_result_leaves_no_operation_in_doubt() {
    let world = World::new(with_ids(&[("call", "one")]));
    world.hooks.hook(TOOL_POST).named("renames").run(|_| HookResult::set("tool_call_id", "another"));
    world.run(&["go"]).await;
}

#[tokio::test]
async fn what_a_hook_injects_when_an_agent_is_refused_is_not_lost() {
    let script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "look" })),
        ScriptedResponse::text("Then not."),
    ]);
    let world = World::new(script);
    world.hooks.hook(AGENT_SPAWN).named("advice").priority(1).run(|_| HookResult::inject("do it yourself instead"));
    world
        .hooks
        .hook(AGENT_SPAWN)
        .named("guard")
        .priority(2)
        .on_error(OnError::Deny)
        .run(|_| HookResult::deny("no agents"));
    let run = world.run(&["go"]).await;
    let said: Vec<&str> = run.requests[1].messages.iter().map(|message| message.content.as_str()).collect();
    assert!(said.contains(&"do it yourself instead"), "{said:?}");
}

#[tokio::test]
async fn a_later_hook_cannot_turn_a_call_into_one_of_another_tool_that_nobody_was_asked_about() {
    let script = Script::new([
        ScriptedResponse::text("").calling("Echo", json!({ "text": "x" })),
        ScriptedResponse::text("Done."),
    ]);
    let world = World::new(script);
    // As the `confirm` hook of the command: `Shout` needs a person, `Echo` does not.
    world.hooks.hook(TOOL_PRE).named("confirm").priority(50).on_error(OnError::Deny).run(
        |event: amplifier_core::Event<amplifier_core::ToolPre>| {
            (event.tool_name() == "Shout").then(|| HookResult::deny("never"))
        },
    );
    world.hooks.hook(TOOL_PRE).named("later").priority(60).run(|_| HookResult::set("tool_name", "Shout"));
    let run = world.run(&["go"]).await;
    let ran: Vec<&str> = run.inputs.iter().map(|(tool, _)| tool.as_str()).collect();
    assert!(!ran.contains(&"Shout"), "section 7: at `tool:pre` only `tool_input` can be modified; ran {ran:?}");
}

#[tokio::test]
async fn a_turn_that_was_given_up_leaves_no_call_without_a_result_for_the_next_one() {
    let script = Script::new([ScriptedResponse::text("").calling("Hang", json!({})), ScriptedResponse::text("Done.")]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let begun = Arc::new(Notify::new());
    let tells = begun.clone();
    let hang = tool("Hang", &crate::common::Inputs::default(), move |_| {
        tells.notify_one();
        async { std::future::pending::<Result<ToolOutput, _>>().await }
    });
    let session = Session::builder(provider.clone()).tools([hang]).start().await.unwrap();
    tokio::select! {
        _ = session.prompt("go") => panic!("it ended"),
        () = begun.notified() => {}
    }
    session.prompt("and now?").await;
    assert_eq!(paired(&provider.requests()[1].messages), Ok(()));
}

#[tokio::test]
async fn results_whose_call_is_gone_are_not_sent_to_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new([
        ScriptedResponse::text("").calling("Todo", json!({ "todos": [] })),
        ScriptedResponse::text("Done."),
        ScriptedResponse::text("Again."),
    ]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let builder = || {
        Session::builder(provider.clone()).tools([Arc::new(TodoTool::new()) as Arc<_>]).store(Store::new(folder.path()))
    };
    let session = builder().start().await.unwrap();
    session.prompt("go").await;
    let id = session.id().to_owned();
    session.end("complete").await.unwrap();
    // As `StoreError::Damaged` advises: take the damaged line away.
    let file = folder.path().join(&id).join("messages.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: String =
        text.lines().filter(|line| !line.contains("tool_calls")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, kept).unwrap();
    let session = builder().resume(&id).await.unwrap();
    session.prompt("go on").await;
    assert_eq!(paired(&provider.requests()[2].messages), Ok(()));
}

/// A model that stops in the middle.
struct Cut(StopReason);

impl Provider for Cut {
    fn name(&self) -> &str {
        "cut"
    }
    fn model(&self) -> &str {
        "cut"
    }
    fn context_limit(&self) -> usize {
        100_000
    }
    fn answer(&self, _: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        let text = if self.0 == StopReason::Refusal { "" } else { "The first half of" };
        let end = Chunk::End { stop: self.0, usage: TokenUsage::default() };
        stream::iter([Ok(Chunk::Text(text.to_owned())), Ok(end)]).boxed()
    }
}

#[derive(Clone, Default)]
struct Notes(Arc<std::sync::Mutex<Vec<String>>>);

impl SessionObserver for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_or_refused_does_not_pass_for_a_task_that_was_done() {
    for stop in [StopReason::MaxTokens, StopReason::Refusal] {
        let notes = Notes::default();
        let session = Session::builder(Arc::new(Cut(stop))).observer(notes.clone()).start().await.unwrap();
        let end = session.prompt("go").await;
        let is_told = !matches!(end, TurnEnd::Answered(_)) || !notes.0.lock().unwrap().is_empty();
        assert!(is_told, "{stop:?}: {end:?}, and nobody is told");
    }
}

/// A model that never stops.
struct Endless;

impl Provider for Endless {
    fn name(&self) -> &str {
        "endless"
    }
    fn model(&self) -> &str {
        "endless"
    }
    fn context_limit(&self) -> usize {
        1_000
    }
    fn answer(&self, _: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        // 256 MiB, and then silence: a bound well below that must have ended it.
        let piece = "x".repeat(1 << 20);
        stream::iter((0..256).map(move |_| Ok(Chunk::Text(piece.clone())))).chain(stream::pending()).boxed()
    }
}

#[tokio::test]
async fn an_answer_without_end_is_given_up_before_it_fills_the_memory() {
    let session = Session::builder(Arc::new(Endless)).start().await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(90), session.prompt("go")).await;
    assert!(
        matches!(end, Ok(TurnEnd::Failed(_))),
        "256 MiB of an answer were taken for a model that reads 1,000 tokens"
    );
}

#[tokio::test]
async fn a_sub_agent_does_not_write_over_the_list_of_its_parent() {
    let item = |text: &str| json!({ "todos": [{ "content": text, "status": "pending" }] });
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Todo", item("mine")),
        ScriptedResponse::text("").calling("Task", json!({ "task": "look", "agent_name": "child" })),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert(
        "child".to_owned(),
        vec![ScriptedResponse::text("").calling("Todo", item("the child's")), ScriptedResponse::text("ok")],
    );
    let todo = TodoTool::new();
    let session = Session::builder(Arc::new(ScriptedProvider::new(script)))
        .hooks(HookRegistry::new())
        .tools([Arc::new(todo.clone()) as Arc<_>])
        .start()
        .await
        .unwrap();
    session.prompt("go").await;
    assert_eq!(todo.list(), "[ ] mine");
}

#[tokio::test]
async fn a_hook_that_answers_with_all_it_needs_leaves_no_operation_in_doubt() {
    let world = World::new(with_ids(&[("call", "one")]));
    // As a hook in another language does: the data that it wants to run, and nothing else.
    let whole = json!({ "tool_name": "Echo", "tool_input": { "text": "two" } });
    world
        .hooks
        .hook(TOOL_PRE)
        .named("rewrites")
        .run(move |_| HookResult::modify(amplifier_core::EventData::from(whole.as_object().unwrap().clone())));
    world.run(&["go"]).await;
}

#[tokio::test]
async fn a_session_can_go_on_however_deep_the_input_of_a_tool_was() {
    let folder = tempfile::tempdir().unwrap();
    // Arguments of this depth arrive over the wire: `serde_json` reads 127 levels.
    let arguments = format!("{}1{}", "{\"a\":".repeat(126), "}".repeat(126));
    let input: serde_json::Value = serde_json::from_str(&arguments).unwrap();
    let script =
        Script::new([ScriptedResponse::text("").calling("Todo", input.clone()), ScriptedResponse::text("Done.")]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let builder = || {
        Session::builder(provider.clone()).tools([Arc::new(TodoTool::new()) as Arc<_>]).store(Store::new(folder.path()))
    };
    let session = builder().start().await.unwrap();
    session.prompt("go").await;
    let used = session.execute_tool("Todo", input.as_object().unwrap().clone()).await;
    assert_eq!(
        (used.success, used.text.as_str()),
        (false, "Error: the input of `Todo` is nested deeper than 100 levels")
    );
    let id = session.id().to_owned();
    session.end("complete").await.unwrap();
    assert_eq!(builder().resume(&id).await.map(drop).map_err(|error| error.to_string()), Ok(()));
}

/// A model that breaks down.
struct Broken;

impl Provider for Broken {
    fn name(&self) -> &str {
        "broken"
    }
    fn model(&self) -> &str {
        "broken"
    }
    fn context_limit(&self) -> usize {
        100_000
    }
    fn answer(&self, _: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        stream::once(async { panic!("a bug in a provider") }).boxed()
    }
}

#[tokio::test]
async fn a_provider_that_panics_fails_the_turn_and_leaves_nothing_in_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let log = amplifier_audit::Log::at(folder.path().join("audit"), folder.path().join("key")).open().unwrap();
    let session = Arc::new(Session::builder(Arc::new(Broken)).audit(log.clone()).start().await.unwrap());
    let prompted = session.clone();
    let end = tokio::spawn(async move { prompted.prompt("go").await }).await;
    log.close().unwrap();
    let report = amplifier_audit::Verifier::new().folder(folder.path().join("audit")).unwrap();
    assert_eq!(report.in_doubt, []);
    assert!(matches!(end, Ok(TurnEnd::Failed(_))), "{end:?}");
}

#[tokio::test]
async fn a_turn_that_is_stopped_before_its_prompt_was_taken_says_so_to_hooks() {
    let world = World::new(Script::new([ScriptedResponse::text("Done.")]));
    let cancel = world.cancel.clone();
    world.hooks.hook(amplifier_core::PROMPT_SUBMIT).named("slow").run(move |_| {
        cancel.request();
        async { std::future::pending::<HookResult>().await }
    });
    let run = world.run(&["go"]).await;
    assert_eq!(run.ends, [TurnEnd::Interrupted]);
    assert_eq!((run.events("cancel:requested").len(), run.events("cancel:completed").len()), (1, 1));
}
