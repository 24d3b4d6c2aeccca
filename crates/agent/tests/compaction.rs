//! Shortening a conversation: when, to what, and what is never lost on the way.

use std::collections::HashSet;
use std::sync::Arc;

use amplifier_agent::provider::{
    Chunk, ModelRequest, Provider, ProviderError, Script, ScriptedFault, ScriptedProvider, ScriptedResponse, TokenUsage,
};
use amplifier_agent::tool::Tool;
use amplifier_agent::{Denial, Session, SessionBuilder, SessionOptions, TurnEnd, count_messages};
use amplifier_core::testing::EventRecorder;
use amplifier_core::{
    CONTEXT_PRE_COMPACT, DECISION_CONTEXT_RESOLUTION, HookRegistry, HookResult, Injection, Message, PROVIDER_REQUEST,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::json;

use crate::sessions::{Echo, Notes, Place, provider, said};

const SUMMARY: &str = "user: Summary of the conversation so far:\n\nThey talked.";

/// So many tokens of text.
fn words(count: usize) -> String {
    ["and"; 2000][..count].join(" ")
}

/// A model that can read 1000 tokens.
fn small(answers: impl IntoIterator<Item = ScriptedResponse>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(Script::new(answers)).with_context_limit(1000).recording())
}

fn builder(model: &Arc<ScriptedProvider>) -> SessionBuilder {
    Session::builder(provider(model)).system("Be brief.").tools([Arc::new(Echo) as Arc<dyn Tool>])
}

fn answered(text: &str) -> TurnEnd {
    TurnEnd::Answered(text.to_owned())
}

fn talk() -> [ScriptedResponse; 3] {
    [ScriptedResponse::text(words(800)), ScriptedResponse::text("They talked."), ScriptedResponse::text("Done.")]
}

#[tokio::test]
async fn a_conversation_near_the_limit_becomes_a_summary() {
    let model = small(talk());
    let hooks = HookRegistry::new();
    let events = EventRecorder::new();
    events.register(&hooks, "context:*").unwrap();
    let session = builder(&model).hooks(hooks).start().await.unwrap();
    assert_eq!(session.prompt("tell me").await, answered(&words(800)));
    assert_eq!(session.prompt("and now?").await, answered("Done."));

    let after = ["system: Be brief.", SUMMARY, "user: and now?", "assistant: Done."];
    assert_eq!(said(&session.history()), after);
    let [_, summarising, going_on] = &model.requests()[..] else { panic!("the model is asked three times") };
    let question = said(&summarising.messages);
    assert_eq!(question[..3], ["system: Be brief.", "user: tell me", &format!("assistant: {}", words(800))]);
    assert!(question[3].starts_with("user: The conversation so far has to be shortened."), "{}", question[3]);
    assert_eq!((question.len(), &summarising.tools[..]), (4, &[][..]));
    assert_eq!(said(&going_on.messages), after[..3]);

    let events = events.events();
    let number = |at: usize, field: &str| events[at].1.get(field).unwrap().as_u64().unwrap();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["context:pre_compact", "context:post_compact"]);
    assert_eq!(events[0].1.text("trigger"), Some("auto"));
    assert_eq!((number(0, "target_tokens"), number(0, "messages_count"), number(1, "messages_count")), (400, 4, 3));
    assert!(number(0, "current_tokens") >= 800, "it is near the limit");
    assert_eq!(number(0, "current_tokens"), number(1, "previous_tokens"));
    assert!(number(1, "current_tokens") < 400, "it is within the target");
}

#[tokio::test]
async fn a_short_conversation_stays_as_it_is() {
    let model = small([ScriptedResponse::text(words(400)), ScriptedResponse::text("Done.")]);
    let session = builder(&model).start().await.unwrap();
    session.prompt("tell me").await;
    session.prompt("and now?").await;
    assert_eq!((model.requests().len(), session.history().len()), (2, 5));
}

/// A model that reads three tokens where one is estimated.
struct Costly(Arc<ScriptedProvider>);

impl Provider for Costly {
    fn name(&self) -> &str {
        "costly"
    }

    fn model(&self) -> &str {
        "costly"
    }

    fn context_limit(&self) -> usize {
        self.0.context_limit()
    }

    fn answer(&self, request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        let costly = |chunk| match chunk {
            Ok(Chunk::End { stop, usage }) => {
                Ok(Chunk::End { stop, usage: TokenUsage { input_tokens: usage.input_tokens * 3, ..usage } })
            }
            chunk => chunk,
        };
        self.0.answer(request).map(costly).boxed()
    }
}

#[tokio::test]
async fn a_provider_that_reports_more_tokens_than_estimated_has_its_conversation_shortened_earlier() {
    let model = small([
        ScriptedResponse::text(words(375)),
        ScriptedResponse::text("Yes."),
        ScriptedResponse::text("They talked."),
        ScriptedResponse::text("Done."),
    ]);
    let session = Session::builder(Arc::new(Costly(model.clone()))).system("Be brief.").start().await.unwrap();
    session.prompt("tell me").await;
    session.prompt("is that all?").await;
    assert_eq!(model.requests().len(), 2, "by the estimate alone, there is room");
    assert_eq!(session.prompt("and now?").await, answered("Done."));
    assert_eq!(model.requests().len(), 4, "the conversation was shortened first");
    assert!(said(&session.history()).contains(&SUMMARY.to_owned()));
}

#[tokio::test]
async fn what_tools_are_called_with_counts() {
    let large = json!({ "text": "", "content": words(800) });
    let model = small([
        ScriptedResponse::text("").calling("Echo", large),
        ScriptedResponse::text("They talked."),
        ScriptedResponse::text("Done."),
    ]);
    let session = builder(&model).start().await.unwrap();
    assert_eq!(session.prompt("go").await, answered("Done."));
    assert_eq!(said(&session.history()), ["system: Be brief.", SUMMARY, "assistant: Done."]);
}

/// Every call is followed by its results, and no result stands alone.
fn is_whole(history: &[Message]) -> bool {
    let mut open: HashSet<&str> = HashSet::new();
    history.iter().all(|message| {
        let fits = match &message.tool_call_id {
            Some(id) => open.remove(id.as_str()),
            None => open.is_empty(),
        };
        open.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
        fits
    })
}

#[tokio::test]
async fn a_call_and_its_result_are_never_parted() {
    let echo = |count| json!({ "text": words(count) });
    let mut lengths = HashSet::new();
    for percent in (0..=200).step_by(5) {
        let model = small([
            ScriptedResponse::text("").calling("Echo", echo(30)).calling("Echo", echo(10)),
            ScriptedResponse::text("").calling("Echo", echo(20)),
            ScriptedResponse::text("Read."),
            ScriptedResponse::text("They talked."),
        ]);
        let options = SessionOptions { compact_to: f64::from(percent) / 100.0, ..SessionOptions::default() };
        let session = builder(&model).options(options).start().await.unwrap();
        assert_eq!(session.prompt("go").await, answered("Read."));
        assert_eq!(session.history().len(), 8);
        assert_eq!(session.compact().await, Ok(()));
        let history = session.history();
        assert!(is_whole(&history), "{percent}: {:?}", said(&history));
        assert_eq!(said(&history)[..2], ["system: Be brief.", SUMMARY]);
        lengths.insert(history.len());
    }
    // Before nothing, before the answer, before the second call, and before the first.
    assert_eq!(lengths, HashSet::from([2, 3, 5, 8]));
}

#[tokio::test]
async fn no_calls_are_shown_to_a_model_that_has_no_tools_to_summarise() {
    let model = small([
        ScriptedResponse::text("Look.").calling("Echo", json!({ "text": "hi" })),
        ScriptedResponse::text("Read."),
        ScriptedResponse::text("They talked."),
    ]);
    let options = SessionOptions { compact_to: 0.0, ..SessionOptions::default() };
    let session = builder(&model).options(options).start().await.unwrap();
    session.prompt("go").await;
    session.compact().await.unwrap();
    let question = said(&model.requests()[2].messages);
    let expected = [
        "system: Be brief.",
        "user: go",
        "assistant: Look.\n[used Echo with {\"text\":\"hi\"}]",
        "user: [the result was: hi]",
        "assistant: Read.",
    ];
    assert_eq!(question[..5], expected);
    assert_eq!(said(&session.history()), ["system: Be brief.", SUMMARY]);
}

#[tokio::test]
async fn what_hooks_inject_meanwhile_is_carried_over() {
    let model = small(talk());
    let hooks = HookRegistry::new();
    // Nothing is injected when the strategy is chosen.
    hooks.hook(DECISION_CONTEXT_RESOLUTION).named("first").run(|_| HookResult::inject("keep one"));
    hooks.hook(CONTEXT_PRE_COMPACT).named("second").run(|_| HookResult::inject("keep two"));
    hooks.hook(CONTEXT_PRE_COMPACT).named("third").run(|_| HookResult::inject(Injection::new("just once").ephemeral()));
    let session = builder(&model).hooks(hooks).start().await.unwrap();
    session.prompt("tell me").await;
    session.prompt("and now?").await;
    let mut expected = vec!["system: Be brief.", SUMMARY, "system (second): keep two", "user: and now?"];
    expected.push("system (third): just once");
    assert_eq!(said(&model.requests()[2].messages), expected);
    expected.pop();
    expected.push("assistant: Done.");
    assert_eq!(said(&session.history()), expected);
}

#[tokio::test]
async fn a_hook_says_what_to_aim_for() {
    let model = small([
        ScriptedResponse::text(words(120)),
        ScriptedResponse::text(words(700)),
        ScriptedResponse::text("They talked."),
        ScriptedResponse::text("Done."),
    ]);
    let hooks = HookRegistry::new();
    hooks.on(CONTEXT_PRE_COMPACT, |_| HookResult::set("target_tokens", 1600));
    let session = builder(&model).hooks(hooks).start().await.unwrap();
    session.prompt("one").await;
    session.prompt("two").await;
    assert_eq!(session.prompt("three").await, answered("Done."));
    let kept = format!("assistant: {}", words(700));
    let expected = ["system: Be brief.", SUMMARY, "user: two", &kept, "user: three", "assistant: Done."];
    assert_eq!(said(&session.history()), expected);
}

#[tokio::test]
async fn it_can_be_put_off_once() {
    let model = small([
        ScriptedResponse::text(words(800)),
        ScriptedResponse::text("Later."),
        ScriptedResponse::text("They talked."),
        ScriptedResponse::text("Done."),
    ]);
    let (notes, _news) = Notes::new();
    let hooks = HookRegistry::new();
    hooks.hook(CONTEXT_PRE_COMPACT).named("busy").run(|_| HookResult::deny("not now"));
    let session = builder(&model).hooks(hooks).observer(notes.clone()).start().await.unwrap();
    session.prompt("tell me").await;
    assert_eq!(session.prompt("and now?").await, answered("Later."));
    assert_eq!(session.history().len(), 5, "nothing was shortened");
    assert_eq!(session.prompt("now?").await, answered("Done."));
    assert_eq!(said(&session.history())[..2], ["system: Be brief.", SUMMARY]);
    let notes: Vec<_> = notes.all().into_iter().filter(|note| !note.starts_with("text:")).collect();
    let expected = ["compaction is deferred: Denied by hook busy: not now", "compacting the conversation"];
    assert_eq!(notes, expected);
}

#[tokio::test]
async fn a_person_who_wants_it_is_told_why_it_does_not_happen() {
    let session = builder(&small([])).start().await.unwrap();
    let nothing = TurnEnd::Failed("nothing to compact: the conversation is empty".to_owned());
    assert_eq!(session.compact().await, Err(nothing));

    let hooks = HookRegistry::new();
    hooks.hook(CONTEXT_PRE_COMPACT).named("busy").run(|_| HookResult::deny("not now"));
    let session = builder(&small([ScriptedResponse::text("Hi.")])).hooks(hooks).start().await.unwrap();
    session.prompt("hello").await;
    let refusal = Denial { by: "busy".into(), reason: "not now".to_owned() };
    assert_eq!(session.compact().await, Err(TurnEnd::Denied(refusal)));
    assert_eq!(said(&session.history()), ["system: Be brief.", "user: hello", "assistant: Hi."]);
}

#[tokio::test]
async fn without_a_summary_the_conversation_stays_as_it_is() {
    let unavailable = "the provider rejected the request: as the script says";
    for (answer, why) in [
        (ScriptedResponse::text(" "), "the model returned no summary; the conversation is unchanged"),
        (ScriptedResponse::failing(ScriptedFault::Rejected), unavailable),
    ] {
        let session = builder(&small([ScriptedResponse::text("Hi."), answer])).start().await.unwrap();
        session.prompt("hello").await;
        assert_eq!(session.compact().await, Err(TurnEnd::Failed(why.to_owned())));
        assert_eq!(said(&session.history()), ["system: Be brief.", "user: hello", "assistant: Hi."]);
    }
}

#[tokio::test]
async fn hooks_see_the_call_for_the_summary() {
    let model = small(talk());
    let hooks = HookRegistry::new();
    hooks.hook(PROVIDER_REQUEST).named("no-summaries").run(|event| {
        let last = event.messages().unwrap().as_array().unwrap().last().unwrap()["content"].to_string();
        last.contains("has to be shortened").then(|| HookResult::deny("not to this provider"))
    });
    let session = builder(&model).hooks(hooks).start().await.unwrap();
    session.prompt("tell me").await;
    let refusal = Denial { by: "no-summaries".into(), reason: "not to this provider".to_owned() };
    assert_eq!(session.prompt("and now?").await, TurnEnd::Denied(refusal));
    assert_eq!(model.requests().len(), 1);
    let long = format!("assistant: {}", words(800));
    let denied = "assistant: Denied by hook no-summaries: not to this provider";
    assert_eq!(said(&session.history()), ["system: Be brief.", "user: tell me", &long, "user: and now?", denied]);
}

#[tokio::test]
async fn hooks_change_what_is_summarised() {
    let model = small(talk());
    let hooks = HookRegistry::new();
    hooks.on(PROVIDER_REQUEST, |event| {
        let text = event.messages().unwrap().to_string().replace("tell me", "[redacted]");
        HookResult::set("messages", serde_json::from_str::<serde_json::Value>(&text).unwrap())
    });
    let session = builder(&model).hooks(hooks).start().await.unwrap();
    session.prompt("tell me").await;
    session.prompt("and now?").await;
    assert_eq!(said(&model.requests()[1].messages)[1], "user: [redacted]");
}

#[tokio::test]
async fn a_conversation_that_outgrew_the_model_can_be_shortened() {
    let model = small([
        ScriptedResponse::text("").calling("Echo", json!({ "text": words(1900) })),
        ScriptedResponse::text("They talked."),
        ScriptedResponse::text("Done."),
    ]);
    let session = builder(&model).start().await.unwrap();
    assert_eq!(session.prompt("go").await, answered("Done."));
    let question = &model.requests()[1].messages;
    assert!(count_messages(question) <= 900, "{}", count_messages(question));
    assert!(question.iter().any(|message| message.content.ends_with(" […]")));
    assert_eq!(said(&session.history()), ["system: Be brief.", SUMMARY, "assistant: Done."]);
}

#[tokio::test]
async fn the_call_for_a_summary_is_one_of_the_steps() {
    let model = small(talk());
    let options = SessionOptions { steps: 1, ..SessionOptions::default() };
    let session = builder(&model).options(options).start().await.unwrap();
    session.prompt("tell me").await;
    let limit = "the turn reached its limit of 1 model calls";
    assert_eq!(session.prompt("and now?").await, TurnEnd::Failed(limit.to_owned()));
    assert_eq!(session.compact().await, Ok(()), "it has a turn of its own");
}

#[tokio::test]
async fn a_resumed_session_goes_on_from_the_summary() {
    let place = Place::new();
    let session = builder(&small(talk())).store(place.store()).start().await.unwrap();
    session.prompt("tell me").await;
    session.prompt("and now?").await;
    let id = session.id().to_owned();
    let history = session.history();
    session.end("complete").await.unwrap();

    let model = small([ScriptedResponse::text("Still here.")]);
    let session = builder(&model).store(place.store()).resume(&id).await.unwrap();
    assert_eq!(session.history(), history);
    session.prompt("and then?").await;
    let expected = ["system: Be brief.", SUMMARY, "user: and now?", "assistant: Done.", "user: and then?"];
    assert_eq!(said(&model.requests()[0].messages), expected);
}

#[cfg(feature = "tokenizer")]
#[test]
fn tokens_are_counted_by_a_real_tokenizer() {
    use amplifier_agent::Tokenizer;
    use amplifier_core::TokenCounter as _;
    let check = |text: &str, tokens: usize| assert_eq!(Tokenizer.count(text), tokens, "{text}");
    check("", 0);
    check("Hello, world!", 4);
    check("antidisestablishmentarianism", 6);
    check("<|endoftext|>", 7);
    check("日本語", 2);
}

#[cfg(feature = "tokenizer")]
#[test]
fn no_text_is_too_odd_to_be_counted() {
    use amplifier_core::TokenCounter as _;

    // More than a million spaces are too much for the tokenizer alone.
    let many = [" ".repeat(1_200_000)];
    let odd = ["\n", "a", "^", "é", "👍", "\u{301}", "a ", " \n", "0"].map(|piece| piece.repeat(20_000));
    for text in many.into_iter().chain(odd) {
        let tokens = amplifier_agent::Tokenizer.count(&text);
        assert!((1..=text.len()).contains(&tokens), "{:.9}: {tokens}", text);
    }
}
