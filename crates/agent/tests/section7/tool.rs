//! `decision:tool_resolution`, `tool:pre` and `tool:post`.

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::{ToolError, ToolOutput};
use amplifier_core::{HookResult, Injection, TOOL_POST};
use serde_json::json;

use crate::common::{ORCHESTRATORS, Saw, World, texts, tool};
use crate::section7::Cell;

/// The model reads this instead of what the tool said.
fn reads(saw: &mut Saw, success: bool, result: &str) {
    saw.model[1][2] = format!("tool: {result}");
    saw.history[2] = format!("tool: {result}");
    let ended = saw.watched.iter().position(|line| line.starts_with("ended")).unwrap();
    saw.watched[ended] = format!("ended call-1 {success}: {result}");
}

/// The tool does not run, so nobody sees it begin, and the model reads this.
fn does_not_run(saw: &mut Saw, result: &str) {
    saw.tool.clear();
    reads(saw, false, result);
    saw.watched.retain(|line| !line.starts_with("begins"));
}

/// An injection after the result of the tool.
fn after_the_result(saw: &mut Saw) {
    saw.model[1].push("system: mind this".into());
    saw.history.insert(3, "system: mind this".into());
}

mod resolution {
    use super::*;

    const EVENT: &str = "decision:tool_resolution";

    #[tokio::test]
    async fn deny_refuses_the_choice_as_tool_pre_does() {
        Cell::deny(EVENT)
            .check(|saw| {
                does_not_run(saw, "Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_tool_and_later_gates_judge_the_one_that_runs() {
        let cell = Cell::modify(EVENT, "selected_tool", json!("Shout"));
        cell.clone()
            .check(|saw| {
                saw.tool = texts(&[r#"Shout {"text":"hi"}"#]);
                reads(saw, true, "HI");
                saw.audit = texts(&["modify"]);
            })
            .await;
        let run = cell.run().await;
        assert_eq!(run.events("tool:pre")[0]["tool_name"], "Shout");
        assert_eq!(run.events("tool:post")[0]["tool_name"], "Shout");
    }

    #[tokio::test]
    async fn modify_to_a_tool_that_is_not_there_runs_nothing() {
        let run = Cell::modify(EVENT, "selected_tool", json!("Nothing")).run().await;
        assert_eq!(run.inputs, []);
        assert_eq!(run.events("tool:post")[0]["success"], false);
    }

    #[tokio::test]
    async fn inject_is_part_of_the_next_call() {
        Cell::inject(EVENT)
            .check(|saw| {
                after_the_result(saw);
                saw.audit = texts(&["inject_context", "injection of gate: mind this"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_uses_the_tool() {
        Cell::ask(EVENT, "Allow")
            .check(|saw| {
                saw.asked = texts(&["gate at decision:tool_resolution: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_refuses_the_choice() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                does_not_run(saw, "Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at decision:tool_resolution: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
            })
            .await;
    }
}

mod pre {
    use super::*;

    const EVENT: &str = "tool:pre";

    #[tokio::test]
    async fn deny_and_the_tool_does_not_run_and_the_model_reads_why() {
        Cell::deny(EVENT)
            .check(|saw| {
                does_not_run(saw, "Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_input() {
        let cell = Cell::modify(EVENT, "tool_input", json!({ "text": "ho" }));
        cell.clone()
            .check(|saw| {
                saw.tool = texts(&[r#"Echo {"text":"ho"}"#]);
                // The person sees what runs.
                saw.watched[1] = r#"begins call-1 {"text":"ho"}"#.into();
                reads(saw, true, "ho");
                saw.audit = texts(&["modify", "intent"]);
            })
            .await;
        let run = cell.run().await;
        assert_eq!(run.events("tool:post")[0]["tool_input"], json!({ "text": "ho" }));
        assert_eq!(run.records("event", EVENT)[0]["body"]["data"]["tool_input"], json!({ "text": "ho" }));
    }

    #[tokio::test]
    async fn inject_follows_the_result_of_this_tool() {
        Cell::inject(EVENT)
            .check(|saw| {
                after_the_result(saw);
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "intent"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_runs_what_the_person_saw() {
        let cell = Cell::ask(EVENT, "Allow");
        cell.clone()
            .check(|saw| {
                saw.asked = texts(&["gate at tool:pre: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "intent"]);
            })
            .await;
        let run = cell.run().await;
        assert_eq!(run.questions[0].data["tool_input"], json!({ "text": "hi" }));
        assert_eq!(run.records("intent", EVENT)[0]["digest"], run.questions[0].digest.to_string());
    }

    #[tokio::test]
    async fn ask_and_deny_and_the_tool_does_not_run() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                does_not_run(saw, "Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at tool:pre: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
            })
            .await;
    }
}

mod post {
    use super::*;

    const EVENT: &str = "tool:post";

    #[tokio::test]
    async fn deny_and_the_model_gets_the_reason_instead_of_the_result() {
        Cell::deny(EVENT)
            .check(|saw| {
                // It ran, and what it did was done.
                reads(saw, true, "Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_changes_the_result() {
        Cell::modify(EVENT, "tool_result", json!({ "output": "ho" }))
            .check(|saw| {
                reads(saw, true, "ho");
                saw.audit = texts(&["modify", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn modify_that_redacts_reaches_model_transcript_history_and_audit_alike() {
        const SECRET: &str = "the harbour opens at dawn";
        for orchestrator in ORCHESTRATORS {
            let script =
                Script::new([ScriptedResponse::text("").calling("Vault", json!({})), ScriptedResponse::text("Done.")]);
            let world = World::new(script).orchestrator(orchestrator);
            let vault = tool("Vault", &world.inputs, |_| async { Ok(ToolOutput::text(SECRET)) });
            world.hooks.on(TOOL_POST, |_| HookResult::set("tool_result", json!({ "output": "[redacted]" })));
            let run = world.tool(vault).run(&["go"]).await;
            let saw = run.saw(EVENT);
            assert_eq!(saw.model[1].last().unwrap(), "tool: [redacted]");
            assert_eq!(saw.watched[1], "ended call-1 true: [redacted]");
            assert_eq!(saw.history[2], "tool: [redacted]");
            assert_eq!(run.records("event", EVENT)[0]["body"]["data"]["tool_result"]["output"], "[redacted]");
            assert!(!format!("{saw:?}").contains(SECRET));
            assert!(!run.files.contains(SECRET), "neither the stored session nor the audit log has it");
        }
    }

    #[tokio::test]
    async fn modify_that_redacts_reaches_what_is_said_about_a_failure_too() {
        const SECRET: &str = "the harbour opens at dawn";
        let script =
            Script::new([ScriptedResponse::text("").calling("Vault", json!({})), ScriptedResponse::text("Done.")]);
        let world = World::new(script);
        let vault = tool("Vault", &world.inputs, |_| async { Err(ToolError::Failed(SECRET.into())) });
        world.hooks.on(TOOL_POST, |_| HookResult::set("tool_result", json!({ "error": "[redacted]" })));
        let run = world.tool(vault).run(&["go"]).await;
        assert_eq!(run.saw(EVENT).model[1].last().unwrap(), "tool: Error: [redacted]");
        assert!(!run.files.contains(SECRET), "neither the stored session nor the audit log has it");
    }

    #[tokio::test]
    async fn inject_follows_the_result() {
        Cell::inject(EVENT)
            .check(|saw| {
                after_the_result(saw);
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn inject_that_is_appended_is_part_of_the_result_for_one_call() {
        Cell::new(EVENT, HookResult::inject(Injection::new("mind this").append_to_last_tool_result()))
            .check(|saw| {
                saw.model[1][2] = "tool: hi\n\nmind this".into();
                saw.audit = texts(&["inject_context", "injection of gate: mind this", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_hands_the_result_on() {
        Cell::ask(EVENT, "Allow")
            .check(|saw| {
                saw.asked = texts(&["gate at tool:post: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate", "outcome"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_withholds_the_result() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                reads(saw, true, "Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at tool:post: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?", "outcome"]);
            })
            .await;
    }
}
