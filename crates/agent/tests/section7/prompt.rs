//! `prompt:submit`.

use serde_json::json;

use crate::common::texts;
use crate::section7::{Cell, refused};

const EVENT: &str = "prompt:submit";

#[tokio::test]
async fn deny_and_the_prompt_is_not_processed_and_the_person_learns_why() {
    Cell::deny(EVENT)
        .check(|saw| {
            refused(saw, "refused: Denied by hook gate: not now");
            saw.audit = texts(&["deny by gate: not now"]);
        })
        .await;
}

#[tokio::test]
async fn modify_changes_the_prompt() {
    Cell::modify(EVENT, "prompt", json!("walk"))
        .check(|saw| {
            saw.model.iter_mut().for_each(|request| request[0] = "user: walk".into());
            saw.history[0] = "user: walk".into();
            saw.audit = texts(&["modify"]);
        })
        .await;
}

#[tokio::test]
async fn inject_is_there_before_the_model_sees_the_prompt() {
    Cell::inject(EVENT)
        .check(|saw| {
            saw.model.iter_mut().for_each(|request| request.insert(0, "system: mind this".into()));
            saw.history.insert(0, "system: mind this".into());
            saw.audit = texts(&["inject_context", "injection of gate: mind this"]);
        })
        .await;
}

#[tokio::test]
async fn ask_and_allow_processes_the_prompt() {
    Cell::ask(EVENT, "Allow")
        .check(|saw| {
            saw.asked = texts(&["gate at prompt:submit: Really?"]);
            saw.audit = texts(&["ask_user", "granted to gate"]);
        })
        .await;
}

#[tokio::test]
async fn ask_and_deny_and_the_prompt_is_not_processed() {
    Cell::ask(EVENT, "Deny")
        .check(|saw| {
            refused(saw, "refused: Denied by hook gate: User denied: Really?");
            saw.asked = texts(&["gate at prompt:submit: Really?"]);
            saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
        })
        .await;
}

#[tokio::test]
async fn a_session_goes_on_after_a_prompt_was_denied() {
    let run = Cell::deny(EVENT).world().run(&["bad", "go"]).await;
    let saw = run.saw(EVENT);
    assert_eq!(saw.ends, ["refused: Denied by hook gate: not now", "answered: Done."]);
    assert_eq!(saw.history, ["user: go", "assistant: Let me see. [call-1]", "tool: hi", "assistant: Done."]);
}
