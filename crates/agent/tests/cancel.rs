//! Stopping a turn: once and the running tool finishes, twice and everything stops. The history and the record stay whole.

use std::sync::Arc;
use std::time::Duration;

use crate::sessions::{Notes, Place, Wait, provider, said, scripted};
use amplifier_agent::provider::{
    Chunk, ModelRequest, Provider, ProviderError, Script, ScriptedFault, ScriptedProvider, ScriptedResponse,
};
use amplifier_agent::tool::Tool;
use amplifier_agent::{CancelLevel, Session, SessionOptions, TurnEnd};
use amplifier_core::testing::EventRecorder;
use amplifier_core::{HookRegistry, HookResult, TOOL_PRE, approval_channel};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::json;

const STOPPED: &str = "assistant: Interrupted by the user.";

fn waits(count: usize) -> ScriptedResponse {
    (0..count).fold(ScriptedResponse::text("Wait."), |answer, _| answer.calling("Wait", json!({})))
}

fn tools(wait: &Wait) -> [Arc<dyn Tool>; 1] {
    [Arc::new(wait.clone())]
}

#[test]
fn whoever_asks_is_told_what_they_asked_for() {
    let cancel = amplifier_agent::Cancel::default();
    assert_eq!(cancel.level(), CancelLevel::No);
    let asked = [cancel.request(), cancel.request(), cancel.request()];
    assert_eq!(asked, [CancelLevel::Graceful, CancelLevel::Immediate, CancelLevel::Immediate]);
}

#[tokio::test]
async fn asked_once_the_running_tool_finishes_and_nothing_new_begins() {
    let place = Place::new();
    let (wait, mut begins) = Wait::new();
    let model = scripted([waits(1), ScriptedResponse::text("never")]);
    let hooks = HookRegistry::new();
    let events = EventRecorder::watch(&hooks);
    let log = place.open_log();
    let session = Session::builder(provider(&model)).hooks(hooks).tools(tools(&wait)).audit(log.clone());
    let session = session.store(place.store()).start().await.unwrap();

    let turn = async { session.prompt("go").await };
    let stop = async {
        begins.recv().await.unwrap();
        assert_eq!(session.cancel().request(), CancelLevel::Graceful);
        wait.go(1);
    };
    assert_eq!(futures::join!(turn, stop).0, TurnEnd::Interrupted);

    let expected = ["user: go", "assistant: Wait. [call-1 Wait]", "result of call-1: waited", STOPPED];
    assert_eq!(said(&session.history()), expected);
    assert_eq!((wait.ended(), model.requests().len()), ((1, 0), 1));
    let told = events.events().into_iter().filter(|(name, _)| name.starts_with("cancel:"));
    let told: Vec<_> = told.map(|(name, data)| (name, data.text("level").unwrap().to_owned())).collect();
    let word = |name: &str| (name.to_owned(), "graceful".to_owned());
    assert_eq!(told, [word("cancel:requested"), word("cancel:completed")]);
    let id = session.id().to_owned();
    session.end("user_exit").await.unwrap();
    let stored: Vec<_> = place.store().export(&id).unwrap().messages.into_iter().map(|(_, message)| message).collect();
    assert_eq!(said(&stored), expected);
    place.check_log(log, 1);
}

#[tokio::test]
async fn asked_twice_the_running_tool_is_stopped() {
    let place = Place::new();
    let (wait, mut begins) = Wait::new();
    let model = scripted([waits(1), ScriptedResponse::text("never")]);
    let log = place.open_log();
    let session = Session::builder(provider(&model)).tools(tools(&wait)).audit(log.clone()).start().await.unwrap();

    let stop = async {
        begins.recv().await.unwrap();
        session.cancel().request();
        assert_eq!(wait.ended(), (0, 0));
        assert_eq!(session.cancel().request(), CancelLevel::Immediate);
    };
    assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);

    let result = "result of call-1: Error: Interrupted by the user.";
    assert_eq!(said(&session.history()), ["user: go", "assistant: Wait. [call-1 Wait]", result, STOPPED]);
    assert_eq!((wait.ended(), model.requests().len()), ((0, 1), 1));
    session.end("user_exit").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn tools_side_by_side_all_finish_or_all_stop() {
    for (requests, go, ended, result) in [(1, 2, (2, 0), "waited"), (2, 0, (0, 2), "Error: Interrupted by the user.")] {
        let place = Place::new();
        let (wait, mut begins) = Wait::new();
        let log = place.open_log();
        let model = scripted([waits(2), ScriptedResponse::text("never")]);
        let session = Session::builder(provider(&model)).tools(tools(&wait)).audit(log.clone()).start().await.unwrap();
        let stop = async {
            begins.recv().await.unwrap();
            begins.recv().await.unwrap();
            (0..requests).for_each(|_| _ = session.cancel().request());
            wait.go(go);
        };
        assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
        let results = [format!("result of call-1: {result}"), format!("result of call-2: {result}")];
        assert_eq!(said(&session.history())[2..4], results);
        assert_eq!((wait.ended(), model.requests().len()), (ended, 1));
        session.end("user_exit").await.unwrap();
        place.check_log(log, 1);
    }
}

/// A model that begins to speak and never ends.
struct Endless;

impl Provider for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn model(&self) -> &str {
        "endless"
    }

    fn context_limit(&self) -> usize {
        100_000
    }

    fn answer(&self, _request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        stream::iter([Ok(Chunk::Text("Well, ".to_owned()))]).chain(stream::pending()).boxed()
    }
}

#[tokio::test]
async fn a_model_that_speaks_is_not_heard_to_its_end() {
    let place = Place::new();
    let (notes, mut news) = Notes::new();
    let log = place.open_log();
    let session = Session::builder(Arc::new(Endless)).observer(notes.clone()).audit(log.clone()).start().await.unwrap();
    let stop = async {
        news.recv().await.unwrap();
        session.cancel().request();
    };
    assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
    assert_eq!(notes.all(), ["text: Well, "]);
    assert_eq!(said(&session.history()), ["user: go", STOPPED]);
    session.end("user_exit").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn a_question_to_a_person_is_withdrawn_and_the_tool_does_not_run() {
    let place = Place::new();
    let (wait, _begins) = Wait::new();
    let (approvals, mut inbox) = approval_channel();
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, |_| HookResult::ask("Really?"));
    let log = place.open_log();
    let model = scripted([waits(1), ScriptedResponse::text("never")]);
    let session = Session::builder(provider(&model)).hooks(hooks).approvals(approvals).tools(tools(&wait));
    let session = session.audit(log.clone()).start().await.unwrap();
    let stop = async {
        let question = inbox.next().await.unwrap();
        session.cancel().request();
        question.request.closed().await;
        assert!(question.answer("Allow").is_err(), "the answer comes too late");
    };
    assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
    let result = "result of call-1: Interrupted by the user.";
    assert_eq!(said(&session.history()), ["user: go", "assistant: Wait. [call-1 Wait]", result, STOPPED]);
    assert_eq!((wait.ended(), model.requests().len()), ((0, 0), 1));
    session.end("user_exit").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn a_wait_before_another_try_ends_at_once() {
    let place = Place::new();
    let (notes, mut news) = Notes::new();
    let log = place.open_log();
    let model = scripted([ScriptedResponse::failing(ScriptedFault::Unavailable), ScriptedResponse::text("never")]);
    let options = SessionOptions { retry_delay: Duration::from_secs(50), ..SessionOptions::default() };
    let session = Session::builder(provider(&model)).options(options).observer(notes.clone()).audit(log.clone());
    let session = session.start().await.unwrap();
    let stop = async {
        news.recv().await.unwrap();
        session.cancel().request();
    };
    assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
    let note = "the provider is unavailable: as the script says; trying again in 50.0 s";
    assert_eq!((notes.all(), model.requests().len()), (vec![note.to_owned()], 1));
    assert_eq!(said(&session.history()), ["user: go", STOPPED]);
    session.end("user_exit").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn a_sub_agent_stops_with_the_session() {
    for (requests, go, ended) in [(1, 1, (1, 0)), (2, 0, (0, 1))] {
        let place = Place::new();
        let (wait, mut begins) = Wait::new();
        let mut script = Script::new([
            ScriptedResponse::text("").calling("Task", json!({ "task": "wait" })),
            ScriptedResponse::text("never"),
        ]);
        script.agents.insert("general".into(), vec![waits(1), ScriptedResponse::text("never")]);
        let model = Arc::new(ScriptedProvider::new(script).recording());
        let log = place.open_log();
        let session = Session::builder(provider(&model)).tools(tools(&wait)).audit(log.clone()).start().await.unwrap();
        let stop = async {
            begins.recv().await.unwrap();
            (0..requests).for_each(|_| _ = session.cancel().request());
            wait.go(go);
        };
        assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
        let result = "result of call-1: Error: Interrupted by the user.";
        assert_eq!(said(&session.history()), ["user: go", "assistant:  [call-1 Task]", result, STOPPED]);
        assert_eq!((wait.ended(), model.requests().len()), (ended, 2), "asked {requests} times to stop");
        session.end("user_exit").await.unwrap();
        place.check_log(log, 2);
    }
}

#[tokio::test]
async fn a_call_that_was_allowed_does_not_begin_after_the_person_asked_to_stop() {
    let place = Place::new();
    let (wait, _begins) = Wait::new();
    // It would end at once.
    wait.go(2);
    let cancel = amplifier_agent::Cancel::default();
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, {
        let cancel = cancel.clone();
        move |event| {
            if event.tool_call_id() == Some("call-2") {
                cancel.request();
            }
        }
    });
    let log = place.open_log();
    let model = scripted([waits(2), ScriptedResponse::text("never")]);
    let session = Session::builder(provider(&model)).hooks(hooks).tools(tools(&wait)).cancel(cancel).audit(log.clone());
    let session = session.start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Interrupted);
    assert_eq!((wait.ended(), model.requests().len()), ((0, 0), 1));
    session.end("user_exit").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn the_next_prompt_after_a_stopped_turn_works() {
    let place = Place::new();
    let (wait, mut begins) = Wait::new();
    let log = place.open_log();
    let model = scripted([waits(1), ScriptedResponse::text("Fine.")]);
    let session = Session::builder(provider(&model)).tools(tools(&wait)).audit(log.clone()).start().await.unwrap();
    let stop = async {
        begins.recv().await.unwrap();
        session.cancel().request();
        session.cancel().request();
    };
    assert_eq!(futures::join!(session.prompt("go"), stop).0, TurnEnd::Interrupted);
    assert_eq!(session.prompt("again").await, TurnEnd::Answered("Fine.".to_owned()));
    assert_eq!(said(&session.history())[3..], [STOPPED, "user: again", "assistant: Fine."]);
    session.end("complete").await.unwrap();
    place.check_log(log, 1);
}

#[tokio::test]
async fn whoever_asks_while_nothing_runs_stops_nothing() {
    let session = Session::builder(scripted([ScriptedResponse::text("Fine."), ScriptedResponse::text("A summary.")]))
        .start()
        .await
        .unwrap();
    session.cancel().request();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Fine.".to_owned()));
    session.cancel().request();
    assert_eq!(session.compact().await, Ok(()));
}

#[tokio::test]
async fn turns_wait_for_one_another() {
    let (wait, mut begins) = Wait::new();
    let model = scripted([waits(1), ScriptedResponse::text("One."), ScriptedResponse::text("Two.")]);
    let session = Session::builder(provider(&model)).tools(tools(&wait)).start().await.unwrap();
    let second = async {
        begins.recv().await.unwrap();
        let second = session.prompt("second");
        futures::pin_mut!(second);
        assert!(futures::poll!(&mut second).is_pending());
        wait.go(1);
        second.await
    };
    let ends = futures::join!(session.prompt("first"), second);
    assert_eq!(ends, (TurnEnd::Answered("One.".to_owned()), TurnEnd::Answered("Two.".to_owned())));
}
