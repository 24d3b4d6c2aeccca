//! `session:start` and `session:resume`.

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::HookResult;
use serde_json::json;

use crate::common::{Run, Saw, texts};
use crate::section7::{Cell, refused};

mod start {
    use super::*;

    const EVENT: &str = "session:start";

    #[tokio::test]
    async fn deny_and_the_session_does_not_start() {
        Cell::deny(EVENT)
            .check(|saw| {
                refused(saw, "the session does not start: Denied by hook gate: not now");
                saw.audit = texts(&["deny by gate: not now"]);
            })
            .await;
    }

    #[tokio::test]
    async fn deny_leaves_no_session_that_could_be_resumed() {
        let run = Cell::deny(EVENT).run().await;
        assert_eq!(run.sessions, [""; 0]);
    }

    #[tokio::test]
    async fn deny_leaves_no_session_on_record_without_an_end() {
        let run = Cell::deny(EVENT).run().await;
        assert_eq!(run.report.unsealed, [""; 0]);
    }

    #[tokio::test]
    async fn modify_changes_the_metadata_of_the_session() {
        let cell = Cell::modify(EVENT, "mount_plan", json!({ "team": "blue" }));
        cell.clone().check(|saw| saw.audit = texts(&["modify"])).await;
        let run = cell.run().await;
        assert_eq!(run.stored.as_ref().unwrap().mount_plan, json!({ "team": "blue" }));
        let [record] = run.records("event", EVENT)[..] else { panic!("one start is on record") };
        assert_eq!(record["body"]["data"]["mount_plan"], json!({ "team": "blue" }));
    }

    #[tokio::test]
    async fn inject_stands_before_the_first_prompt() {
        Cell::inject(EVENT)
            .check(|saw| {
                saw.model.iter_mut().for_each(|request| request.insert(0, "system: mind this".into()));
                saw.history.insert(0, "system: mind this".into());
                saw.audit = texts(&["inject_context", "injection of gate: mind this"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_allow_starts_the_session() {
        Cell::ask(EVENT, "Allow")
            .check(|saw| {
                saw.asked = texts(&["gate at session:start: Really?"]);
                saw.audit = texts(&["ask_user", "granted to gate"]);
            })
            .await;
    }

    #[tokio::test]
    async fn ask_and_deny_and_the_session_does_not_start() {
        Cell::ask(EVENT, "Deny")
            .check(|saw| {
                refused(saw, "the session does not start: Denied by hook gate: User denied: Really?");
                saw.asked = texts(&["gate at session:start: Really?"]);
                saw.audit = texts(&["ask_user", "refused to gate: User denied: Really?"]);
            })
            .await;
    }
}

mod resume {
    use super::*;

    const EVENT: &str = "session:resume";

    /// A turn, the end of the session, and another turn after it was resumed.
    async fn resumed(cell: Cell) -> Run {
        let script = || Script::new(["One.", "Two."].map(ScriptedResponse::text));
        cell.script(script).world().run_and_resume("first", "second").await
    }

    fn usual() -> Saw {
        Saw {
            ends: texts(&["answered: One.", "answered: Two."]),
            model: vec![texts(&["user: first"]), texts(&["user: first", "assistant: One.", "user: second"])],
            watched: texts(&["text One.", "text Two."]),
            history: texts(&["user: first", "assistant: One.", "user: second", "assistant: Two."]),
            ..Saw::default()
        }
    }

    fn not_resumed(reason: &str) -> Saw {
        Saw {
            ends: texts(&[reason]),
            model: vec![texts(&["user: first"])],
            watched: texts(&["text One."]),
            ..Saw::default()
        }
    }

    #[tokio::test]
    async fn deny_and_the_session_does_not_go_on() {
        let expected = Saw {
            audit: texts(&["deny by gate: not now"]),
            ..not_resumed("the session does not start: Denied by hook gate: not now")
        };
        assert_eq!(resumed(Cell::deny(EVENT)).await.saw(EVENT), expected);
    }

    #[tokio::test]
    async fn modify_is_recorded_and_changes_nothing_of_the_turn() {
        let run = resumed(Cell::modify(EVENT, "messages_count", json!(7))).await;
        assert_eq!(run.saw(EVENT), Saw { audit: texts(&["modify"]), ..usual() });
        assert_eq!(run.records("event", EVENT)[0]["body"]["data"]["messages_count"], 7);
    }

    #[tokio::test]
    async fn inject_stands_before_the_next_prompt() {
        let mut expected = usual();
        expected.model[1].insert(2, "system: mind this".into());
        expected.history.insert(2, "system: mind this".into());
        expected.audit = texts(&["inject_context", "injection of gate: mind this"]);
        assert_eq!(resumed(Cell::inject(EVENT)).await.saw(EVENT), expected);
    }

    #[tokio::test]
    async fn ask_and_allow_goes_on() {
        let expected = Saw {
            asked: texts(&["gate at session:resume: Really?"]),
            audit: texts(&["ask_user", "granted to gate"]),
            ..usual()
        };
        assert_eq!(resumed(Cell::ask(EVENT, "Allow")).await.saw(EVENT), expected);
    }

    #[tokio::test]
    async fn ask_and_deny_and_the_session_does_not_go_on() {
        let expected = Saw {
            asked: texts(&["gate at session:resume: Really?"]),
            audit: texts(&["ask_user", "refused to gate: User denied: Really?"]),
            ..not_resumed("the session does not start: Denied by hook gate: User denied: Really?")
        };
        assert_eq!(resumed(Cell::ask(EVENT, "Deny")).await.saw(EVENT), expected);
    }

    #[tokio::test]
    async fn a_resumed_session_tells_hooks_that_it_starts_and_that_it_was_resumed() {
        let run = resumed(Cell::new("x:y", HookResult::proceed())).await;
        let sources: Vec<_> = run.events("session:start").iter().map(|start| start["source"].clone()).collect();
        assert_eq!(sources, ["startup", "resume"]);
        let [resume] = run.events(EVENT)[..] else { panic!("it was resumed once") };
        assert_eq!(
            (resume.text("resumed_session_id"), &resume["messages_count"]),
            (Some(run.session.as_str()), &json!(2))
        );
    }
}
