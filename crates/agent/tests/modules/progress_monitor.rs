//! `hooks-progress-monitor`.

use std::time::Duration;

use amplifier_agent::tool::ToolOutput;
use serde_json::{Value, json};

use crate::common::{Run, tool};
use crate::modules::{Modules, calls, check_problems, echo, shown};

const NAME: &str = "hooks-progress-monitor";

/// The number of tokens that so many calls use.
fn tokens(run: &Run, calls: usize) -> u64 {
    let used = |field: &str, data: &amplifier_core::EventData| data["usage"][field].as_u64().unwrap();
    let calls = run.events("provider:response").into_iter().take(calls);
    calls.map(|data| used("input_tokens", data) + used("output_tokens", data)).sum()
}

#[tokio::test]
async fn the_person_is_told_every_few_tools_and_at_the_end() {
    let modules = Modules::new(calls(&[echo("a"), echo("b"), echo("c")]))
        .bundle("hooks:\n  - module: hooks-progress-monitor\n    config: { every: 2 }\n");
    let run = modules.world.run(&["go"]).await;
    let expected = [
        format!("info [hook:{NAME}] step 2: Echo has run; 2 tool calls, 0 s, {} tokens", tokens(&run, 2)),
        format!("info [hook:{NAME}] done after 4 steps: 3 tool calls, 0 s, {} tokens", tokens(&run, 4)),
    ];
    assert_eq!(shown(&run), expected);
}

#[tokio::test]
async fn the_person_is_told_when_it_was_quiet_for_long() {
    let modules = Modules::new(calls(&[echo("a"), ("Wait", json!({})), echo("b")]));
    let clock = modules.clock.clone();
    let wait = tool("Wait", &modules.world.inputs, move |_| {
        clock.advance(Duration::from_secs(3725));
        async { Ok(ToolOutput::text("waited")) }
    });
    let modules = modules
        .change(|world| world.tool(wait))
        .bundle("hooks:\n  - module: hooks-progress-monitor\n    config: { every: 0, seconds: 60, summary: false }\n");
    let run = modules.world.run(&["go"]).await;
    let line = format!("info [hook:{NAME}] step 2: Wait has run; 2 tool calls, 1 h 2 min, {} tokens", tokens(&run, 2));
    assert_eq!(shown(&run), [line]);
}

#[tokio::test]
async fn tools_are_told_with_what_they_are_about_but_without_secrets() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let script = calls(&[("Bash", json!({ "command": format!("curl -H 'Authorization: token {key}'\n\u{1b}[2Jx") }))]);
    let run = Modules::new(script)
        .echoing("Bash")
        .bundle("hooks:\n  - module: hooks-progress-monitor\n    config: { every: 0, tools: true, summary: false }\n")
        .world
        .run(&["go"])
        .await;
    let [line] = &shown(&run)[..] else { panic!("{:?}", run.messages) };
    assert!(line.starts_with(&format!("info [hook:{NAME}] step 1: Bash `curl -H 'Authorization: ")), "{line}");
    assert!(!line.contains("ghp_") && !line.contains('\u{1b}') && !line.contains('\n'), "{line}");
}

#[tokio::test]
async fn each_turn_is_counted_on_its_own() {
    let mut script = calls(&[echo("a")]);
    script.answers.extend(calls(&[]).answers);
    let run =
        Modules::new(script).bundle("hooks:\n  - module: hooks-progress-monitor\n").world.run(&["go", "on"]).await;
    let second = run.events("provider:response")[2];
    let used: Value =
        (second["usage"]["input_tokens"].as_u64().unwrap() + second["usage"]["output_tokens"].as_u64().unwrap()).into();
    let expected = [
        format!("info [hook:{NAME}] done after 2 steps: 1 tool call, 0 s, {} tokens", tokens(&run, 2)),
        format!("info [hook:{NAME}] done after 1 step: 0 tool calls, 0 s, {used} tokens"),
    ];
    assert_eq!(shown(&run), expected);
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{ seconds: -1 }", "`seconds` is -1: give seconds, 0 or more"),
            ("{ every: 0, seconds: 0, summary: false }", "everything is disabled; enable at least one option"),
            ("{ often: 1 }", "`often`: unknown field `often`, expected one of `every`, `seconds`, `tools`, `summary`"),
        ],
    );
}
