//! The modules that come with the program, each in a whole turn of a session, switched on by a bundle.

mod approval;
mod logging;
mod progress_monitor;
mod redaction;
mod session_naming;
mod status_context;
mod todo;

use std::path::Path;
use std::sync::Arc;

use amplifier_agent::StoreError;
use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::TodoTool;
use amplifier_core::HookRegistry;
use amplifier_core::testing::ManualClock;
use amplifier_modules::bundle::load;
use amplifier_modules::{HookEnvironment, Scope};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{World, tool};

/// A session with a module: the world around it, a workspace, and time that stands still.
struct Modules {
    world: World,
    workspace: TempDir,
    clock: ManualClock,
}

impl Modules {
    /// A model that follows the script, with the tools `Echo`, `Shout` and `Todo`.
    fn new(script: Script) -> Self {
        let world = World::new(script).tool(Arc::new(TodoTool::new()));
        Self { world, workspace: tempfile::tempdir().unwrap(), clock: ManualClock::new() }
    }

    fn change(mut self, change: impl FnOnce(World) -> World) -> Self {
        self.world = change(self.world);
        self
    }

    /// One more tool, which gives back its `text`.
    fn echoing(self, name: &'static str) -> Self {
        let echo = tool(name, &self.world.inputs, |input| async move {
            let text = input.get("text").and_then(Value::as_str).unwrap_or("done").to_owned();
            Ok(amplifier_agent::tool::ToolOutput::text(text))
        });
        self.change(|world| world.tool(echo))
    }

    /// Registers the hooks of a bundle in the workspace. Names of sessions go to the store.
    fn bundle(self, text: &str) -> Self {
        let store = self.world.store();
        let host = host(self.workspace.path(), &self.clock).name_session(move |id, name| match store.name(id, name) {
            // A sub-agent is not stored.
            Ok(()) | Err(StoreError::Unknown { .. }) => {}
            Err(error) => panic!("{error}"),
        });
        register(self.workspace.path(), text, &self.world.hooks, &host).unwrap();
        self
    }
}

fn host(workspace: &Path, clock: &ManualClock) -> HookEnvironment {
    HookEnvironment::new(Scope::new(workspace).unwrap().clock(clock.clone()).time_zone(TimeZone::UTC))
}

fn register(workspace: &Path, text: &str, hooks: &HookRegistry, host: &HookEnvironment) -> Result<(), String> {
    let file = workspace.join("bundle.yaml");
    std::fs::write(&file, text).unwrap();
    let bundle = load(&file).map_err(|error| error.to_string())?;
    bundle.register(hooks, host).map(drop).map_err(|error| error.message)
}

/// The error for an invalid `config` of a module.
fn problem(module: &str, config: &str) -> String {
    let workspace = tempfile::tempdir().unwrap();
    let text = format!("hooks:\n  - module: {module}\n    config: {config}\n");
    let hooks = HookRegistry::new();
    let problem = register(workspace.path(), &text, &hooks, &host(workspace.path(), &ManualClock::new())).unwrap_err();
    assert!(hooks.list_handlers().is_empty());
    let prefix = format!("`config` of `{module}`: ");
    problem.strip_prefix(&prefix).unwrap_or_else(|| panic!("{problem}")).to_owned()
}

fn check_problems(module: &str, table: &[(&str, &str)]) {
    for (config, expected) in table {
        assert_eq!(problem(module, config), *expected, "{config}");
    }
}

/// The model makes these calls, one an answer, and says that it is done.
fn calls(calls: &[(&str, Value)]) -> Script {
    let answers = calls.iter().map(|(tool, input)| ScriptedResponse::default().calling(tool, input.clone()));
    Script::new(answers.chain([ScriptedResponse::text("Done.")]))
}

fn echo(text: &str) -> (&'static str, Value) {
    ("Echo", json!({ "text": text }))
}

/// The messages of hooks.
fn shown(run: &crate::common::Run) -> Vec<String> {
    run.messages.iter().map(ToString::to_string).collect()
}
