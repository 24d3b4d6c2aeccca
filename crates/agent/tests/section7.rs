//! The effect of each hook result at each event: every cell of the table, each in a whole turn, observed at the model, the tool, the
//! user, the history and the audit log.

mod agent;
mod children;
mod compaction;
mod observed;
mod prompt;
mod provider;
mod session;
mod tool;

use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::{HookRegistry, HookResult};
use serde_json::json;

use crate::common::{ORCHESTRATORS, Run, Saw, World, texts};

/// The first result of the hook `gate`, and the answer of the user.
#[derive(Clone)]
struct Cell {
    event: &'static str,
    answer: HookResult,
    person: &'static str,
    script: fn() -> Script,
}

impl Cell {
    fn new(event: &'static str, answer: HookResult) -> Self {
        Self { event, answer, person: "Allow", script: one_tool }
    }

    fn deny(event: &'static str) -> Self {
        Self::new(event, HookResult::deny("not now"))
    }

    fn modify(event: &'static str, field: &'static str, value: serde_json::Value) -> Self {
        Self::new(event, HookResult::set(field, value))
    }

    fn inject(event: &'static str) -> Self {
        Self::new(event, HookResult::inject("mind this"))
    }

    fn ask(event: &'static str, person: &'static str) -> Self {
        Self { person, ..Self::new(event, HookResult::ask("Really?")) }
    }

    fn script(self, script: fn() -> Script) -> Self {
        Self { script, ..self }
    }

    /// A world with that hook.
    fn world(&self) -> World {
        let world = World::new((self.script)()).person(&[self.person]);
        gate(&world.hooks, self.event, self.answer.clone());
        world
    }

    /// Runs the turn in both orchestrators. `expected` changes what the usual turn looks like.
    async fn check(self, expected: impl Fn(&mut Saw)) {
        for orchestrator in ORCHESTRATORS {
            let run = self.world().orchestrator(orchestrator).run(&["go"]).await;
            let mut usual = usual(self.script).await;
            expected(&mut usual);
            assert_eq!(run.saw(self.event), usual, "{} in {}", self.event, orchestrator.as_str());
        }
    }

    /// Runs the turn once, for what else can be seen of it.
    async fn run(self) -> Run {
        self.world().run(&["go"]).await
    }
}

/// A hook that gives the answer once and says nothing afterwards.
fn gate(hooks: &HookRegistry, event: &str, answer: HookResult) {
    let spoke = AtomicBool::new(false);
    let answer = move |_| (!spoke.swap(true, Ordering::Relaxed)).then(|| answer.clone());
    hooks.hook(event).named("gate").run(answer).unwrap();
}

/// The observations without a hook result; the audit log is left out.
async fn usual(script: fn() -> Script) -> Saw {
    World::new(script()).run(&["go"]).await.saw("")
}

/// The model uses a tool, and answers.
fn one_tool() -> Script {
    Script::new([
        ScriptedResponse::text("Let me see.").calling("Echo", json!({ "text": "hi" })),
        ScriptedResponse::text("Done."),
    ])
}

/// The model delegates, and answers.
fn one_agent() -> Script {
    let delegates = ScriptedResponse::text("Let me ask.").calling("Task", json!({ "task": "count" }));
    let mut script = Script::new([delegates, ScriptedResponse::text("Four.")]);
    script.agents.insert("general".into(), vec![ScriptedResponse::text("It is four.")]);
    script
}

/// A turn that never came to anything.
fn refused(saw: &mut Saw, reason: &str) {
    *saw = Saw { ends: texts(&[reason]), ..Saw::default() };
}

#[tokio::test]
async fn the_usual_turn_is_as_the_other_tests_take_it_to_be() {
    let expected = Saw {
        ends: texts(&["answered: Done."]),
        model: vec![texts(&["user: go"]), texts(&["user: go", "assistant: Let me see. [call-1]", "tool: hi"])],
        tool: texts(&[r#"Echo {"text":"hi"}"#]),
        watched: texts(&["text Let me see.", r#"begins call-1 {"text":"hi"}"#, "ended call-1 true: hi", "text Done."]),
        history: texts(&["user: go", "assistant: Let me see. [call-1]", "tool: hi", "assistant: Done."]),
        ..Saw::default()
    };
    assert_eq!(usual(one_tool).await, expected);
}
