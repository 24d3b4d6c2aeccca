//! A model of registering and unregistering while events are emitted, over many schedules of the threads.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p amplifier-core --test shuttle --target-dir target/shuttle`

#![cfg(shuttle)]
#![allow(clippy::unwrap_used, missing_docs)]

use amplifier_core::{EventData, HookRegistry, TOOL_PRE};
use futures::FutureExt;
use shuttle::thread;

const SCHEDULES: usize = 5_000;

fn emit(hooks: &HookRegistry) -> Vec<String> {
    let outcome = hooks.emit(TOOL_PRE, EventData::from([("tool_name", "Bash")])).now_or_never().unwrap();
    outcome.reports().map(|report| report.hook.to_owned()).collect()
}

fn register(hooks: &HookRegistry, name: &str) -> amplifier_core::Registration {
    hooks.hook("tool:*").named(name).run(|_| ()).unwrap()
}

/// Random schedules, and schedules that try few but nasty switches.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

#[test]
fn what_is_registered_is_called_and_what_is_unregistered_is_not() {
    explore(|| {
        let hooks = HookRegistry::new();
        let emitter = thread::spawn({
            let hooks = hooks.clone();
            move || drop((emit(&hooks), emit(&hooks)))
        });
        let registration = register(&hooks, "a");
        assert_eq!(emit(&hooks), ["a"]);
        registration.unregister();
        assert!(emit(&hooks).is_empty());
        emitter.join().unwrap();
        assert!(emit(&hooks).is_empty());
    });
}

#[test]
fn an_emission_never_sees_a_later_hook_without_an_earlier_one() {
    explore(|| {
        let hooks = HookRegistry::new();
        let writer = thread::spawn({
            let hooks = hooks.clone();
            move || {
                let first = register(&hooks, "first");
                let second = register(&hooks, "second");
                second.unregister();
                first.unregister();
            }
        });
        for _ in 0..2 {
            let seen = emit(&hooks);
            assert!(["", "first", "first second"].contains(&seen.join(" ").as_str()), "{seen:?}");
        }
        writer.join().unwrap();
        assert!(emit(&hooks).is_empty());
    });
}

#[test]
fn no_registration_is_lost_when_many_register_and_emit() {
    explore(|| {
        let hooks = HookRegistry::new();
        let threads: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                let hooks = hooks.clone();
                thread::spawn(move || {
                    let _ = register(&hooks, name);
                    assert!(emit(&hooks).iter().any(|hook| hook == name));
                })
            })
            .into_iter()
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut seen = emit(&hooks);
        seen.sort();
        assert_eq!(seen, ["a", "b", "c"]);
    });
}

#[test]
fn default_fields_and_lists_do_not_overwrite_each_other() {
    explore(|| {
        let hooks = HookRegistry::new();
        let _ = register(&hooks, "a");
        let setter = thread::spawn({
            let hooks = hooks.clone();
            move || hooks.set_default_fields([("user_id", "u1")])
        });
        assert_eq!(emit(&hooks), ["a"]);
        setter.join().unwrap();
        let outcome = hooks.emit(TOOL_PRE, EventData::new()).now_or_never().unwrap();
        assert_eq!((&outcome.data["user_id"], outcome.reports().len()), (&"u1".into(), 1));
    });
}
