//! Components that mean harm. Each is asked many times, one after another and at once; afterwards a good one is asked.

use std::time::{Duration, Instant};

use amplifier_core::{HookError, HookResult};
use futures::future::join_all;

use super::{answering, component, hook, hook_with};
use crate::transport::{ask, failure};

/// What traps, lies or is too much: the failure says what happened, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_component_does_is_a_failure_that_says_what_happened() {
    let answer = |is_error: &str, at: &str, length: &str| {
        component("", &format!("(call $answer (i32.const {is_error}) (i32.const {at}) (i32.const {length}))"))
    };
    let table = [
        ("trap", component("", "unreachable"), "wasm trap: wasm `unreachable` instruction executed"),
        ("division by zero", component("", "(i32.div_u (local.get $at) (i32.const 0))"), "integer divide by zero"),
        ("outside of its memory", component("", "(i32.load (i32.const -4))"), "out of bounds memory access"),
        (
            "stack overflow",
            component(
                "(func $deeper (param i64) (result i64) (i64.add (call $deeper (local.get 0)) (local.get 0)))",
                "(drop (call $deeper (i64.const 1))) unreachable",
            ),
            "call stack exhausted",
        ),
        (
            "memory bomb",
            component("", "(loop $more (drop (memory.grow (i32.const 16))) (br $more)) unreachable"),
            "memory limit of 64 MiB exceeded",
        ),
        ("memory bomb from the start", component("(memory 2000)", "unreachable"), "memory limit of 64 MiB exceeded"),
        (
            "table bomb",
            component(
                "(table $table 1 funcref)",
                "(loop $more (br_if $more (i32.ge_s (table.grow $table (ref.null func) (i32.const 1000)) (i32.const 0)))) unreachable",
            ),
            "unreachable",
        ),
        ("no JSON", answering("hello"), "the answer is not JSON: expected value at line 1 column 1"),
        ("no object", answering("[]"), "the answer cannot be read: expected an object, found a list"),
        ("unknown field", answering(r#"{"reslut": 1}"#), "unknown field"),
        (
            "no text",
            component(
                "(data (i32.const 1024) \"\\ff\\fe\")",
                "(call $answer (i32.const 0) (i32.const 1024) (i32.const 2))",
            ),
            "utf-8",
        ),
        ("neither answer nor error", answer("7", "1024", "2"), "discriminant"),
        ("an answer outside of its memory", answer("0", "-1", "16"), "out of bounds"),
        ("an answer that ends outside of its memory", answer("0", "1024", "-1"), "out of bounds"),
        ("too much of an answer", answer("0", "1024", "1048577"), "too much data"),
        ("too much of an error", answer("1", "1024", "1048577"), "too much data"),
        ("a result outside of its memory", component("", "(i32.const -1)"), "pointer"),
        (
            "a request that it has no place for",
            component("", "unreachable").replace("(global.get $free)", "(i32.const -8)"),
            "beyond end of memory",
        ),
    ];
    let good = hook(&answering("{}"));
    for (what, text, expected) in table {
        let bad = hook(&text);
        for _ in 0..50 {
            let said = failure(ask(&bad).await);
            assert!(said.contains(expected), "{what}: {said}");
        }
        for asked in join_all((0..50).map(|_| ask(&bad))).await {
            let said = failure(asked);
            assert!(said.contains(expected), "{what}: {said}");
        }
        assert_eq!(ask(&good).await, Ok(HookResult::proceed()), "after {what}");
    }
}

/// What would go on for ever ends at the limit, wherever in a call it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_does_not_end_is_ended_at_the_limit() {
    const LIMIT: Duration = Duration::from_millis(100);
    // Far more than it takes, for machines that have much else to do.
    const PATIENCE: Duration = Duration::from_secs(90);
    let endless = "(loop $ever (br $ever))";
    let answer = "(call $answer (i32.const 0) (i32.const 0) (i32.const 0))";
    let table = [
        ("a loop", component("", &format!("{endless} unreachable"))),
        (
            "a loop that fills memory",
            component(
                "",
                "(loop $ever (memory.fill (i32.const 65536) (i32.const 1) (i32.const 1000000)) (br $ever)) unreachable",
            ),
        ),
        (
            "calls that do not end",
            component("(func $call (loop $ever (call $other) (br $ever))) (func $other)", "(call $call) unreachable"),
        ),
        ("a start that does not end", component(&format!("(func $start {endless}) (start $start)"), answer)),
        (
            "memory that is never allocated",
            component("", answer).replace("(global.get $free)", &format!("{endless} (global.get $free)")),
        ),
        (
            "cleaning up that does not end",
            component(&format!("(func (export \"after\") (param i32) {endless})"), answer)
                .replace("(realloc", "(post-return (core func $instance \"after\")) (realloc"),
        ),
    ];
    let good = hook(&answering("{}"));
    for (what, text) in table {
        let bad = hook_with(&text, |options| options.timeout = LIMIT);
        for _ in 0..5 {
            let begun = Instant::now();
            assert_eq!(ask(&bad).await, Err(HookError::TimedOut(LIMIT)), "{what}");
            assert!((LIMIT..PATIENCE).contains(&begun.elapsed()), "{what}: {:?}", begun.elapsed());
        }
        // More of them than there are sandboxes: those that wait for one have the same limit.
        let begun = Instant::now();
        for asked in join_all((0..80).map(|_| ask(&bad))).await {
            assert_eq!(asked, Err(HookError::TimedOut(LIMIT)), "{what}");
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", begun.elapsed());
        assert_eq!(ask(&good).await, Ok(HookResult::proceed()), "after {what}");
    }
}

#[tokio::test]
async fn the_limits_are_those_of_the_hook() {
    let grows =
        component("", "(drop (memory.grow (i32.const 320))) (call $answer (i32.const 0) (i32.const 0) (i32.const 0))");
    assert_eq!(ask(&hook(&grows)).await, Ok(HookResult::proceed()));
    let small = hook_with(&grows, |options| options.memory = 8 * 1024 * 1024);
    assert_eq!(failure(ask(&small).await), "the component failed: memory limit of 8 MiB exceeded");
    let short = hook_with(&answering("{       }"), |options| options.most_output = 8);
    assert_eq!(failure(ask(&short).await), "the component answered with more than 8 bytes");
    let fits = hook_with(&answering("{      }"), |options| options.most_output = 8);
    assert_eq!(ask(&fits).await, Ok(HookResult::proceed()));
}
