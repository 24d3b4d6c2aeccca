//! Robustness against invalid names and results, huge and deep data, and misbehaving hooks.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use amplifier_core::testing::{ManualClock, ScriptedAnswer, ScriptedApprovals};
use amplifier_core::{
    Approval, AuditEntry, Coordinator, EventData, EventName, EventPattern, EventType, FlatAction, FlatResult, Hook,
    HookBuilder, HookError, HookRegistry, HookResult, IntentEntry, Map, MemoryAudit, NestingError, OnError, Outcome,
    Registration, TOOL_PRE, ToolPre, Verdict, data,
};
use futures::FutureExt;
use serde_json::{Value, json};

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

fn reports(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.reports().map(|report| (report.hook, report.answer_or_failure().as_str())).collect()
}

// ---- names -------------------------------------------------------------------------------------------------------

#[test]
fn malformed_event_names_are_refused_everywhere() {
    let long = format!("a:{}", "x".repeat(127));
    for (name, problem) in [
        ("", "no colon"),
        ("tool", "no colon"),
        (":", "one side of the colon is empty"),
        (":pre", "one side of the colon is empty"),
        ("tool:", "one side of the colon is empty"),
        ("tool::pre", "more than one colon"),
        ("tool:pre:x", "more than one colon"),
        ("tool: pre", "contains a space or a control character"),
        ("tool:pre\n", "contains a space or a control character"),
        ("tool:pre\0", "contains a space or a control character"),
        ("tool:\u{a0}pre", "contains a space or a control character"),
        ("tool:*", "only hooks are registered by pattern, an event has one name"),
        ("*", "only hooks are registered by pattern, an event has one name"),
        (&long, "longer than 128 bytes"),
    ] {
        let hooks = HookRegistry::new();
        let error = name.parse::<EventName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid event name `{name}`: {problem}; expected the form `tool:pre`")
                .replace(&long, &long[..128])
        );
        assert_eq!(hooks.emit(name, EventData::new()).now_or_never().unwrap().unwrap_err(), error);
        let collected = hooks.emit_and_collect(name, EventData::new(), Duration::ZERO).now_or_never();
        assert_eq!(collected.unwrap().unwrap_err(), error);
        assert_eq!(hooks.listeners(name).err().unwrap(), error);
        assert_eq!(hooks.list_handlers_of(name).unwrap_err(), error);
        let session = Coordinator::builder(hooks.clone()).build();
        assert_eq!(session.emit(name, EventData::new()).now_or_never().unwrap().unwrap_err(), error);
        if !name.contains('*') {
            assert_eq!(hooks.on(name, |_| ()).unwrap_err(), error);
        }
        assert_eq!(hooks.list_handlers(), []);
    }
}

#[test]
fn malformed_patterns_are_refused() {
    let hooks = HookRegistry::new();
    for pattern in ["**", "tool*", "*:", ":*", "a:*:b", "tool :*", "*:pre\t"] {
        assert!(hooks.on(pattern, |_| ()).is_err(), "{pattern}");
    }
    for pattern in ["*", "*:*", "tool:*", "*:pre", "t*l:p*e"] {
        assert!(hooks.on(pattern, |_| ()).is_ok(), "{pattern}");
        assert!(EventPattern::filter(pattern).is_ok(), "{pattern}");
    }
    // A hook takes them literally; a filter that found nothing for them would mislead.
    for pattern in ["my:pr?", "my:[a-z]", "my:{one,two}", "my:\\*"] {
        assert!(hooks.on(pattern, |_| ()).is_ok(), "{pattern}");
        let error = EventPattern::filter(pattern).unwrap_err().to_string();
        assert!(error.contains("the only wildcard of a filter is `*`"), "{error}");
    }
}

#[test]
fn an_error_about_an_endless_name_is_short() {
    let error = "x".repeat(1_000_000).parse::<EventName>().unwrap_err();
    assert!(error.to_string().len() < 300);
}

#[test]
fn a_hundred_thousand_event_names_are_no_problem() {
    let hooks = HookRegistry::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    hooks
        .hook("*")
        .named("all")
        .run(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    for number in 0..100_000 {
        let outcome = hooks.emit(format!("n:{number}").as_str(), EventData::new()).now_or_never().unwrap().unwrap();
        assert_eq!(outcome.reports().len(), 1);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 100_000);
}

// ---- answers -----------------------------------------------------------------------------------------------------

/// The answer is unreadable, and the error mentions this. One that states an action tried to intervene.
fn check_unreadable(answer: Value, mentions: &str) {
    let intervenes = answer.get("action").is_some_and(|action| action != "continue");
    match HookResult::from_json(answer.clone()) {
        Err(HookError::Unreadable(what)) if !intervenes => assert!(what.contains(mentions), "{answer}: {what}"),
        Err(HookError::InvalidAnswer(what)) if intervenes => assert!(what.contains(mentions), "{answer}: {what}"),
        other => panic!("{answer}: {other:?}"),
    }
}

#[test]
fn answers_that_are_no_results_are_unreadable() {
    for (answer, mentions) in [
        (json!(true), "found a boolean"),
        (json!(1), "found a number"),
        (json!("deny"), "found a text"),
        (json!([{ "action": "deny" }]), "found a list"),
        (json!({ "acton": "deny" }), "acton"),
        (json!({ "action": "explode" }), "action"),
        (json!({ "action": "Deny" }), "action"),
        (json!({ "action": "modify" }), "`modify` needs `data`"),
        (json!({ "action": "modify", "data": null }), "`modify` needs `data`"),
        (json!({ "action": "inject_context" }), "`inject_context` needs `context_injection`"),
    ] {
        check_unreadable(answer, mentions);
    }
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    for (field, wrong) in [
        ("action", json!(1)),
        ("action", json!(null)),
        ("data", json!([])),
        ("data", json!("text")),
        ("reason", json!(1)),
        ("context_injection", json!({})),
        ("context_injection_role", json!("robot")),
        ("ephemeral", json!("yes")),
        ("append_to_last_tool_result", json!(1)),
        ("approval_prompt", json!([])),
        ("approval_options", json!("Allow")),
        ("approval_options", json!([1])),
        ("approval_options", json!([{ "label": "Go" }])),
        ("approval_options", json!([{ "label": "Go", "effect": "explode" }])),
        ("approval_options", json!([{ "label": "Go", "effect": "deny", "extra": 1 }])),
        ("approval_timeout", json!("5")),
        ("approval_timeout", json!(null)),
        ("approval_timeout", json!(-1)),
        ("approval_default", json!("maybe")),
        ("approval_fallback", json!("yes")),
        ("suppress_output", json!(null)),
        ("user_message", json!(1)),
        ("user_message_level", json!("loud")),
    ] {
        check_unreadable(json!({ field: wrong }), field);
    }
}

#[test]
fn a_time_that_is_no_time_is_unreadable_whatever_the_action() {
    for action in [FlatAction::Continue, FlatAction::Deny, FlatAction::AskUser] {
        for approval_timeout in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -f64::EPSILON] {
            let flat: FlatResult = FlatResult { action, approval_timeout, ..FlatResult::default() };
            let expected = format!("the answer cannot be read: `approval_timeout` is {approval_timeout}");
            let expected = match action {
                FlatAction::Continue => HookError::Unreadable(expected),
                _ => HookError::InvalidAnswer(expected),
            };
            assert_eq!(<HookResult>::from_flat(flat), Err(expected));
        }
    }
}

/// Text that must not get from an unreadable result into logs: a secret, and characters that control a terminal.
fn check_says_nothing(answer: Value) {
    let shown: String = answer.to_string().chars().take(100).collect();
    let error = HookResult::from_json(answer).unwrap_err().to_string();
    assert!(error.len() < 1_000, "{shown}: {} bytes", error.len());
    assert!(!error.chars().any(char::is_control), "{shown}: {error:?}");
    assert!(!error.contains("hunter2") && !error.contains("424242"), "{shown}: {error}");
}

#[test]
fn an_error_about_an_answer_does_not_repeat_values_of_the_wrong_type() {
    let texts =
        ["hunter2", "\u{1b}[31mhunter2", "a \"b\" `c` hunter2", "x, expected hunter2", "\", expected `hunter2`"];
    let others = [json!(424242), json!(-424242), json!(424242.5), json!(["hunter2"]), json!({ "password": "hunter2" })];
    for field in ["data", "ephemeral", "append_to_last_tool_result", "approval_timeout", "suppress_output"] {
        for text in texts {
            check_says_nothing(json!({ field: text }));
        }
    }
    for field in ["reason", "context_injection", "approval_prompt", "user_message", "ephemeral", "suppress_output"] {
        for other in &others {
            check_says_nothing(json!({ field: other }));
        }
    }
    for other in others.iter().cloned().chain(texts.map(Value::from)) {
        check_says_nothing(json!({ "approval_options": [{ "label": "Go", "effect": other }] }));
    }
    check_says_nothing(json!("\u{1b}[31mhunter2"));
}

#[test]
fn an_error_about_an_answer_holds_no_control_characters_and_is_short() {
    for text in ["\u{1b}[31m".to_owned(), "\u{9b}31m\r\n\u{7f}".to_owned(), "x".repeat(1_000_000)] {
        check_says_nothing(json!({ "action": text }));
        check_says_nothing(json!({ "user_message_level": text }));
        check_says_nothing(json!({ "approval_options": [{ "label": "Go", text.as_str(): 1 }] }));
        check_says_nothing(json!({ text.as_str(): 1 }));
    }
}

#[test]
fn on_error_decides_about_an_unreadable_answer() {
    for (on_error, denied) in [(OnError::Continue, false), (OnError::Deny, true)] {
        let hooks = HookRegistry::new();
        let bad = hooks.hook(TOOL_PRE).named("bad").on_error(on_error);
        bad.run(|_| HookResult::from_json(json!("deny")));
        let outcome = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
        assert_eq!(reports(&outcome), [("bad", "unreadable")]);
        assert_eq!(outcome.denial().is_some(), denied);
    }
}

#[test]
fn data_that_a_view_cannot_read_makes_the_hook_fail_and_on_error_decides() {
    let missing = |field: &str| format!("the data of `tool:pre` has no field `{field}`");
    let mistyped = |field: &str, expected: &str| format!("the field `{field}` of `tool:pre` is not {expected}");
    for (data, problem) in [
        (data! {}, missing("tool_name")),
        (data! { "tool_name": "Bash" }, missing("tool_input")),
        (data! { "tool_name": 1, "tool_input": {} }, mistyped("tool_name", "text")),
        (data! { "tool_name": null, "tool_input": {} }, mistyped("tool_name", "text")),
        (data! { "tool_name": "Bash", "tool_input": [] }, mistyped("tool_input", "an object")),
    ] {
        for on_error in [OnError::Continue, OnError::Deny] {
            let hooks = HookRegistry::new();
            hooks.hook(TOOL_PRE).named("typed").on_error(on_error).run(|_| ());
            hooks.hook("tool:pre").named("untyped").run(|_| ()).unwrap();
            let outcome = hooks.emit(TOOL_PRE, data.clone()).now_or_never().unwrap();
            let error = outcome.reports().next().unwrap().error.cloned();
            assert_eq!(error, Some(HookError::Unreadable(problem.clone())));
            match on_error {
                OnError::Continue => {
                    assert_eq!(reports(&outcome), [("typed", "unreadable"), ("untyped", "continue")]);
                }
                _ => assert!(outcome.denial().unwrap().reason().contains(&problem)),
            }
        }
    }
}

#[test]
fn an_optional_field_may_be_null() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("typed").run(|event| assert_eq!(event.tool_call_id(), None));
    let data = data! { "tool_name": "Bash", "tool_input": {}, "tool_call_id": null };
    assert_eq!(reports(&hooks.emit(TOOL_PRE, data).now_or_never().unwrap()), [("typed", "continue")]);
}

// ---- reasons -------------------------------------------------------------------------------------------------------

/// Denials for the model are readable and have a limited size.
fn check_reason(person: &str, answer: impl Fn() -> Result<HookResult, HookError> + Send + Sync + 'static) {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(move |_| answer());
    let session = Coordinator::builder(hooks).approvals(ScriptedApprovals::new([person])).build();
    let Verdict::Denied { by, reason } = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap() else {
        panic!("it was to be denied");
    };
    assert_eq!(&*by, "guard");
    assert!(!reason.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
    let size = reason.chars().count();
    assert!((5_000..=10_240).contains(&size), "{size}");
}

#[test]
fn a_reason_is_bounded_and_holds_no_control_characters() {
    let flood = || "\u{1b}[31mno\u{9b}0m\r\0 ünd\n\t".repeat(60_000);
    assert!(flood().len() > 1_000_000);
    check_reason("Deny", move || Ok(HookResult::deny(flood())));
    check_reason("Deny", move || Err(HookError::failed(flood())));
    check_reason("Deny", move || std::panic::panic_any(flood()));
    check_reason("Deny", move || Ok(HookResult::ask(flood())));
    check_reason(&flood(), || Ok(HookResult::ask("Go?")));
}

#[test]
fn the_reason_of_an_answer_processed_alone_is_bounded_too() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    let answer = HookResult::deny("\u{1b}x".repeat(1_000_000));
    let event = TOOL_PRE.name();
    let routed = session.process_hook_result(&event, "guard", answer, EventData::new());
    let reason = "x".repeat(10_240);
    assert_eq!(routed.now_or_never().unwrap(), Ok(Verdict::Denied { by: "guard".into(), reason }));
}

// ---- data --------------------------------------------------------------------------------------------------------

#[test]
fn ten_megabytes_of_data_are_passed_on_without_a_copy() {
    let blob = "x".repeat(10_000_000);
    let place = blob.as_ptr() as usize;
    let at = |data: &EventData| data.text("blob").unwrap().as_ptr() as usize;
    let hooks = HookRegistry::new();
    hooks.set_default_fields([("project", "demo")]);
    hooks.on("big:data", move |event| assert_eq!(at(&event), place)).unwrap();
    hooks.on("big:data", |_| HookResult::set("note", "small")).unwrap();
    hooks.on("big:data", move |event| assert_eq!((at(&event), &event["note"]), (place, &json!("small")))).unwrap();
    let session = Coordinator::builder(hooks.clone()).session_id("s").audit(MemoryAudit::new()).build();

    let emitted = session.emit_with_outcome("big:data", EventData::from([("blob", blob)])).now_or_never();
    let (verdict, outcome) = emitted.unwrap().unwrap();
    assert!(outcome.reports().all(|report| report.error.is_none()), "{:?}", reports(&outcome));
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    assert_eq!(at(&data), place);
}

// Built by hand: `json!` would serialize the inner levels again, one call deeper each.
fn deep(levels: usize) -> EventData {
    let nested = (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let input = Map::from_iter([("nested".to_owned(), nested)]);
    ToolPre::new("Bash", input).into()
}

#[tokio::test]
async fn deep_data_is_emitted_but_nobody_can_agree_to_it() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("Go?"));
    let person = ScriptedApprovals::new(["Allow"]);
    let session = Coordinator::builder(hooks.clone()).approvals(person.clone()).build();

    assert_eq!(deep(2_000).digest(), Err(NestingError));
    let outcome = hooks.emit(TOOL_PRE, deep(2_000)).await;
    assert_eq!(reports(&outcome), [("asker", "ask_user")]);
    let reason = "Approval failed (the data is nested deeper than 128 levels): Go?".to_owned();
    assert_eq!(
        session.emit(TOOL_PRE, deep(2_000)).await,
        Verdict::Denied { by: "asker".into(), reason },
        "what cannot be named cannot be agreed to"
    );
    assert_eq!(person.requests().len(), 0);
    assert!(session.emit(TOOL_PRE, deep(100)).await.is_proceed());
}

#[test]
fn deep_data_that_nobody_asks_about_is_recorded_without_a_digest() {
    let audit = MemoryAudit::new();
    let session = Coordinator::builder(HookRegistry::new()).audit(audit.clone()).build();
    assert!(session.emit(TOOL_PRE, deep(2_000)).now_or_never().unwrap().is_proceed());
    let records = audit.records();
    let intent = records.iter().find(|record| record.entry.kind() == "intent").unwrap();
    assert!(matches!(intent.entry, AuditEntry::Intent(IntentEntry { digest: None, .. })));
}

// ---- hooks that misbehave ----------------------------------------------------------------------------------------

type Builder<'a> = HookBuilder<'a, EventType<ToolPre>>;

/// The hook panics: that is in its report, `on_error` decides, observers still run, and so does the next event.
async fn check_panic(text: &str, register: impl Fn(Builder<'_>) -> Registration) {
    let hooks = HookRegistry::new();
    register(hooks.hook(TOOL_PRE).named("bad").on_error(OnError::Deny));
    hooks.hook(TOOL_PRE).named("watcher").observer().run(|_| ());
    for _ in 0..2 {
        let outcome = hooks.emit(TOOL_PRE, tool_pre()).await;
        assert_eq!(reports(&outcome), [("bad", "panicked"), ("watcher", "continue")]);
        assert_eq!(outcome.denial().unwrap().reason(), format!("the hook failed: panicked: {text}"));
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("bomb");
        }
    }
}

/// Answers, and panics when it is dropped afterwards.
struct Exploding(#[allow(dead_code, reason = "it is there to be dropped")] Bomb);

impl Future for Exploding {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

#[tokio::test]
async fn a_panic_is_a_report() {
    check_panic("boom", |bad| bad.run(|_| -> () { panic!("boom") })).await;
}

#[tokio::test]
async fn a_formatted_panic_is_a_report() {
    check_panic("boom 7", |bad| bad.run(|_| -> () { std::panic::panic_any(format!("boom {}", 7)) })).await;
}

#[tokio::test]
async fn a_panic_without_text_is_a_report() {
    check_panic("no message", |bad| bad.run(|_| -> () { std::panic::panic_any(7) })).await;
}

#[tokio::test]
async fn a_panic_before_the_future_is_there_is_a_report() {
    let early = |event: amplifier_core::Event<ToolPre>| {
        assert_ne!(event.tool_name(), "Bash", "early");
        async {}
    };
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("bad").run(early);
    assert_eq!(reports(&hooks.emit(TOOL_PRE, tool_pre()).await), [("bad", "panicked")]);
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_a_report() {
    check_panic("boom", |bad| bad.run(|_| async { panic!("boom") as () })).await;
}

#[tokio::test]
async fn a_panic_after_an_await_is_a_report() {
    let late = |bad: Builder<'_>| {
        bad.run(|_| async {
            tokio::task::yield_now().await;
            panic!("boom") as ()
        })
    };
    check_panic("boom", late).await;
}

#[tokio::test]
async fn a_panic_while_the_answered_future_is_dropped_is_a_report() {
    check_panic("bomb", |bad| bad.run(|_| Exploding(Bomb))).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_future_out_of_time_is_dropped_is_a_report() {
    let hanging = |bad: Builder<'_>| {
        bad.run(|_| async {
            let _bomb = Bomb;
            pending::<()>().await;
        })
    };
    check_panic("bomb", hanging).await;
}

#[tokio::test]
async fn a_panic_whose_payload_panics_is_a_report() {
    check_panic("no message", |bad| bad.run(|_| -> () { std::panic::panic_any(Bomb) })).await;
}

/// Runs until something waits for the clock, then lets that much time pass.
async fn after<T>(clock: &ManualClock, time: Duration, future: impl Future<Output = T>) -> T {
    tokio::join!(future, clock.advance_when_waiting(time)).0
}

#[tokio::test]
async fn a_hook_that_never_answers_is_given_up() {
    let clock = ManualClock::new();
    let hooks = HookRegistry::builder().clock(clock.clone()).build();
    let limit = Duration::from_secs(2);
    hooks.hook(TOOL_PRE).named("hanging").timeout(limit).run(|_| pending::<()>());
    hooks.hook(TOOL_PRE).named("next").run(|_| ());
    for _ in 0..2 {
        let outcome = after(&clock, limit, hooks.emit(TOOL_PRE, tool_pre())).await;
        assert_eq!(reports(&outcome), [("hanging", "timed_out"), ("next", "continue")]);
        let report = outcome.reports().next().unwrap();
        assert_eq!((report.error, report.took), (Some(&HookError::TimedOut(limit)), limit));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_its_time_does_not_count() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("slow").timeout(Duration::from_secs(2)).run(|_| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        HookResult::deny("too late")
    });
    hooks.hook(TOOL_PRE).named("in time").timeout(Duration::from_secs(2)).run(|_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        HookResult::set("seen", true)
    });
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).await;
    assert_eq!(reports(&outcome), [("slow", "timed_out"), ("in time", "modify")]);
    assert_eq!((outcome.denial(), &outcome.data["seen"]), (None, &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_of_ages_is_a_time_limit() {
    let manual = ManualClock::new();
    manual.advance(Duration::from_secs(1));
    for hooks in [HookRegistry::new(), HookRegistry::builder().clock(Arc::new(manual)).build()] {
        hooks.hook(TOOL_PRE).named("patient").timeout(Duration::MAX).run(|_| tokio::task::yield_now());
        let _ = hooks.emit(TOOL_PRE, tool_pre()).await;
        let answers = hooks.emit_and_collect(TOOL_PRE, tool_pre(), Duration::MAX).await;
        assert_eq!(answers, []);
    }
}

/// Ends itself while it runs, and panics when it is dropped.
struct Leaving {
    own: Arc<OnceLock<Registration>>,
    #[allow(dead_code, reason = "it is there to be dropped")]
    bomb: Bomb,
}

impl Hook for Leaving {
    async fn handle(&self, _: &str, _: &EventData) -> Result<HookResult, HookError> {
        self.own.get().unwrap().unregister();
        Ok(HookResult::proceed())
    }
}

/// A registry whose only hook unregisters itself, and panics when it is dropped.
fn leaving() -> HookRegistry {
    let (hooks, own) = (HookRegistry::new(), Arc::new(OnceLock::new()));
    let registration = hooks.hook(TOOL_PRE).named("leaving").handler(Leaving { own: own.clone(), bomb: Bomb });
    own.set(registration).unwrap();
    hooks
}

#[test]
fn a_hook_that_panics_while_it_is_dropped_does_not_reach_the_agent() {
    let hooks = leaving();
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert_eq!(reports(&outcome), [("leaving", "continue")]);
    drop(outcome);
    assert_eq!(reports(&hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap()), []);

    let session = Coordinator::builder(leaving()).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    }

    let bomb = Bomb;
    let unused = hooks.on(TOOL_PRE, move |_| assert!(size_of_val(&bomb) == 0));
    unused.unregister();
    drop(leaving());
}

// ---- runtimes ------------------------------------------------------------------------------------------------------

/// Runs a future on this thread alone.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Hooks that have to wait are waited for, and those that never answer are given up.
async fn check_waiting() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("yielding").run(|_| async {
        tokio::task::yield_now().await;
        HookResult::set("seen", true)
    });
    hooks.hook(TOOL_PRE).named("hanging").timeout(Duration::ZERO).run(|_| pending::<()>());
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).await;
    assert_eq!(reports(&outcome), [("yielding", "modify"), ("hanging", "timed_out")]);
    assert_eq!(outcome.data["seen"], true);

    hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask(Approval::new("Go?").timeout(Duration::ZERO)));
    let nobody = ScriptedApprovals::new([ScriptedAnswer::Silence]);
    let session = Coordinator::builder(hooks).approvals(nobody).build();
    let verdict = session.emit(TOOL_PRE, tool_pre()).await;
    assert_eq!(verdict.to_string(), "Denied by hook asker: Approval timed out, denied by default: Go?");
}

#[test]
fn hooks_may_wait_on_a_runtime_without_a_timer() {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check_waiting());
}

#[test]
fn hooks_may_wait_outside_of_any_runtime() {
    block_on(check_waiting());
}
