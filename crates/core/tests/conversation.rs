//! The position and lifetime of injections in a conversation.

use amplifier_core::testing::ManualClock;
use amplifier_core::{
    Conversation, Coordinator, EventData, HookRegistry, HookResult, Injection, Map, Message, TOOL_POST, TOOL_PRE,
    ToolPost, ToolPre, data,
};
use futures::FutureExt;
use serde_json::json;

enum Turn {
    Said(Message),
    Injected(Injection),
    /// At the end of this tool call.
    InjectedAfter(&'static str, Injection),
}
use Turn::{Injected, InjectedAfter, Said};

fn calls(ids: &[&str]) -> Turn {
    Said(ids.iter().fold(Message::assistant("calls"), |message, id| message.calling(*id, "Bash", json!({}))))
}

fn result(id: &str) -> Turn {
    Said(Message::tool_result(id, format!("result {id}")))
}

fn user(text: &str) -> Turn {
    Said(Message::user(text))
}

fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.content.as_str()).collect()
}

/// The messages of the next two calls to the model; the second one has the history.
fn check_calls(turns: impl IntoIterator<Item = Turn>, first: &[&str], second: &[&str]) {
    let conversation = Conversation::new();
    let session = Coordinator::builder(HookRegistry::new()).context(conversation.clone()).build();
    let inject = |injection: Injection, data: EventData| {
        let event = TOOL_POST.name();
        let routed = session.process_hook_result(&event, "hook", HookResult::inject(injection), data);
        assert!(routed.now_or_never().unwrap().unwrap().is_proceed());
    };
    for turn in turns {
        match turn {
            Said(message) => conversation.push(message),
            Injected(injection) => inject(injection, EventData::new()),
            InjectedAfter(id, injection) => inject(injection, data! { "tool_call_id": id }),
        }
    }
    assert_eq!(contents(&conversation.next_call()), first);
    assert_eq!(contents(&conversation.next_call()), second);
    assert_eq!(contents(&conversation.history()), second);
}

#[test]
fn an_injection_stays_in_the_history() {
    let said = ["hi", "note"];
    check_calls([user("hi"), Injected("note".into())], &said, &said);
}

#[test]
fn an_injection_never_stands_between_a_call_and_its_result() {
    let said = ["calls", "result 1", "note"];
    check_calls([calls(&["1"]), Injected("note".into()), result("1")], &said, &said);
    check_calls([calls(&["1"]), result("1"), Injected("note".into())], &said, &said);
}

#[test]
fn an_injection_waits_for_all_results_of_parallel_calls() {
    let said = ["calls", "result 1", "result 2", "before", "between"];
    let turns = [calls(&["1", "2"]), Injected("before".into()), result("1"), Injected("between".into()), result("2")];
    check_calls(turns, &said, &said);
    let said = ["calls", "result 2", "result 1", "note", "next"];
    check_calls([calls(&["1", "2"]), result("2"), Injected("note".into()), result("1"), user("next")], &said, &said);
}

#[test]
fn an_injection_waits_for_calls_that_were_made_in_several_messages() {
    let said = ["calls", "calls", "result 1", "result 2", "note"];
    check_calls([calls(&["1"]), calls(&["2"]), Injected("note".into()), result("1"), result("2")], &said, &said);
}

#[test]
fn an_ephemeral_injection_is_seen_once() {
    let note = || Injected(Injection::new("note").ephemeral());
    check_calls([user("hi"), note()], &["hi", "note"], &["hi"]);
    check_calls([calls(&["1"]), note(), result("1")], &["calls", "result 1", "note"], &["calls", "result 1"]);
}

#[test]
fn an_ephemeral_injection_can_be_appended_to_the_last_tool_result() {
    let note = |text: &str| Injected(Injection::new(text).append_to_last_tool_result());
    let after = ["calls", "result 1"];
    check_calls([calls(&["1"]), result("1"), note("note")], &["calls", "result 1\n\nnote"], &after);
    check_calls([calls(&["1"]), note("a"), result("1"), note("b")], &["calls", "result 1\n\na\n\nb"], &after);
}

#[test]
fn without_a_tool_result_at_the_end_it_becomes_its_own_message() {
    let note = || Injected(Injection::new("note").append_to_last_tool_result());
    check_calls([note()], &["note"], &[]);
    let after = ["calls", "result 1", "thanks"];
    check_calls([calls(&["1"]), result("1"), user("thanks"), note()], &["calls", "result 1", "thanks", "note"], &after);
}

#[test]
fn an_injected_message_tells_where_it_came_from() {
    let conversation = Conversation::new();
    let hooks = HookRegistry::builder().clock(ManualClock::new()).build();
    hooks.hook(TOOL_PRE).named("linter").run(|_| HookResult::inject("line 42 is too long"));
    let session = Coordinator::builder(hooks).context(conversation.clone()).build();
    assert!(session.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).now_or_never().unwrap().is_proceed());
    let metadata = data! {
        "source": "hook", "hook_name": "linter", "event": "tool:pre", "timestamp": "1970-01-01T00:00:00.000000Z",
    };
    let message = Message { metadata: metadata.into(), ..Message::system("line 42 is too long") };
    assert_eq!(conversation.history(), [message]);
}

#[test]
fn a_result_that_never_comes_holds_no_injection_back() {
    let said = ["calls", "note", "next"];
    check_calls([calls(&["1"]), Injected("note".into()), user("next")], &said, &said);
    let said = ["calls", "result 1", "note", "next", "later"];
    let turns = [calls(&["1", "2"]), result("1"), Injected("note".into()), user("next"), Injected("later".into())];
    check_calls(turns, &said, &said);
}

#[test]
fn a_result_that_never_comes_holds_back_nothing_of_the_calls_that_follow() {
    let said = ["calls", "lost", "next", "calls", "result 2", "note"];
    let begin = [calls(&["1"]), Injected("lost".into()), user("next")];
    let turns = begin.into_iter().chain([calls(&["2"]), Injected("note".into()), result("2")]);
    check_calls(turns, &said, &said);
}

#[test]
fn of_parallel_calls_the_one_that_an_injection_is_about_gets_it() {
    let note = |id: &'static str, text: &str| InjectedAfter(id, Injection::new(text).append_to_last_tool_result());
    let after = ["calls", "result 1", "result 2"];
    let (first, second) = (["calls", "result 1\n\na", "result 2"], ["calls", "result 1", "result 2\n\na"]);
    let begin = || calls(&["1", "2"]);
    check_calls([begin(), result("1"), result("2"), note("1", "a")], &first, &after);
    check_calls([begin(), result("1"), result("2"), note("2", "a")], &second, &after);
    // The tool may have ended before its result, or that of the other call, was stored.
    check_calls([begin(), result("1"), note("1", "a"), result("2")], &first, &after);
    check_calls(
        [begin(), note("1", "a"), note("2", "b"), result("1"), result("2")],
        &["calls", "result 1\n\na", "result 2\n\nb"],
        &after,
    );
    check_calls([begin(), result("1"), result("2"), note("no-such-call", "a")], &second, &after);
}

#[test]
fn an_emission_after_a_tool_tells_which_call_it_is_about() {
    let conversation = Conversation::new();
    let hooks = HookRegistry::new();
    hooks.on(TOOL_POST, |_| HookResult::inject(Injection::new("note").append_to_last_tool_result()));
    let session = Coordinator::builder(hooks).context(conversation.clone()).build();
    conversation.push(Message::assistant("calls").calling("1", "Bash", json!({})).calling("2", "Bash", json!({})));
    conversation.push(Message::tool_result("1", "result 1"));
    conversation.push(Message::tool_result("2", "result 2"));
    let post = ToolPost::new("Bash", Map::new(), "result 1", true, 5).with("tool_call_id", "1");
    assert!(session.emit(TOOL_POST, post).now_or_never().unwrap().is_proceed());
    assert_eq!(contents(&conversation.next_call()), ["calls", "result 1\n\nnote", "result 2"]);
}

#[test]
fn an_injection_beside_a_denial_or_a_question_is_not_lost() {
    for answer in [HookResult::deny("no"), HookResult::ask("Go?")] {
        let conversation = Conversation::new();
        let session = Coordinator::builder(HookRegistry::new()).context(conversation.clone()).build();
        let event = TOOL_PRE.name();
        let routed = session.process_with_injection(&event, "hook", answer, Some("note".into()), EventData::new());
        assert!(!routed.now_or_never().unwrap().unwrap().is_proceed());
        assert_eq!(contents(&conversation.history()), ["note"]);
    }
}
