//! Emissions that somebody drives by hand, and data that is emitted more than once.

use std::time::Duration;

use amplifier_core::testing::ManualClock;
use amplifier_core::{
    Emission, EventData, HookError, HookRegistry, HookResult, Map, OnError, Outcome, TOOL_PRE, ToolPre, data,
};
use futures::FutureExt;

// ---- emissions driven by hand --------------------------------------------------------------------------------------

/// A registry whose time stands still, so that two emissions of it look the same.
fn at_a_standstill() -> HookRegistry {
    HookRegistry::builder().clock(ManualClock::new()).build()
}

/// Drives an emission by hand; it must look like one that the registry drives.
async fn check_driven(register: impl Fn(&HookRegistry)) {
    let hooks = at_a_standstill();
    hooks.set_default_fields([("project", "demo")]);
    hooks.set_reserved_fields([("session_id", "real")]);
    register(&hooks);
    let data = || EventData::from(ToolPre::new("Bash", Map::new()).with("session_id", "forged"));
    let mut emission = hooks.begin(TOOL_PRE, data());
    while let Some(index) = emission.next_hook() {
        let answer = emission.hook(index).call(emission.data()).await;
        emission.answer(index, answer);
    }
    assert!(emission.is_over());
    let (driven, emitted) = (emission.finish(), hooks.emit(TOOL_PRE, data()).await);
    assert_eq!(format!("{driven:?}"), format!("{emitted:?}"));
    assert_eq!(driven.flat(), emitted.flat());
}

#[tokio::test]
async fn an_emission_driven_by_hand_comes_to_the_same() {
    let talking = |hooks: &HookRegistry| {
        hooks.hook(TOOL_PRE).named("quiet").run(|_| ());
        hooks.hook(TOOL_PRE).named("editor").run(|_| HookResult::set("n", 1).because("it was missing"));
        hooks.hook("tool:*").named("linter").run(|_| HookResult::inject("note").info("hi").with_output("o")).unwrap();
        hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("Go?").suppress_output());
        hooks.hook(TOOL_PRE).named("later").run(|_| tokio::task::yield_now());
        hooks.hook(TOOL_PRE).named("failing").run(|_| Err::<(), _>(HookError::failed("out of order")));
        hooks.hook(TOOL_PRE).named("panicking").run(|_| -> () { panic!("boom") });
        hooks.hook(TOOL_PRE).named("watcher").observer().run(|_| HookResult::deny("no say").info("seen"));
    };
    check_driven(|_| ()).await;
    check_driven(talking).await;
    check_driven(|hooks| {
        talking(hooks);
        hooks.hook(TOOL_PRE).named("guard").priority(-1).run(|_| HookResult::deny("read-only"));
    })
    .await;
    check_driven(|hooks| {
        talking(hooks);
        hooks
            .hook(TOOL_PRE)
            .named("guard")
            .on_error(OnError::Deny)
            .run(|_| Err::<(), _>(HookError::failed("no rules")));
        hooks.hook(TOOL_PRE).named("skipped").run(|_| ());
    })
    .await;
}

/// An emission of three hooks: two gates, of which the second denies when it fails, and an observer.
fn guarded() -> Emission {
    let hooks = at_a_standstill();
    hooks.hook(TOOL_PRE).named("first").run(|_| ());
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(|_| ());
    hooks.hook(TOOL_PRE).named("watcher").observer().on_error(OnError::Deny).run(|_| ());
    hooks.begin(TOOL_PRE, ToolPre::new("Bash", Map::new()))
}

fn answers(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.reports().map(|report| (report.hook, report.answer_or_failure().as_str())).collect()
}

fn answer_continue() -> Result<HookResult, HookError> {
    Ok(HookResult::proceed())
}

#[test]
fn a_guard_that_was_never_asked_denies() {
    let outcome = guarded().finish();
    assert_eq!(answers(&outcome), [("first", "failed"), ("guard", "failed"), ("watcher", "failed")]);
    assert_eq!(outcome.denial().unwrap().to_string(), "Denied by hook guard: the hook failed: was not called");

    let mut emission = guarded();
    let first = emission.next_hook().unwrap();
    emission.answer(first, answer_continue());
    assert_eq!(&*emission.finish().denial().unwrap().by, "guard", "also if others were asked");
}

#[test]
fn a_guard_that_was_asked_and_did_not_answer_denies() {
    let mut emission = guarded();
    while let Some(index) = emission.next_hook() {
        if &*emission.hook(index).info().name != "guard" {
            emission.answer(index, answer_continue());
        }
    }
    let outcome = emission.finish();
    assert_eq!(answers(&outcome), [("first", "continue"), ("watcher", "continue"), ("guard", "failed")]);
    assert_eq!(&*outcome.denial().unwrap().by, "guard");
}

#[test]
fn hooks_that_do_not_guard_may_stay_unanswered() {
    let mut emission = guarded();
    for index in [emission.next_hook().unwrap(), emission.next_hook().unwrap()].into_iter().skip(1) {
        emission.answer(index, answer_continue());
    }
    let outcome = emission.finish();
    assert_eq!((outcome.denial(), outcome.decision.as_str()), (None, "continue"));
    assert_eq!(answers(&outcome), [("guard", "continue"), ("first", "failed"), ("watcher", "failed")]);
}

#[test]
fn an_answer_out_of_turn_is_not_taken() {
    let mut emission = guarded();
    let deny = || Ok(HookResult::deny("out of turn").info("out of turn"));
    emission.answer(0, deny());
    assert_eq!(emission.next_hook(), Some(0));
    for index in [1, 2, 3, 99, usize::MAX] {
        emission.answer(index, deny());
    }
    emission.answer_continue(0);
    emission.answer(0, deny());
    assert_eq!(emission.decision().as_str(), "continue");
    while let Some(index) = emission.next_hook() {
        emission.answer(index, answer_continue());
        emission.answer_continue(index);
        emission.answer(index, Err(HookError::failed("out of turn")));
    }
    let outcome = emission.finish();
    assert_eq!(answers(&outcome), [("first", "continue"), ("guard", "continue"), ("watcher", "continue")]);
    assert_eq!((outcome.denial(), outcome.messages().len()), (None, 0));
}

#[test]
fn hooks_answer_in_any_order_and_once() {
    let mut emission = guarded();
    while emission.next_hook().is_some() {}
    for index in [2, 0, 0, 2, 1, 2, 1, 0] {
        emission.answer(index, answer_continue());
        emission.answer(index, Ok(HookResult::deny("again")));
    }
    let outcome = emission.finish();
    assert_eq!(answers(&outcome), [("watcher", "continue"), ("first", "continue"), ("guard", "continue")]);
    assert_eq!(outcome.denial(), None);
}

#[test]
fn an_answer_of_a_gate_that_a_denial_skipped_is_not_taken() {
    let mut emission = guarded();
    assert_eq!(emission.next_hook(), Some(0));
    emission.answer(0, Ok(HookResult::deny("no")));
    emission.answer(1, Ok(HookResult::set("n", 1)));
    assert_eq!(emission.next_hook(), Some(2));
    emission.answer(2, answer_continue());
    let outcome = emission.finish();
    assert_eq!(answers(&outcome), [("first", "deny"), ("watcher", "continue")]);
    assert_eq!(outcome.data.get("n"), None);
}

// ---- data that is emitted again ------------------------------------------------------------------------------------

fn emit_data(hooks: &HookRegistry, data: EventData) -> EventData {
    hooks.emit("some:event", data).now_or_never().unwrap().unwrap().data
}

/// The registry's time is this second of 1970.
fn at_second(second: u64) -> HookRegistry {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(second));
    HookRegistry::builder().clock(clock).build()
}

#[test]
fn data_that_is_emitted_again_gets_a_new_timestamp_and_keeps_its_fields() {
    for with_base in [false, true] {
        let clock = ManualClock::new();
        let hooks = HookRegistry::builder().clock(clock.clone()).build();
        let mut expected = data! { "n": 1, "seen": true, "timestamp": "1970-01-01T00:00:00.000000Z" };
        if with_base {
            hooks.set_default_fields([("project", "demo")]);
            hooks.set_reserved_fields([("session_id", "real")]);
            expected.insert("project", "demo");
            expected.insert("session_id", "real");
        }
        hooks.on("some:event", |_| HookResult::set("seen", true)).unwrap();
        let first = emit_data(&hooks, data! { "n": 1 });
        assert_eq!(first, expected);
        clock.advance(Duration::from_secs(5));
        expected.insert("timestamp", "1970-01-01T00:00:05.000000Z");
        assert_eq!(emit_data(&hooks, first), expected);
    }
}

#[test]
fn a_timestamp_that_a_hook_set_does_not_outlive_its_emission() {
    let hooks = at_second(5);
    let editor = hooks.on("some:event", |_| HookResult::set("timestamp", "2000-01-01T00:00:00Z")).unwrap();
    let data = emit_data(&hooks, EventData::new());
    assert_eq!(data.timestamp(), Some("2000-01-01T00:00:00Z"));
    editor.unregister();
    hooks.on("some:event", |_| ()).unwrap();
    assert_eq!(emit_data(&hooks, data).timestamp(), Some("1970-01-01T00:00:05.000000Z"));
}

#[test]
fn data_from_another_registry_keeps_what_it_showed() {
    let (from, to) = (at_second(1), at_second(2));
    from.set_default_fields([("project", "demo"), ("user", "ada")]);
    from.set_reserved_fields([("tenant", "acme")]);
    from.on("some:event", |_| HookResult::set("n", 2)).unwrap();
    to.set_default_fields([("project", "other"), ("region", "eu")]);
    let shown = emit_data(&from, data! { "n": 1 });

    let unheard = emit_data(&to, shown.clone());
    let mut expected = data! {
        "n": 2, "project": "demo", "user": "ada", "tenant": "acme", "region": "eu",
        "timestamp": "1970-01-01T00:00:01.000000Z",
    };
    assert_eq!(unheard, expected, "with no hook listening, there is no other timestamp");
    to.on("some:event", |_| ()).unwrap();
    expected.insert("timestamp", "1970-01-01T00:00:02.000000Z");
    assert_eq!(emit_data(&to, shown), expected);
}

#[test]
fn data_keeps_the_defaults_that_it_showed_when_they_change() {
    let hooks = at_second(1);
    hooks.on("some:event", |_| ()).unwrap();
    hooks.set_default_fields([("project", "demo")]);
    let shown = emit_data(&hooks, EventData::new());
    hooks.set_default_fields([("region", "eu")]);
    let again = emit_data(&hooks, shown);
    assert_eq!((&again["project"], &again["region"]), (&"demo".into(), &"eu".into()));
}
