//! `hooks-session-naming`.

use amplifier_agent::provider::{Script, ScriptedResponse};
use serde_json::json;

use crate::modules::{Modules, check_problems, shown};

const NAME: &str = "hooks-session-naming";
const BUNDLE: &str = "hooks:\n  - module: hooks-session-naming\n";

/// The name of a session of these prompts and answers.
async fn named(turns: &[(&str, &str)]) -> Option<String> {
    let script = Script::new(turns.iter().map(|(_, answer)| ScriptedResponse::text(*answer)));
    let prompts: Vec<&str> = turns.iter().map(|(prompt, _)| *prompt).collect();
    let run = Modules::new(script).bundle(BUNDLE).world.run(&prompts).await;
    run.stored.unwrap().name
}

#[tokio::test]
async fn the_first_sentence_that_says_something_is_the_name() {
    let long = "Rename the function that reads the configuration and everything that calls it to something shorter";
    let table = [
        ("Fix the failing date test. It broke yesterday.", "Fix the failing date test"),
        ("Hi! Could you please add a dark mode to the settings page?", "Add a dark mode to the settings page?"),
        ("please look at `src/main.rs` and explain it", "Look at src/main.rs and explain it"),
        ("```\nlet x = 1;\n```\nWhy does this not compile?", "Why does this not compile?"),
        ("# Release notes\n\n- Write the notes for 2.0", "Write the notes for 2.0"),
        ("what\u{1b}[2J is \u{202e}in the\tfolder", "What[2J is in the folder"),
        (long, "Rename the function that reads the configuration and…"),
    ];
    for (prompt, expected) in table {
        assert_eq!(named(&[(prompt, "Done.")]).await.as_deref(), Some(expected), "{prompt}");
    }
}

#[tokio::test]
async fn a_prompt_that_says_little_is_named_after_what_came_of_it() {
    let answered = [("go on", "OK. I fixed the failing date test.")];
    assert_eq!(named(&answered).await.as_deref(), Some("I fixed the failing date test"));
    let asked =
        [("hello", "Hi!"), ("go on", "What?"), ("Write a parser for dates", "Done."), ("Now test it well", "OK")];
    assert_eq!(named(&asked).await.as_deref(), Some("Write a parser for dates"));
    assert_eq!(named(&[("fix it", "Done."), ("ok now", "Done.")]).await.as_deref(), Some("Fix it"));
}

#[tokio::test]
async fn a_secret_is_not_part_of_the_name() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let name = named(&[(&format!("Push the branch with the token {key} to origin"), "Done.")]).await.unwrap();
    assert_eq!(name, "Push the branch with the token … to origin");
}

#[tokio::test]
async fn a_sub_agent_has_no_name_and_a_resumed_session_keeps_its_own() {
    let mut script = Script::new([
        ScriptedResponse::default().calling("Task", json!({ "task": "Count the files in the folder" })),
        ScriptedResponse::text("Four."),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("general".into(), vec![ScriptedResponse::text("It is four.")]);
    let modules = Modules::new(script).bundle(&format!("{BUNDLE}    config: {{ announce: true }}\n"));
    let run = modules.world.run_and_resume("How many files are there?", "Delete all of the files").await;
    assert_eq!(run.stored.as_ref().unwrap().name.as_deref(), Some("How many files are there?"));
    assert_eq!(shown(&run), [format!("info [hook:{NAME}] This session is called “How many files are there?”.")]);
}

#[tokio::test]
async fn a_prompt_that_was_not_processed_is_no_name() {
    let modules = Modules::new(Script::new([ScriptedResponse::text("Done.")]));
    let rule = "  - rule: no\n    on: prompt:submit\n    when: prompt.contains('forbidden')\n    deny: no\n";
    let modules = modules.bundle(&format!("{BUNDLE}{rule}"));
    let run = modules.world.run(&["Do the forbidden thing now", "Do something else instead"]).await;
    assert_eq!(run.stored.unwrap().name.as_deref(), Some("Do something else instead"));
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{ longest: 5 }", "`longest` is 5: give it 10 to 200 characters"),
            ("{ longest: many }", "`longest`: invalid type: string \"many\", expected a whole number, 0 or more"),
            ("{ length: 5 }", "`length`: unknown field `length`, expected `longest` or `announce`"),
        ],
    );
}
