//! What a session does with what hooks say, as far as cases written as data cannot tell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use amplifier_core::testing::{CollectingDisplay, ManualClock, ScriptedApprovals};
use amplifier_core::{
    Approval, ApprovalOption, ApprovalRules, Contribution, Conversation, Coordinator, CoordinatorBuilder, Display,
    DisplayMessage, Effect, EventData, FailedContribution, HookRegistry, HookResult, Injection, InvalidRules, Level,
    Map, MemoryAudit, Message, OverBudget, PortError, SessionConfig, TOOL_POST, TOOL_PRE, TokenCounter, ToolPost,
    ToolPre, Verdict, data,
};
use futures::FutureExt;
use serde_json::{Value, json};

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

fn tool_post() -> ToolPost {
    ToolPost::new("Bash", Map::new(), "done", true, 5)
}

/// A session with one hook before every tool, that answers so.
fn answering(answer: impl Into<HookResult>) -> CoordinatorBuilder {
    let (hooks, answer) = (HookRegistry::new(), answer.into());
    hooks.hook(TOOL_PRE).named("hook").run(move |_| answer.clone());
    Coordinator::builder(hooks)
}

// ---- where injections land -----------------------------------------------------------------------------------------

enum Turn {
    Said(Message),
    Injected(Injection),
}
use Turn::{Injected, Said};

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

/// What the next two calls of the model see; the history is what the second one sees.
fn check_calls(turns: impl IntoIterator<Item = Turn>, first: &[&str], second: &[&str]) {
    let conversation = Conversation::new();
    let session = Coordinator::builder(HookRegistry::new()).context(conversation.clone()).build();
    for turn in turns {
        match turn {
            Said(message) => conversation.push(message),
            Injected(injection) => {
                let event = TOOL_POST.name();
                let answer = HookResult::inject(injection);
                let routed = session.process_hook_result(&event, "hook", answer, EventData::new());
                assert!(routed.now_or_never().unwrap().unwrap().is_proceed());
            }
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
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    let metadata = data! {
        "source": "hook", "hook_name": "linter", "event": "tool:pre", "timestamp": "1970-01-01T00:00:00.000000Z",
    };
    let message = Message { metadata: metadata.into(), ..Message::system("line 42 is too long") };
    assert_eq!(conversation.history(), [message]);
}

// ---- output and messages -------------------------------------------------------------------------------------------

/// What a display was shown: messages, and what hooks printed.
fn shown(answer: HookResult) -> (Vec<String>, Vec<(String, String)>) {
    let display = CollectingDisplay::new();
    let session = answering(answer).display(display.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    (display.messages().into_iter().map(|message| message.text).collect(), display.outputs())
}

#[test]
fn what_a_hook_printed_is_shown_unless_suppressed() {
    let answer = || HookResult::proceed().with_output("checked 3 files").info("all fine");
    let printed = ("hook:hook".to_owned(), "checked 3 files".to_owned());
    assert_eq!(shown(answer()), (vec!["all fine".to_owned()], vec![printed]));
    assert_eq!(shown(answer().suppress_output()), (vec!["all fine".to_owned()], vec![]), "a message is never hidden");
}

#[test]
fn a_display_without_a_transcript_shows_output_as_a_message() {
    #[derive(Clone)]
    struct Screen(CollectingDisplay);
    impl Display for Screen {
        async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
            self.0.show_message(message).await
        }
    }
    let display = CollectingDisplay::new();
    let session = answering(HookResult::proceed().with_output("hi")).display(Screen(display.clone())).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    let message = DisplayMessage { text: "hi".to_owned(), level: Level::Info, source: "hook:hook".to_owned() };
    assert_eq!(display.messages(), [message]);
}

// ---- tokens --------------------------------------------------------------------------------------------------------

/// Every word is a token.
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

fn truncating(budget: usize) -> SessionConfig {
    let injection_budget_per_turn = Some(budget);
    SessionConfig { injection_budget_per_turn, over_budget: OverBudget::Truncate, ..SessionConfig::default() }
}

#[test]
fn the_sessions_own_tokenizer_decides_where_an_injection_is_cut() {
    let text = "one two three four five";
    for (budget, kept) in [(1, 1), (3, 3), (5, 5), (9, 5)] {
        let conversation = Conversation::new();
        let builder = answering(HookResult::inject(text)).tokens(Words).config(truncating(budget));
        let session = builder.context(conversation.clone()).build();
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
        let said = &conversation.history()[0].content;
        assert!(text.starts_with(said.as_str()), "{said}");
        assert_eq!(Words.count(said), kept);
    }
}

#[test]
fn a_tokenizer_that_panics_does_not_take_the_agent_down() {
    struct Broken;
    impl TokenCounter for Broken {
        fn count(&self, _: &str) -> usize {
            panic!("boom");
        }
    }
    let session = answering(HookResult::inject("note")).tokens(Broken).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    }
}

// ---- contributions -------------------------------------------------------------------------------------------------

fn contribution(name: &str, value: impl Into<Value>) -> Contribution {
    Contribution { name: name.to_owned(), value: value.into() }
}

#[tokio::test(start_paused = true)]
async fn contributions_come_in_order_and_failures_are_skipped() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    session.register_contributor("tools", "later", async || {
        tokio::time::sleep(Duration::from_secs(5)).await;
        json!("first")
    });
    session.register_contributor("tools", "nothing", async || None::<Value>);
    session.register_contributor("tools", "failing", async || Err::<Value, _>("no disk"));
    session.register_contributor("tools", "panicking", async || -> Value { panic!("boom") });
    session.register_contributor("tools", "early", || -> std::future::Ready<Value> { panic!("boom") });
    session.register_contributor("tools", "hanging", pending::<Value>);
    session.register_contributor("tools", "sound", async || Ok::<_, PortError>(Some(json!({ "n": 1 }))));
    session.register_contributor("other", "elsewhere", async || json!("not asked for"));

    let given = session.collect_contributions("tools").await;
    assert_eq!(given.values, [contribution("later", "first"), contribution("sound", json!({ "n": 1 }))]);
    let failure = |name: &str, error: &str| FailedContribution { name: name.to_owned(), error: error.to_owned() };
    assert_eq!(
        given.failures,
        [
            failure("failing", "no disk"),
            failure("panicking", "panicked: boom"),
            failure("early", "panicked: boom"),
            failure("hanging", "gave nothing within 30s"),
        ]
    );
}

#[tokio::test]
async fn a_contributor_can_be_taken_away() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    let first = session.register_contributor("tools", "first", async || json!(1));
    session.clone().register_contributor("tools", "second", async || json!(2));
    first.unregister();
    first.unregister();
    assert_eq!(session.collect_contributions("tools").await.values, [contribution("second", 2)]);
    assert_eq!(session.collect_contributions("no-such-channel").await.values, []);
    drop(session);
    first.unregister();
}

// ---- the session's name --------------------------------------------------------------------------------------------

/// Whatever the hook answers, the session keeps its name: for the operation and for the hooks that follow.
fn check_session_id(answer: HookResult) {
    let (session, audit) = {
        let audit = MemoryAudit::new();
        (answering(answer).session_id("real").audit(audit.clone()).build(), audit)
    };
    session.hooks().hook("*").named("after").run(|event| assert_eq!(event.session_id(), Some("real"))).unwrap();
    session.hooks().set_default_fields([("session_id", "forged")]);
    let forged = EventData::from(tool_pre().with("session_id", "forged"));
    let (verdict, outcome) = session.emit_with_outcome(TOOL_PRE, forged).now_or_never().unwrap();
    assert!(outcome.reports().all(|report| report.error.is_none()), "{outcome:?}");
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    assert_eq!((data.session_id(), &Value::from(data.clone())["session_id"]), (Some("real"), &json!("real")));
    assert!(audit.records().iter().all(|record| record.session.as_deref() == Some("real")));
}

#[test]
fn the_session_id_cannot_be_forged() {
    check_session_id(HookResult::proceed());
    check_session_id(HookResult::set("session_id", "forged"));
    check_session_id(HookResult::modify(data! { "session_id": "forged" }));
    check_session_id(HookResult::modify(data! {}));
}

// ---- the record ----------------------------------------------------------------------------------------------------

fn operations(audit: &MemoryAudit) -> Vec<Value> {
    let records = audit.records().into_iter().map(|record| serde_json::to_value(&record).unwrap());
    records.filter(|record| record["kind"] == "intent" || record["kind"] == "outcome").collect()
}

#[test]
fn intent_and_outcome_of_an_operation_can_be_paired() {
    let audit = MemoryAudit::new();
    let hooks = HookRegistry::builder().clock(ManualClock::new()).build();
    hooks.hook(TOOL_PRE).run(|_| HookResult::set("tool_input", json!({ "command": "ls" })));
    let session = Coordinator::builder(hooks).session_id("s").audit(audit.clone()).build();
    session.begin_turn();
    let verdict = session.emit(TOOL_PRE, tool_pre().with("tool_call_id", "call-1")).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    let after = session.emit(TOOL_POST, tool_post().with("tool_call_id", "call-1")).now_or_never().unwrap();
    assert!(after.is_proceed());

    let record = |kind: &str, event: &str, own: Value| {
        let common = json!({
            "at": "1970-01-01T00:00:00.000000Z", "session": "s", "turn": 1, "event": event, "kind": kind,
            "tool_call_id": "call-1",
        });
        let (Value::Object(common), Value::Object(own)) = (common, own) else { panic!("objects") };
        Value::Object(common.into_iter().chain(own).collect())
    };
    // The intent names what will run: the data after the modification.
    let intent = record("intent", "tool:pre", json!({ "digest": data.digest().unwrap().to_string() }));
    let outcome = record("outcome", "tool:post", json!({ "success": true }));
    assert_eq!(operations(&audit), [intent, outcome]);
}

#[test]
fn an_operation_whose_result_is_withheld_has_an_outcome_too() {
    let audit = MemoryAudit::new();
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_POST).named("censor").run(|_| HookResult::deny("secret"));
    let session = Coordinator::builder(hooks).audit(audit.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    assert!(!session.emit(TOOL_POST, tool_post()).now_or_never().unwrap().is_proceed());
    let kinds: Vec<_> = operations(&audit).iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds, ["intent", "outcome"], "the tool has run");
}

// ---- approvals -----------------------------------------------------------------------------------------------------

#[test]
fn the_person_sees_what_will_run() {
    let person = ScriptedApprovals::new(["Allow"]);
    let session = answering(HookResult::ask("Go?")).approvals(person.clone()).build();
    session.hooks().on(TOOL_PRE, |_| HookResult::set("tool_input", json!({ "command": "ls" })));
    let verdict = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    let request = &person.requests()[0];
    assert_eq!((&request.data, request.digest), (&data, data.digest().unwrap()));
    assert_eq!(data["tool_input"]["command"], "ls");
}

#[test]
fn a_session_can_forget_lasting_answers() {
    let person = ScriptedApprovals::new(["Allow always", "Deny"]);
    let approval = Approval::new("Go?").options(["Allow always", "Deny"]);
    let session = answering(HookResult::ask(approval)).approvals(person.clone()).build();
    let emit = || session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
    assert_eq!((emit(), emit()), (true, true));
    session.forget_answers();
    assert_eq!((emit(), person.requests().len()), (false, 2));
}

fn process(session: &Coordinator, event: &str, answer: HookResult) -> Verdict {
    let event = event.parse().unwrap();
    let routed = session.process_hook_result(&event, "hook", answer, data! { "n": 1 });
    routed.now_or_never().unwrap().unwrap()
}

#[test]
fn a_question_with_two_meanings_is_not_granted_when_processed_alone() {
    let options = [ApprovalOption::new("Go", Effect::AllowOnce), ApprovalOption::new("Go", Effect::Deny)];
    let person = ScriptedApprovals::new(["Go"]);
    let session = Coordinator::builder(HookRegistry::new()).approvals(person).build();
    let verdict = process(&session, "tool:pre", HookResult::ask(Approval::new("Go?").options(options)));
    assert!(!verdict.is_proceed());
}

#[test]
fn answers_processed_alone_have_no_effect_at_events_that_are_only_observed() {
    let person = ScriptedApprovals::new(["Deny"]);
    let session = Coordinator::builder(HookRegistry::new()).approvals(person.clone()).build();
    for answer in [HookResult::deny("no"), HookResult::set("n", 2), HookResult::ask("Go?")] {
        assert_eq!(process(&session, "session:end", answer), Verdict::Proceed(data! { "n": 1 }));
    }
    assert_eq!(person.requests().len(), 0);
}

fn rules_file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rules-{name}.json"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn rules_that_cannot_be_used_say_why() {
    let load = |name: &str, text: &str| ApprovalRules::load(rules_file(name, text));
    let missing = ApprovalRules::load(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-such-file.json"));
    assert!(matches!(missing, Err(InvalidRules::Io { .. })));
    for (name, text) in [
        ("empty", ""),
        ("list", "[]"),
        ("cut", r#"{ "guard:*": "allow""#),
        ("word", r#"{ "guard:*": "maybe" }"#),
        ("type", r#"{ "guard:*": true }"#),
    ] {
        let error = load(name, text).unwrap_err();
        assert!(matches!(error, InvalidRules::Form(_)), "{text}: {error}");
    }
    for rule in ["everything", ":*", "*:*"] {
        let error = load("hook", &format!(r#"{{ "guard:*": "allow", "{rule}": "allow" }}"#)).unwrap_err();
        assert!(error.to_string().contains(&format!("the rule `{rule}` names no hook")), "{error}");
    }
    assert_eq!(load("none", "{}").unwrap(), ApprovalRules::default());
}

#[test]
fn rules_from_a_file_answer_for_the_person() {
    let rules = ApprovalRules::load(rules_file("used", r#"{ "hook:Write *?": "allow" }"#)).unwrap();
    for (prompt, proceeds) in [("Write a.txt?", true), ("Delete a.txt?", false)] {
        let session = answering(HookResult::ask(prompt)).approval_rules(rules.clone()).build();
        assert_eq!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed(), proceeds, "{prompt}");
    }
}
