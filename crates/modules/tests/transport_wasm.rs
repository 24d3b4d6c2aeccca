//! Hooks that are WebAssembly components: good ones, and those that mean harm.

#![cfg(feature = "wasm")]

#[path = "wasm/mod.rs"]
mod wasm;

use std::time::Duration;

use crate::transport::{answers, ask, call, failure, large};
use amplifier_core::{Hook, HookRegistry, HookResult, data};
use amplifier_modules::bundle::load;
use amplifier_modules::transport::{ExpansionError, FolderGrant, Grant, TransportError, WasmHook, WasmOptions};
use amplifier_modules::{HookEnvironment, Scope};
use futures::FutureExt;
use futures::future::join_all;
use serde_json::json;
use wasm::{Written, answering, component, hook, hook_with};

#[tokio::test]
async fn every_action_can_be_answered() {
    for (answer, expected) in answers() {
        assert_eq!(ask(&hook(&answering(&answer.to_string()))).await, Ok(expected), "{answer}");
    }
}

#[tokio::test]
async fn an_empty_answer_goes_on() {
    assert_eq!(ask(&hook(&answering(" \\n"))).await, Ok(HookResult::proceed()));
    assert_eq!(ask(&hook(&answering(""))).await, Ok(HookResult::proceed()));
}

#[tokio::test]
async fn the_request_is_one_json_object_and_an_error_is_a_failure_in_words() {
    let repeat = hook(&component("", "(call $answer (i32.const 1) (local.get $at) (local.get $length))"));
    let request = json!({ "protocol": 1, "hook": "test", "event": "tool:pre", "data": call() });
    let said: serde_json::Value = serde_json::from_str(&failure(ask(&repeat).await)).unwrap();
    assert_eq!(said, request);
    let long = failure(repeat.handle("tool:pre", &large()).await);
    assert_eq!(long.chars().count(), 1000);
}

#[tokio::test]
async fn every_call_has_fresh_memory() {
    // Counts in memory; the digit is part of the answer.
    let counter = hook(&component(
        r#"(data (i32.const 1024) "{\22user_message\22:\220\22}")"#,
        "(i32.store8 (i32.const 1041) (i32.add (i32.load8_u (i32.const 1041)) (i32.const 1)))
         (call $answer (i32.const 0) (i32.const 1024) (i32.const 20))",
    ));
    let first = Ok(HookResult::proceed().info("1"));
    for _ in 0..200 {
        assert_eq!(ask(&counter).await, first);
    }
    for answer in join_all((0..200).map(|_| ask(&counter))).await {
        assert_eq!(answer, first);
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_others_wrote_to_their_memory() {
    // Looks for anything in 8 MiB, and fills them.
    let dirty = hook(&component(
        "",
        "(local $place i32)
         (drop (memory.grow (i32.const 128)))
         (local.set $place (i32.const 131072))
         (loop $next
           (if (i32.load (local.get $place)) (then unreachable))
           (local.set $place (i32.add (local.get $place) (i32.const 512)))
           (br_if $next (i32.lt_u (local.get $place) (i32.const 8388608))))
         (memory.fill (i32.const 131072) (i32.const 255) (i32.const 8257536))
         (call $answer (i32.const 0) (i32.const 0) (i32.const 0))",
    ));
    for _ in 0..50 {
        assert_eq!(ask(&dirty).await, Ok(HookResult::proceed()));
    }
    for answer in join_all((0..50).map(|_| ask(&dirty))).await {
        assert_eq!(answer, Ok(HookResult::proceed()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_run_at_a_time_and_the_others_wait() {
    let deny = std::sync::Arc::new(hook(&answering(r#"{"action": "deny", "reason": "no"}"#)));
    let tasks = (0..1000).map(|_| {
        let deny = deny.clone();
        tokio::spawn(async move { ask(&*deny).await })
    });
    for answer in join_all(tasks).await {
        assert_eq!(answer.unwrap(), Ok(HookResult::deny("no")));
    }
}

#[tokio::test]
async fn a_component_that_computes_for_ever_does_not_hold_up_others_on_its_thread() {
    let endless = component("", "(loop $ever (br $ever)) unreachable");
    let endless = hook_with(&endless, |options| options.timeout = Duration::from_secs(90));
    let quick = hook(&answering("{}"));
    let others = async {
        for _ in 0..10 {
            assert_eq!(ask(&quick).await, Ok(HookResult::proceed()));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = ask(&endless) => panic!("the others waited for it: {answer:?}"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_leaves_nothing_behind() {
    let endless = hook(&component("", "(loop $ever (br $ever)) unreachable"));
    // More often than there are sandboxes.
    for _ in 0..150 {
        assert_eq!(ask(&endless).now_or_never(), None);
    }
    assert_eq!(ask(&hook(&answering("{}"))).await, Ok(HookResult::proceed()));
}

#[test]
fn outside_a_runtime_it_is_a_failure() {
    let asked = ask(&hook(&answering("{}"))).now_or_never().unwrap();
    assert!(failure(asked).contains("need a tokio runtime"));
}

#[test]
fn what_is_no_hook_cannot_be_made() {
    let lift = "(core module $m (func (export \"f\"))) (core instance $i (instantiate $m))";
    let table = [
        (
            "hello".to_owned(),
            "the file is not WebAssembly; build it with `cargo build --release --target wasm32-wasip2`",
        ),
        (
            "(module)".to_owned(),
            "the file is a WebAssembly module, not a component; build it with `cargo build --release --target wasm32-wasip2`",
        ),
        ("(component)".to_owned(), "the function `handle` is not exported; see the world `hook` in `hook.wit`"),
        (
            format!("(component {lift} (func (export \"handle\") (canon lift (core func $i \"f\"))))"),
            "the function `handle` is not `func(request: string) -> result<string, string>`",
        ),
        (
            component("", "unreachable").replacen(
                "(component",
                "(component (import \"host:secrets/all\" (instance (export \"get\" (func))))",
                1,
            ),
            "host:secrets/all",
        ),
        (component("(memory 20000)", "unreachable"), "memory"),
    ];
    for (text, expected) in table {
        let written = Written::maybe(&text);
        let error = WasmHook::new(WasmOptions::new("test", written.path())).unwrap_err().to_string();
        let path = written.path().display().to_string();
        assert!(error.starts_with(&format!("invalid WebAssembly component `{path}` of hook `test`: ")), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_does_not_exist_cannot_be_granted() {
    let written = Written::new(&answering("{}"));
    let made = |change: &dyn Fn(&mut WasmOptions)| {
        let mut options = WasmOptions::new("test", written.path());
        change(&mut options);
        WasmHook::new(options).unwrap_err()
    };
    let error = made(&|options| options.grant.env = vec!["NO_SUCH_VARIABLE".into()]);
    assert!(
        matches!(error, TransportError::Expansion { why: ExpansionError::NoVariable(name), .. } if name == "NO_SUCH_VARIABLE")
    );
    let error = made(&|options| options.grant.files = vec![FolderGrant { path: "no/such".into(), write: false }]);
    assert_eq!(error.to_string(), "granted folder `no/such` of hook `test` not found; name an existing folder");
    for memory in [0, usize::MAX] {
        let error = made(&|options| options.memory = memory);
        assert_eq!(error.to_string(), "invalid memory limit of hook `test`; expected 1 to 1024 MiB");
    }
    let error = made(&|options| options.component = "no/such.wasm".into());
    assert!(error.to_string().contains("`no/such.wasm` of hook `test`: the file cannot be read: "), "{error}");
    let error = made(&|options| options.component = ".".into());
    assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
}

#[tokio::test]
async fn a_bundle_names_a_component_and_what_it_may_touch() {
    let written = Written::new(&answering(r#"{"action": "deny", "reason": "no"}"#));
    let path = written.path();
    let folder = path.parent().unwrap();
    std::fs::create_dir(folder.join("rules")).unwrap();
    let bundle = folder.join("bundle.yaml");
    let text = "
hooks:
  - wasm: ./component.wasm
    on: [tool:pre, tool:post]
    when: tool_name == 'Bash'
    timeout: 2
    memory: 16
    grant: { env: [PATH], files: [{ path: rules }, { path: ., write: true }], network: ['127.0.0.1:9000'] }
";
    std::fs::write(&bundle, text).unwrap();
    let loaded = load(&bundle).unwrap();
    let granted = Grant {
        env: vec!["PATH".into()],
        files: vec![FolderGrant { path: "rules".into(), write: false }, FolderGrant { path: ".".into(), write: true }],
        network: vec!["127.0.0.1:9000".parse().unwrap()],
    };
    assert_eq!(loaded.hooks[0].entry.grant, Some(granted));
    let hooks = HookRegistry::new();
    let host = HookEnvironment::new(Scope::new(folder).unwrap());
    loaded.register(&hooks, &host).unwrap();
    let outcome = hooks.emit("tool:pre", data! { "tool_name": "Bash" }).await.unwrap();
    assert_eq!(outcome.decision.as_str(), "deny");
    assert_eq!(hooks.list_handlers()[0].name.to_string(), "component");
    let outcome = hooks.emit("tool:pre", data! { "tool_name": "Read" }).await.unwrap();
    assert_eq!(outcome.decision.as_str(), "continue");

    std::fs::write(&bundle, text.replace("memory: 16", "memory: 100000")).unwrap();
    let error = load(&bundle).unwrap().register(&HookRegistry::new(), &host).unwrap_err();
    assert_eq!(error.message, "invalid memory limit of hook `component`; expected 1 to 1024 MiB");
    std::fs::write(&bundle, text.replace("wasm: ./component.wasm", "command: 'true'")).unwrap();
    assert_eq!(load(&bundle).unwrap_err().message, "`grant` applies to hooks of the kind `wasm` only");
}
