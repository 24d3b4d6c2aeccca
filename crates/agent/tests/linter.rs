//! The linter loop for real: the agent writes a bad file, a hook runs `ruff`, and the agent corrects itself within the turn.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_agent::tool::{Workspace, standard};
use amplifier_agent::{Session, TurnEnd};
use amplifier_core::{Event, HookError, HookRegistry, HookResult, TOOL_POST, ToolPost};
use serde_json::json;
use tokio::process::Command;

/// `./test` puts it there; a person may have it anyway.
fn ruff() -> PathBuf {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/ruff");
    let installed = PathBuf::from(installed);
    if installed.exists() { installed } else { "ruff".into() }
}

async fn lint(workspace: PathBuf, event: Event<ToolPost>) -> Result<Option<HookResult>, HookError> {
    let file = event.text_at("/tool_input/file_path");
    let (Some(file), "Write" | "Edit" | "MultiEdit") = (file, event.tool_name()) else { return Ok(None) };
    let mut linter = Command::new(ruff());
    linter.args(["check", "--isolated", "--no-cache", "--output-format", "concise", file]).current_dir(workspace);
    let output = linter.kill_on_drop(true).output().await?;
    if output.status.success() {
        return Ok(None);
    }
    let problems = String::from_utf8_lossy(&output.stdout);
    Ok(Some(HookResult::inject(format!("Linter issues in {file}:\n{problems}")).warning("the linter found something")))
}

#[tokio::test]
async fn the_agent_sees_what_the_linter_says_and_corrects_the_file_within_the_turn() {
    let version = std::process::Command::new(ruff()).arg("--version").output();
    assert!(version.is_ok(), "`ruff` is missing: `./test` installs it, so does `pip install ruff`");
    let folder = tempfile::tempdir().unwrap();
    let bad = "import os\n\n\ndef greet(name):\n    print(nmae)\n";
    let script = Script::new([
        ScriptedResponse::text("I write it.").calling("Write", json!({ "file_path": "greet.py", "content": bad })),
        ScriptedResponse {
            when: Some("F821".to_owned()),
            ..ScriptedResponse::text("The linter is right.").calling(
                "MultiEdit",
                json!({ "file_path": "greet.py", "edits": [
                    { "old_string": "import os\n\n\n", "new_string": "" },
                    { "old_string": "nmae", "new_string": "name" },
                ] }),
            )
        },
        ScriptedResponse::text("It is clean now."),
    ]);
    let provider = Arc::new(ScriptedProvider::new(script).recording());
    let hooks = HookRegistry::new();
    let linted = folder.path().to_owned();
    hooks.hook(TOOL_POST).named("linter").run(move |event| lint(linted.clone(), event));
    let tools = standard(&Workspace::new(folder.path()).unwrap());
    let session = Session::builder(provider.clone()).hooks(hooks).tools(tools).start().await.unwrap();

    assert_eq!(session.prompt("Write greet.py").await, TurnEnd::Answered("It is clean now.".to_owned()));

    let told = provider.requests()[1].messages.last().unwrap().content.clone();
    assert!(told.contains("F401") && told.contains("F821"), "{told}");
    let last = provider.requests()[2].messages.last().unwrap().content.clone();
    assert_eq!(last, "made 2 edits in `greet.py`", "the linter has nothing more to say");
    let written = std::fs::read_to_string(folder.path().join("greet.py")).unwrap();
    assert_eq!(written, "def greet(name):\n    print(name)\n");
}
