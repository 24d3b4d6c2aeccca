//! Scripts: what a file may say, and how it is played.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crate::sessions::{provider, said};
use amplifier_agent::provider::{
    Chunk, ModelRequest, Provider, ProviderError, Script, ScriptedCall, ScriptedFault, ScriptedProvider,
    ScriptedResponse, StopReason, TokenUsage,
};
use amplifier_agent::{Session, SessionOptions, TurnEnd};
use amplifier_core::{Message, ToolCall};
use futures::StreamExt;
use serde_json::json;
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
    let read =
        ScriptedCall { id: Some("a".to_owned()), name: "Read".to_owned(), input: json!({ "file_path": "a.py" }) };
    let todo = ScriptedCall { id: None, name: "Todo".to_owned(), input: json!({}) };
    let first = ScriptedResponse {
        when: Some("hi".to_owned()),
        thinking: Some("Hm.".to_owned()),
        text: "Look.".to_owned(),
        tools: vec![read, todo],
        error: None,
        delay_ms: 5,
    };
    let faults =
        [ScriptedFault::Throttled, ScriptedFault::Unavailable, ScriptedFault::Truncated, ScriptedFault::Rejected]
            .map(ScriptedResponse::failing);
    let mut expected = Script::new([first].into_iter().chain(faults));
    expected.agents.insert("reviewer".to_owned(), vec![ScriptedResponse::text("Fine.")]);
    assert_eq!(script, Ok(expected));
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let check = |text: &str, field: &str, problem: &str| {
        let error = format!("invalid script `script.json`{field}: {problem}");
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

async fn ask(model: &ScriptedProvider, last: &str) -> Vec<Result<Chunk, ProviderError>> {
    let messages = vec![Message::user(last)];
    model.answer(ModelRequest { messages, ..ModelRequest::default() }).collect().await
}

fn text(text: &str) -> Result<Chunk, ProviderError> {
    Ok(Chunk::Text(text.to_owned()))
}

#[tokio::test]
async fn an_answer_comes_word_by_word_and_ends() {
    let thoughtful =
        ScriptedResponse { thinking: Some("Hm, hm.".to_owned()), ..ScriptedResponse::text("Let me look.") };
    let answer = thoughtful.calling("Read", json!({ "n": 1 })).calling("Read", json!({}));
    let model = ScriptedProvider::new(Script::new([answer])).recording();
    let call = |id: &str, input| Ok(Chunk::ToolCall(ToolCall { id: id.to_owned(), name: "Read".to_owned(), input }));
    let expected = [
        Ok(Chunk::Thinking("Hm, hm.".to_owned())),
        text("Let "),
        text("me "),
        text("look."),
        call("call-1", json!({ "n": 1 })),
        call("call-2", json!({})),
        Ok(Chunk::End { stop: StopReason::ToolUse, usage: TokenUsage { input_tokens: 4, output_tokens: 7 } }),
    ];
    assert_eq!(ask(&model, "go").await, expected);
    assert_eq!(model.requests(), [ModelRequest { messages: vec![Message::user("go")], ..ModelRequest::default() }]);
}

#[tokio::test]
async fn requests_are_kept_only_where_they_are_recorded() {
    let calls = 1000;
    for (model, kept) in [
        (ScriptedProvider::new(Script::new(vec![ScriptedResponse::text("Go on."); calls])), 0),
        (ScriptedProvider::new(Script::new(vec![ScriptedResponse::text("Go on."); calls])).recording(), calls),
    ] {
        for _ in 0..calls {
            assert!(ask(&model, "go").await.iter().all(Result::is_ok));
        }
        assert_eq!(model.requests().len(), kept);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_skipped() {
    let model = ScriptedProvider::new(Script::new([
        ScriptedResponse { when: Some("denied".to_owned()), ..ScriptedResponse::text("Sorry.") },
        ScriptedResponse { when: Some("done".to_owned()), ..ScriptedResponse::text("Good.") },
        ScriptedResponse { when: Some("denied".to_owned()), ..ScriptedResponse::text("Again.") },
        ScriptedResponse::text("Bye."),
    ]));
    for (last, expected) in [("it is done", "Good."), ("it was denied", "Again."), ("anything", "Bye.")] {
        assert_eq!(ask(&model, last).await[0], text(expected));
    }
    let end = ProviderError::Script("all 4 answers were given".to_owned());
    assert_eq!(ask(&model, "more").await, [Err(end)]);
}

#[tokio::test]
async fn a_script_without_an_answer_for_this_says_so_and_waits_for_another_message() {
    let model = ScriptedProvider::new(Script::new([ScriptedResponse {
        when: Some("done".to_owned()),
        ..ScriptedResponse::text("Good.")
    }]));
    let none = ProviderError::Script("none of the 1 answers that are left is for this message".to_owned());
    assert_eq!(ask(&model, "hello").await, [Err(none)]);
    assert_eq!(ask(&model, "done").await[0], text("Good."));
}

#[tokio::test]
async fn agents_have_answers_of_their_own() {
    let mut script = Script::new([
        ScriptedResponse::text("").calling("Task", json!({ "task": "review", "agent_name": "reviewer" })),
        ScriptedResponse::text("").calling("Task", json!({ "task": "count", "agent_name": "counter" })),
        ScriptedResponse::text("From the list of all."),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("reviewer".to_owned(), vec![ScriptedResponse::text("Fine.")]);
    let model = Arc::new(ScriptedProvider::new(script));
    let session = Session::builder(provider(&model)).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Done.".to_owned()));
    let results: Vec<String> = said(&session.history()).into_iter().filter(|line| line.starts_with("result")).collect();
    assert_eq!(results, ["result of call-1: Fine.", "result of call-2: From the list of all."]);
}

#[tokio::test]
async fn an_agent_without_more_answers_is_named() {
    let task = || ScriptedResponse::text("").calling("Task", json!({ "task": "review", "agent_name": "reviewer" }));
    let mut script = Script::new([task(), task(), ScriptedResponse::text("Done.")]);
    script.agents.insert("reviewer".to_owned(), vec![ScriptedResponse::text("Fine.")]);
    let model = Arc::new(ScriptedProvider::new(script));
    let session = Session::builder(provider(&model)).start().await.unwrap();
    assert_eq!(session.prompt("go").await, TurnEnd::Answered("Done.".to_owned()));
    let why = "no scripted response: all 1 answers of agent `reviewer` were given";
    assert!(session.history()[4].content.contains(why), "{}", session.history()[4].content);
}

#[tokio::test]
async fn faults_are_the_errors_of_a_provider() {
    let scripted = || "as the script says".to_owned();
    let throttled = ProviderError::Throttled { message: scripted(), retry_after: Some(Duration::from_millis(10)) };
    for (fault, expected) in [
        (ScriptedFault::Throttled, vec![Err(throttled)]),
        (ScriptedFault::Unavailable, vec![Err(ProviderError::Unavailable(scripted()))]),
        (ScriptedFault::Rejected, vec![Err(ProviderError::Rejected(scripted()))]),
        (ScriptedFault::Truncated, vec![text("Let "), text("me"), Err(ProviderError::Truncated)]),
    ] {
        let answer =
            ScriptedResponse { error: Some(fault), ..ScriptedResponse::text("Let me").calling("Read", json!({})) };
        assert_eq!(ask(&ScriptedProvider::new(Script::new([answer])), "go").await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_with_the_next_answer() {
    let begun = Instant::now();
    let model = Arc::new(ScriptedProvider::new(Script::new([
        ScriptedResponse::failing(ScriptedFault::Unavailable),
        ScriptedResponse::failing(ScriptedFault::Throttled),
        ScriptedResponse { error: Some(ScriptedFault::Truncated), ..ScriptedResponse::text("Half") },
        ScriptedResponse::text("Whole."),
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
    let model = ScriptedProvider::new(Script::new([ScriptedResponse {
        delay_ms: 100,
        ..ScriptedResponse::text("Let me look.")
    }]));
    assert_eq!(ask(&model, "go").await.len(), 4);
    assert_eq!(begun.elapsed().as_millis() / 10, 400 / 10);
}
