//! Registering hooks and taking them away: names, forms of handlers and answers, snapshots, threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{
    Action, Approval, Event, EventData, EventName, EventType, Hook, HookError, HookInfo, HookRegistry, HookResult,
    HookRole, Injection, Map, OnError, Outcome, Registration, TOOL_PRE, ToolPre, data,
};
use futures::FutureExt;

fn emit(hooks: &HookRegistry) -> Outcome {
    hooks.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).now_or_never().unwrap()
}

fn ran(outcome: &Outcome) -> Vec<&str> {
    outcome.reports().map(|report| report.hook).collect()
}

fn names(hooks: &HookRegistry) -> Vec<String> {
    hooks.list_handlers().iter().map(|info| info.name.to_string()).collect()
}

fn info(name: &str) -> HookInfo {
    HookInfo {
        name: name.into(),
        event: TOOL_PRE.as_str().into(),
        priority: 0,
        role: HookRole::Gate,
        on_error: OnError::Continue,
        timeout: Duration::from_secs(30),
    }
}

/// Counts its calls.
#[derive(Default)]
struct Meter(AtomicUsize);

impl Hook for Meter {
    async fn handle(&self, _: &str, _: &EventData) -> Result<HookResult, HookError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(HookResult::proceed())
    }
}

// ---- settings ----------------------------------------------------------------------------------------------------

#[test]
fn settings_not_given_have_their_defaults() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("plain").run(|_| ());
    assert_eq!(hooks.list_handlers(), [info("plain")]);
}

#[test]
fn the_builder_sets_everything() {
    let hooks = HookRegistry::new();
    let timeout = Duration::from_millis(20);
    let builder = hooks.hook(TOOL_PRE).named("guard").priority(-5);
    builder.on_error(OnError::Deny).timeout(timeout).run(|_| ());
    hooks.hook(TOOL_PRE).named("watcher").priority(i64::MIN).observer().handler(Meter::default());
    hooks.register(TOOL_PRE, |_| (), i64::MAX, "last");
    let expected = [
        HookInfo { priority: -5, on_error: OnError::Deny, timeout, ..info("guard") },
        HookInfo { priority: i64::MAX, ..info("last") },
        HookInfo { priority: i64::MIN, role: HookRole::Observer, ..info("watcher") },
    ];
    assert_eq!(hooks.list_handlers(), expected);
    assert_eq!(hooks.list_handlers_of(TOOL_PRE), expected);
}

#[test]
fn what_is_known_about_a_hook_can_be_written_as_json() {
    let hooks = HookRegistry::new();
    hooks.hook("tool:*").named("guard").run(|_| ()).unwrap();
    let json = serde_json::to_value(&hooks.list_handlers()[0]).unwrap();
    assert_eq!((&json["name"], &json["event"], &json["role"]), (&"guard".into(), &"tool:*".into(), &"gate".into()));
}

// ---- names -------------------------------------------------------------------------------------------------------

fn path_guard(_: Event<ToolPre>) -> HookResult {
    HookResult::deny("read-only")
}

async fn slow_guard(_: Event<ToolPre>) -> HookResult {
    HookResult::deny("read-only")
}

struct Generic<T>(T);

impl<T: Send + Sync + 'static> Hook for Generic<T> {
    async fn handle(&self, _: &str, _: &EventData) -> Result<HookResult, HookError> {
        let Self(_) = self;
        Ok(HookResult::proceed())
    }
}

trait Guarding {
    fn guarding(event: Event<ToolPre>) -> HookResult;
    fn install(&self, hooks: &HookRegistry);
}

impl Guarding for Meter {
    fn guarding(_: Event<ToolPre>) -> HookResult {
        HookResult::proceed()
    }

    fn install(&self, hooks: &HookRegistry) {
        hooks.on(TOOL_PRE, |_| ());
    }
}

/// The name of a hook that was given none.
fn check_name(expected: &str, register: impl FnOnce(&HookRegistry)) {
    let hooks = HookRegistry::new();
    register(&hooks);
    assert_eq!(names(&hooks), [expected]);
}

#[test]
fn a_hook_is_named_after_its_function_or_type() {
    check_name("path_guard", |hooks| drop(hooks.on(TOOL_PRE, path_guard)));
    check_name("slow_guard", |hooks| drop(hooks.on(TOOL_PRE, slow_guard)));
    check_name("Meter", |hooks| drop(hooks.hook(TOOL_PRE).handler(Meter::default())));
    check_name("Generic", |hooks| drop(hooks.hook(TOOL_PRE).handler(Generic(Vec::<Meter>::new()))));
}

#[test]
fn a_closure_is_named_after_the_function_around_it() {
    let expected = "a_closure_is_named_after_the_function_around_it::closure";
    check_name(expected, |hooks| drop(hooks.on(TOOL_PRE, |_| ())));
    check_name(expected, |hooks| drop(hooks.on(TOOL_PRE, |_| async {})));
}

#[test]
fn a_method_of_a_trait_is_named_after_itself() {
    check_name("guarding", |hooks| drop(hooks.on(TOOL_PRE, <Meter as Guarding>::guarding)));
}

#[test]
fn a_closure_in_a_method_of_a_trait_is_named_after_the_method() {
    check_name("install::closure", |hooks| Meter::default().install(hooks));
}

#[test]
fn a_shared_handler_is_named_after_its_type() {
    check_name("Meter", |hooks| drop(hooks.hook(TOOL_PRE).handler(Arc::new(Meter::default()))));
}

// ---- answers -----------------------------------------------------------------------------------------------------

/// The closure registered there answers with this word.
fn check_answer(expected: &str, register: impl FnOnce(&HookRegistry) -> Registration) {
    let hooks = HookRegistry::new();
    register(&hooks);
    let outcome = emit(&hooks);
    assert_eq!(outcome.reports().map(|report| report.answer_or_failure().as_str()).collect::<Vec<_>>(), [expected]);
}

fn parse(text: &str) -> Result<HookResult, std::num::ParseIntError> {
    Ok(HookResult::set("n", text.parse::<i64>()?))
}

#[test]
fn a_hook_may_answer_in_every_form() {
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| ()));
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| None::<HookResult>));
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| Some(())));
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| Ok::<_, HookError>(())));
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| Action::Continue));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| Action::Deny));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| HookResult::deny("no")));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| Some(HookResult::deny("no"))));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| Ok::<_, HookError>(Some(HookResult::deny("no")))));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| Some(Ok::<_, HookError>(HookResult::deny("no")))));
    check_answer("respond", |hooks| hooks.on(TOOL_PRE, |_| HookResult::respond(data! { "n": 1 })));
    check_answer("modify", |hooks| hooks.on(TOOL_PRE, |_| HookResult::modify(Map::new())));
    check_answer("modify", |hooks| {
        hooks.on(TOOL_PRE, |event| HookResult::modify(EventData::from(event.data.with("n", 1))))
    });
    check_answer("modify", |hooks| hooks.on(TOOL_PRE, |_| parse("7")));
    check_answer("failed", |hooks| hooks.on(TOOL_PRE, |_| parse("seven")));
    check_answer("inject_context", |hooks| hooks.on(TOOL_PRE, |_| HookResult::inject("note")));
    check_answer("inject_context", |hooks| hooks.on(TOOL_PRE, |_| HookResult::inject(Injection::new("note"))));
    check_answer("ask_user", |hooks| hooks.on(TOOL_PRE, |_| HookResult::ask("Go?")));
    check_answer("ask_user", |hooks| hooks.on(TOOL_PRE, |_| HookResult::ask(Approval::new("Go?"))));
}

#[test]
fn an_async_hook_may_answer_in_every_form() {
    check_answer("continue", |hooks| hooks.on(TOOL_PRE, |_| async {}));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, async |_| HookResult::deny("no")));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, slow_guard));
    check_answer("deny", |hooks| hooks.on(TOOL_PRE, |_| async { Some(Action::Deny) }));
    check_answer("modify", |hooks| hooks.on(TOOL_PRE, |_| std::future::ready(parse("7"))));
    check_answer("failed", |hooks| {
        hooks.on(TOOL_PRE, |event| async move {
            let n: i64 = event.tool_name().parse()?;
            Ok::<_, HookError>(HookResult::set("n", n))
        })
    });
}

#[test]
fn an_error_is_reported_with_its_causes() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the rules cannot be read")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let hooks = HookRegistry::new();
    hooks.on(TOOL_PRE, |_| Err::<(), _>(Outer(std::io::Error::other("disk on fire"))));
    let error = emit(&hooks).reports().next().unwrap().error.cloned();
    assert_eq!(error, Some(HookError::failed("the rules cannot be read: disk on fire")));
}

// ---- handlers ----------------------------------------------------------------------------------------------------

#[test]
fn a_handler_keeps_its_state_and_can_be_shared() {
    let hooks = HookRegistry::new();
    let meter = Arc::new(Meter::default());
    hooks.hook(TOOL_PRE).handler(meter.clone());
    hooks.hook("tool:*").handler(meter.clone()).unwrap();
    emit(&hooks);
    emit(&hooks);
    assert_eq!(meter.0.load(Ordering::Relaxed), 4);
}

#[test]
fn a_driver_finds_its_own_kind_of_hook() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).handler(Meter(7.into()));
    hooks.hook(TOOL_PRE).handler(Arc::new(Meter(8.into())));
    hooks.on(TOOL_PRE, path_guard);
    let listeners = hooks.listeners(TOOL_PRE);
    let count = |meter: &Meter| meter.0.load(Ordering::Relaxed);
    let found: Vec<_> = listeners.hooks().iter().map(|hook| hook.downcast_ref::<Meter>().map(count)).collect();
    assert_eq!(found, [Some(7), None, None]);
    let shared = listeners.hooks()[1].downcast_ref::<Arc<Meter>>();
    assert_eq!(shared.map(|meter| count(meter)), Some(8));
}

#[test]
fn a_key_may_be_a_constant_a_name_or_text() {
    const BUILD_DONE: EventType<EventData> = EventType::new("build:done");
    let hooks = HookRegistry::new();
    let name: EventName = "build:done".parse().unwrap();
    hooks.hook(BUILD_DONE).named("constant").run(|event| assert_eq!(event["n"], 1));
    hooks.hook(&name).named("name").run(|event| assert_eq!(event["n"], 1));
    hooks.hook("build:done").named("text").run(|event| assert_eq!(event["n"], 1)).unwrap();
    for outcome in [
        hooks.emit(BUILD_DONE, data! { "n": 1 }).now_or_never().unwrap(),
        hooks.emit(&name, data! { "n": 1 }).now_or_never().unwrap(),
        hooks.emit("build:done", data! { "n": 1 }).now_or_never().unwrap().unwrap(),
    ] {
        assert_eq!(ran(&outcome), ["constant", "name", "text"]);
        assert!(outcome.reports().all(|report| report.error.is_none()));
    }
}

// ---- taking away -------------------------------------------------------------------------------------------------

#[test]
fn unregistering_twice_is_harmless() {
    let hooks = HookRegistry::new();
    let first = hooks.hook(TOOL_PRE).named("first").run(|_| ());
    hooks.hook(TOOL_PRE).named("second").run(|_| ());
    let same = first.clone();
    first.unregister();
    first.unregister();
    same.unregister();
    assert_eq!(names(&hooks), ["second"]);
    drop(hooks);
    first.unregister();
}

#[test]
fn dropping_a_registration_leaves_the_hook() {
    let hooks = HookRegistry::new();
    drop(hooks.hook(TOOL_PRE).named("staying").run(|_| ()));
    assert_eq!(names(&hooks), ["staying"]);
}

#[test]
fn a_scoped_hook_goes_with_its_scope() {
    let hooks = HookRegistry::new();
    let guard = hooks.hook(TOOL_PRE).named("scoped").run(|_| ()).scoped();
    assert_eq!(ran(&emit(&hooks)), ["scoped"]);
    drop(guard);
    assert_eq!(ran(&emit(&hooks)), Vec::<&str>::new());
    // Also when the registry went first.
    let guard = hooks.hook(TOOL_PRE).run(|_| ()).scoped();
    drop(hooks);
    drop(guard);
}

#[test]
fn a_hook_that_is_taken_away_is_dropped() {
    let hooks = HookRegistry::new();
    let meter = Arc::new(Meter::default());
    let registration = hooks.hook(TOOL_PRE).handler(meter.clone());
    let running = hooks.listeners(TOOL_PRE);
    registration.unregister();
    assert_eq!(running.hooks().len(), 1, "an emission that has begun still runs it");
    assert_eq!(Arc::strong_count(&meter), 2);
    drop(running);
    assert_eq!(Arc::strong_count(&meter), 1);
}

#[test]
fn a_hook_may_use_the_registry_while_it_is_dropped() {
    struct Leaving(HookRegistry);
    impl Hook for Leaving {
        async fn handle(&self, _: &str, _: &EventData) -> Result<HookResult, HookError> {
            Ok(HookResult::proceed())
        }
    }
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.hook(TOOL_PRE).named("heir").run(|_| ());
        }
    }
    let hooks = HookRegistry::new();
    let registration = hooks.hook(TOOL_PRE).handler(Leaving(hooks.clone()));
    emit(&hooks);
    registration.unregister();
    assert_eq!(ran(&emit(&hooks)), ["heir"]);
}

// ---- snapshots ---------------------------------------------------------------------------------------------------

#[test]
fn what_registers_during_an_emission_waits_for_the_next() {
    let hooks = HookRegistry::new();
    let registry = hooks.clone();
    hooks.hook(TOOL_PRE).named("first").run(move |_| {
        registry.hook(TOOL_PRE).named("new").priority(-1).run(|_| ());
    });
    assert_eq!(ran(&emit(&hooks)), ["first"]);
    assert_eq!(ran(&emit(&hooks)), ["new", "first"]);
}

#[test]
fn what_is_taken_away_during_an_emission_still_runs_in_it() {
    let hooks = HookRegistry::new();
    let doomed: Arc<Mutex<Vec<Registration>>> = Arc::default();
    let victims = doomed.clone();
    let own = hooks.hook(TOOL_PRE).named("remover").run(move |_| {
        victims.lock().unwrap().iter().for_each(Registration::unregister);
    });
    let later = hooks.hook(TOOL_PRE).named("later").run(|_| ());
    doomed.lock().unwrap().extend([own, later]);
    assert_eq!(ran(&emit(&hooks)), ["remover", "later"]);
    assert_eq!(ran(&emit(&hooks)), Vec::<&str>::new());
}

#[test]
fn a_nested_emission_sees_what_was_just_registered() {
    let hooks = HookRegistry::new();
    let registry = hooks.clone();
    hooks
        .hook("outer:event")
        .named("outer")
        .run(move |_| {
            registry.hook(TOOL_PRE).named("new").run(|_| ());
            assert_eq!(ran(&emit(&registry)), ["new"]);
        })
        .unwrap();
    let outcome = hooks.emit("outer:event", EventData::new()).now_or_never().unwrap().unwrap();
    assert_eq!(outcome.reports().next().unwrap().error, None);
}

#[test]
fn a_registry_is_a_handle() {
    let hooks = HookRegistry::new();
    let same = hooks.clone();
    same.hook(TOOL_PRE).named("shared").run(|_| ());
    same.set_default_fields([("project", "demo")]);
    let outcome = emit(&hooks);
    assert_eq!((ran(&outcome), &outcome.data["project"]), (vec!["shared"], &"demo".into()));
    assert_eq!(names(&HookRegistry::default()), Vec::<String>::new());
}

// ---- threads -----------------------------------------------------------------------------------------------------

#[test]
fn threads_emit_while_others_register_and_unregister() {
    const ROUNDS: usize = 300;
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("first").priority(-1).run(|_| HookResult::set("first", true));
    hooks.hook("*").named("last").priority(1).run(|event| assert_eq!(event["first"], true)).unwrap();

    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let outcome = emit(&hooks);
                    let ran = ran(&outcome);
                    assert_eq!((ran.first(), ran.last()), (Some(&"first"), Some(&"last")));
                    assert!(ran[1..ran.len() - 1].iter().all(|name| name.starts_with("passing")), "{ran:?}");
                    assert!(outcome.reports().all(|report| report.error.is_none()));
                }
            });
        }
        for name in ["passing-a", "passing-b"] {
            let hooks = &hooks;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let passing = hooks.hook(TOOL_PRE).named(name).run(|_| ());
                    assert_eq!(ran(&emit(hooks)).iter().filter(|other| **other == name).count(), 1);
                    passing.unregister();
                    assert!(!ran(&emit(hooks)).contains(&name));
                }
            });
        }
        scope.spawn(|| {
            for round in 0..ROUNDS {
                hooks.set_default_fields([("round", round)]);
                assert_eq!(emit(&hooks).data["round"], round);
            }
        });
    });
    assert_eq!(ran(&emit(&hooks)), ["first", "last"]);
}

#[test]
fn an_emission_can_go_to_another_thread() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(path_guard);
    let outcome = std::thread::spawn(move || emit(&hooks)).join().unwrap();
    assert_eq!(outcome.denial().unwrap().to_string(), "Denied by hook guard: read-only");
}
