//! Scripts: what a file may say, and how it is played.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod sessions;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::provider::{
    Answer, Call, Chunk, Fault, Provider, ProviderError, Request, Script, Scripted, StopReason, Usage,
};
use amplifier_agent::{Session, SessionOptions, TurnEnd};
use amplifier_core::{Message, ToolCall};
use futures::StreamExt;
use serde_json::json;
use sessions::{provider, said};
use tokio::time::Instant;

fn load(text: &str) -> Result<Script, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    fs::write(&path, text).unwrap();
    Script::load(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), "script.json"))
}

#[test]
fn a_file_can_say_everything_that_a_script_can() {
    let script = load(
        r#"{
            "answers": [
                { "when": "hi", "thinking": "Hm.", "text": "Look.", "delay_ms": 5,
                  "tools": [ { "id": "a", "name": "Read", "input": { "file_path": "a.py" } }, { "name": "Todo" } ] },
                { "error": "throttled" }, { "error": "unavailable" }, { "error": "truncated" }, { "error": "rejected" }
            ],
            "agents": { "reviewer": [ { "text": "Fine." } ] }
        }"#,
    );
    let read = Call { id: Some("a".to_owned()), name: "Read".to_owned(), input: json!({ "file_path": "a.py" }) };
    let todo = Call { id: None, name: "Todo".to_owned(), input: json!({}) };
    let first = Answer {
        when: Some("hi".to_owned()),
        thinking: Some("Hm.".to_owned()),
        text: "Look.".to_owned(),
        tools: vec![read, todo],
        error: None,
        delay_ms: 5,
    };
    let faults = [Fault::Throttled, Fault::Unavailable, Fault::Truncated, Fault::Rejected].map(Answer::failing);
    let mut expected = Script::of([first].into_iter().chain(faults));
    expected.agents.insert("reviewer".to_owned(), vec![Answer::text("Fine.")]);
    assert_eq!(script, Ok(expected));
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let check = |text: &str, field: &str, problem: &str| {
        let error = format!("the script `script.json` is not as expected{field}: {problem}");
        assert_eq!(load(text), Err(error));
    };
    check("{", "", "EOF while parsing an object at line 1 column 1");
    check("[]", "", "invalid length 0, expected struct Script with 2 elements at line 1 column 2");
    check("{}", "", "missing field `answers` at line 1 column 2");
    check(
        r#"{ "answers": [ { "text": "a" }, { "text": 3 } ] }"#,
        ", at `answers[1].text`",
        "invalid type: integer `3`, expected a string at line 1 column 43",
    );
    check(
        r#"{ "answers": [ { "tools": [ { "input": {} } ] } ] }"#,
        ", at `answers[0].tools[0]`",
        "missing field `name` at line 1 column 43",
    );
    check(
        r#"{ "answers": [ { "txet": "a" } ] }"#,
        ", at `answers[0].txet`",
        "unknown field `txet`, expected one of `when`, `thinking`, `text`, `tools`, `error`, `delay_ms` at line 1 column 23",
    );
    check(
        r#"{ "answers": [], "agents": { "reviewer": [ { "error": "tired" } ] } }"#,
        ", at `agents.reviewer[0].error`",
        "unknown variant `tired`, expected one of `throttled`, `unavailable`, `truncated`, `rejected` at line 1 column 61",
    );
    check(r#"{ "answers": [] } more"#, "", "trailing characters at line 1 column 19");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Script::load("/nowhere/script.json".as_ref()).unwrap_err().to_string();
    let expected = "the script `/nowhere/script.json` cannot be read: No such file or directory (os error 2)";
    assert_eq!(error, expected);
}

async fn ask(model: &Scripted, last: &str) -> Vec<Result<Chunk, ProviderError>> {
    let messages = vec![Message::user(last)];
    model.answer(Request { messages, ..Request::default() }).collect().await
}

fn text(text: &str) -> Result<Chunk, ProviderError> {
    Ok(Chunk::Text(text.to_owned()))
}

#[tokio::test]
async fn an_answer_comes_word_by_word_and_ends() {
    let thoughtful = Answer { thinking: Some("Hm, hm.".to_owned()), ..Answer::text("Let me look.") };
    let answer = thoughtful.calling("Read", json!({ "n": 1 })).calling("Read", json!({}));
    let model = Scripted::new(Script::of([answer])).recording();
    let call = |id: &str, input| Ok(Chunk::ToolCall(ToolCall { id: id.to_owned(), name: "Read".to_owned(), input }));
    let expected = [
        Ok(Chunk::Thinking("Hm, hm.".to_owned())),
        text("Let "),
        text("me "),
        text("look."),
        call("call-1", json!({ "n": 1 })),
        call("call-2", json!({})),
        Ok(Chunk::End { stop: StopReason::ToolUse, usage: Usage { input_tokens: 5, output_tokens: 8 } }),
    ];
    assert_eq!(ask(&model, "go").await, expected);
    assert_eq!(model.asked(), [Request { messages: vec![Message::user("go")], ..Request::default() }]);
}

#[tokio::test]
async fn requests_are_kept_only_where_they_are_recorded() {
    let calls = 1000;
    for (model, kept) in [
        (Scripted::new(Script::of(vec![Answer::text("Go on."); calls])), 0),
        (Scripted::new(Script::of(vec![Answer::text("Go on."); calls])).recording(), calls),
    ] {
        for _ in 0..calls {
            assert!(ask(&model, "go").await.iter().all(Result::is_ok));
        }
        assert_eq!(model.asked().len(), kept);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_skipped() {
    let model = Scripted::new(Script::of([
        Answer { when: Some("denied".to_owned()), ..Answer::text("Sorry.") },
        Answer { when: Some("done".to_owned()), ..Answer::text("Good.") },
        Answer { when: Some("denied".to_owned()), ..Answer::text("Again.") },
        Answer::text("Bye."),
    ]));
    for (last, expected) in [("it is done", "Good."), ("it was denied", "Again."), ("anything", "Bye.")] {
        assert_eq!(ask(&model, last).await[0], text(expected));
    }
    let end = ProviderError::Script("all 4 answers were given".to_owned());
    assert_eq!(ask(&model, "more").await, [Err(end)]);
}

#[tokio::test]
async fn a_script_without_an_answer_for_this_says_so_and_waits_for_another_message() {
    let model = Scripted::new(Script::of([Answer { when: Some("done".to_owned()), ..Answer::text("Good.") }]));
    let none = ProviderError::Script("none of the 1 answers that are left is for this message".to_owned());
    assert_eq!(ask(&model, "hello").await, [Err(none)]);
    assert_eq!(ask(&model, "done").await[0], text("Good."));
}

#[tokio::test]
async fn agents_have_answers_of_their_own() {
    let mut script = Script::of([
        Answer::text("").calling("Task", json!({ "task": "review", "agent_name": "reviewer" })),
        Answer::text("").calling("Task", json!({ "task": "count", "agent_name": "counter" })),
        Answer::text("From the list of all."),
        Answer::text("Done."),
    ]);
    script.agents.insert("reviewer".to_owned(), vec![Answer::text("Fine.")]);
    let model = Arc::new(Scripted::new(script));
    let session = Session::builder(provider(&model)).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Done.".to_owned()));
    let results: Vec<String> = said(&session.history()).into_iter().filter(|line| line.starts_with("result")).collect();
    assert_eq!(results, ["result of call-1: Fine.", "result of call-2: From the list of all."]);
}

#[tokio::test]
async fn an_agent_without_more_answers_is_named() {
    let task = || Answer::text("").calling("Task", json!({ "task": "review", "agent_name": "reviewer" }));
    let mut script = Script::of([task(), task(), Answer::text("Done.")]);
    script.agents.insert("reviewer".to_owned(), vec![Answer::text("Fine.")]);
    let model = Arc::new(Scripted::new(script));
    let session = Session::builder(provider(&model)).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Done.".to_owned()));
    let why = "the script does not go on: all 1 answers of agent `reviewer` were given";
    assert!(session.history()[4].content.contains(why), "{}", session.history()[4].content);
}

#[tokio::test]
async fn faults_are_the_errors_of_a_provider() {
    let scripted = || "as the script says".to_owned();
    let throttled = ProviderError::Throttled { message: scripted(), retry_after: Some(Duration::from_millis(10)) };
    for (fault, expected) in [
        (Fault::Throttled, vec![Err(throttled)]),
        (Fault::Unavailable, vec![Err(ProviderError::Unavailable(scripted()))]),
        (Fault::Rejected, vec![Err(ProviderError::Rejected(scripted()))]),
        (Fault::Truncated, vec![text("Let "), text("me"), Err(ProviderError::Truncated)]),
    ] {
        let answer = Answer { error: Some(fault), ..Answer::text("Let me").calling("Read", json!({})) };
        assert_eq!(ask(&Scripted::new(Script::of([answer])), "go").await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_with_the_next_answer() {
    let begun = Instant::now();
    let model = Arc::new(Scripted::new(Script::of([
        Answer::failing(Fault::Unavailable),
        Answer::failing(Fault::Throttled),
        Answer { error: Some(Fault::Truncated), ..Answer::text("Half") },
        Answer::text("Whole."),
    ])));
    let session = Session::builder(provider(&model)).options(SessionOptions::default()).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Whole.".to_owned()));
    assert_eq!(said(&session.history()), ["user: go", "assistant: Whole."]);
    // A second, what the provider asked for, and four seconds; timers go by milliseconds.
    assert_eq!(begun.elapsed().as_millis() / 5, 5010 / 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_its_time() {
    let begun = Instant::now();
    let model = Scripted::new(Script::of([Answer { delay_ms: 100, ..Answer::text("Let me look.") }]));
    assert_eq!(ask(&model, "go").await.len(), 4);
    assert_eq!(begun.elapsed().as_millis() / 10, 400 / 10);
}
