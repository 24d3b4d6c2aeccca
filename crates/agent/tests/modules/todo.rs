//! `hooks-todo-display` and `hooks-todo-reminder`.

use amplifier_agent::provider::{Script, ScriptedResponse};
use serde_json::{Value, json};

use crate::common::Run;
use crate::modules::{Modules, calls, check_problems, echo, shown};

const DISPLAY: &str = "hooks-todo-display";
const REMINDER: &str = "hooks-todo-reminder";

fn todo(items: &[(&str, &str)]) -> (&'static str, Value) {
    let items: Vec<_> = items.iter().map(|(content, status)| json!({ "content": content, "status": status })).collect();
    ("Todo", json!({ "todos": items }))
}

/// The texts of hooks in each model call.
fn told(run: &Run) -> Vec<Option<&str>> {
    let requests = run.requests.iter();
    requests
        .map(|request| request.messages.last().filter(|last| last.metadata.contains_key("hook_name")))
        .map(|last| last.map(|last| last.content.as_str()))
        .collect()
}

#[tokio::test]
async fn the_model_sees_the_list_with_every_call_while_something_is_open() {
    let begun = todo(&[("read", "completed"), ("write\nit", "in_progress"), ("test", "pending")]);
    let ended = todo(&[("read", "completed"), ("write it", "completed"), ("test", "completed")]);
    let script = calls(&[echo("a"), begun.clone(), echo("b"), begun, ended]);
    let run = Modules::new(script).bundle("hooks:\n  - module: hooks-todo-display\n").world.run(&["go"]).await;
    let list = "Your to-do list now (do not mention this reminder):\n[x] read\n[>] write it\n[ ] test";
    assert_eq!(told(&run), [None, None, Some(list), Some(list), Some(list), None]);
    let shown_once = [
        format!("info [hook:{DISPLAY}] To do:\n[x] read\n[>] write it\n[ ] test"),
        format!("info [hook:{DISPLAY}] To do:\n[x] read\n[x] write it\n[x] test"),
    ];
    assert_eq!(shown(&run), shown_once);
    assert!(!run.history.iter().any(|message| message.metadata.contains_key("hook_name")), "it is not kept");
}

#[tokio::test]
async fn a_long_list_is_cut_and_a_list_that_was_refused_is_none() {
    let bad = ("Todo", json!({ "todos": [{ "content": "", "status": "pending" }] }));
    let long = todo(&[("a", "completed"), ("b", "pending"), ("c", "in_progress")]);
    let script = calls(&[bad, long, todo(&[])]);
    let bundle = "hooks:\n  - module: hooks-todo-display\n    config: { most: 2, show: false }\n";
    let run = Modules::new(script).bundle(bundle).world.run(&["go"]).await;
    let list = "Your to-do list now (do not mention this reminder):\n[ ] b\n[>] c\n… and 1 more";
    assert_eq!(told(&run), [None, None, Some(list), None]);
    assert_eq!(shown(&run), [""; 0]);
}

#[tokio::test]
async fn a_sub_agent_has_a_list_of_its_own() {
    let mut script = Script::new([
        ScriptedResponse::default().calling("Todo", todo(&[("delegate", "pending")]).1),
        ScriptedResponse::default().calling("Task", json!({ "task": "count" })),
        ScriptedResponse::text("Done."),
    ]);
    let (_, input) = todo(&[("count", "pending")]);
    script.agents.insert(
        "general".into(),
        vec![ScriptedResponse::default().calling("Todo", input), ScriptedResponse::text("Four.")],
    );
    let bundle = "hooks:\n  - module: hooks-todo-display\n    config: { show: false }\n";
    let run = Modules::new(script).bundle(bundle).world.run(&["go"]).await;
    let list = |item| Some(format!("Your to-do list now (do not mention this reminder):\n[ ] {item}"));
    let told: Vec<Option<String>> = told(&run).into_iter().map(|told| told.map(str::to_owned)).collect();
    assert_eq!(told, [None, list("delegate"), None, list("count"), list("delegate")]);
}

#[tokio::test]
async fn the_model_is_reminded_of_open_items_that_it_has_not_looked_after() {
    let open = todo(&[("read", "completed"), ("write", "pending")]);
    let done = todo(&[("read", "completed"), ("write", "completed")]);
    let script = calls(&[open, echo("a"), echo("b"), echo("c"), echo("d"), done, echo("e"), echo("f"), echo("g")]);
    let bundle = "hooks:\n  - module: hooks-todo-reminder\n    config: { after_calls: 2 }\n";
    let run = Modules::new(script).bundle(bundle).world.run(&["go"]).await;
    let reminded: Vec<bool> = told(&run).iter().map(Option::is_some).collect();
    assert_eq!(reminded, [false, false, false, true, false, true, false, false, false, false]);
    let expected = "Your to-do list has 1 open item and was not updated for 2 answers and 2 tool calls. Mark what is done as \
                    completed, have the item you work on in progress, and take out what is no longer needed. Do not mention this \
                    reminder.";
    assert_eq!(told(&run)[3], Some(expected));
    assert!(!run.history.iter().any(|message| message.metadata.contains_key("hook_name")), "it is not kept");
}

#[tokio::test]
async fn many_tools_count_too_and_a_long_task_without_a_list_is_noticed_in_each_turn() {
    let several =
        |number: usize| (0..number).fold(ScriptedResponse::default(), |answer, _| answer.calling("Echo", json!({})));
    let bundle =
        "hooks:\n  - module: hooks-todo-reminder\n    config: { after_calls: 0, after_tools: 3, without_list: 2 }\n";
    let (_, open) = todo(&[("write", "pending")]);
    let script = Script::new([
        several(1),
        ScriptedResponse::text("First."),
        several(2),
        ScriptedResponse::default().calling("Todo", open),
        several(3),
        ScriptedResponse::text("Second."),
    ]);
    let run = Modules::new(script).bundle(bundle).world.run(&["go", "on"]).await;
    let without = "This task took 2 tool calls so far, and there is no to-do list. If several steps are left, write them down in one. \
                   Do not mention this reminder.";
    let told = told(&run);
    assert_eq!(told[..5], [None, None, None, Some(without), None]);
    assert!(told[5].unwrap().contains("1 open item and was not updated for 1 answer and 3 tool calls"), "{told:?}");
}

#[test]
fn bad_options_are_told() {
    let tools = "`tools` is empty: name at least one";
    check_problems(
        DISPLAY,
        &[
            ("{ most: 0 }", "`most` is 0: give it 1 or more"),
            ("{ tools: [] }", tools),
            ("{ hide: true }", "`hide`: unknown field `hide`, expected one of `tools`, `show`, `most`"),
        ],
    );
    check_problems(
        REMINDER,
        &[
            (
                "{ after_calls: 0, after_tools: 0, without_list: 0 }",
                "all reminders are disabled; set `after_calls`, `after_tools` or `without_list` above 0",
            ),
            ("{ tools: [] }", tools),
            ("{ after_calls: -1 }", "`after_calls`: invalid value: integer `-1`, expected a whole number, 0 or more"),
        ],
    );
}
