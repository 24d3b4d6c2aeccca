use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::TOOL_POST;
use serde_json::json;

use super::server::get;
use super::{Setup, told};

const BUNDLE: &str = "
    hooks:
      - module: hooks-metrics
        config: { listen: '127.0.0.1:0', file: metrics.prom }
      - module: hooks-todo-display
        config: { show: false }
      - module: hooks-session-naming
        config: { announce: true }
      - module: hooks-progress-monitor
    ";

/// The entries change in the middle of a turn.
#[tokio::test]
async fn what_modules_know_of_a_session_outlasts_a_change_of_their_entries() {
    let setup = Setup::new(BUNDLE);
    let todos = json!({ "todos": [{ "content": "Test it", "status": "pending" }] });
    let script = [
        ScriptedResponse::text("I note.").calling("Todo", todos),
        ScriptedResponse::text("Noted."),
        ScriptedResponse::text("Done."),
    ];
    let world = setup.followed(Script::new(script));
    let (file, display) = (setup.file(), world.display.clone());
    let changed = std::fs::read_to_string(&file).unwrap().replace("- module", "- timeout: 7\n    module");
    world.hooks.hook(TOOL_POST).run(move |_| std::fs::write(&file, &changed).unwrap());
    let run = world.run_by(async |session| {
        let ends = vec![session.prompt("Test the parser").await, session.prompt("Write down the results").await];
        let messages = display.messages();
        let address = messages.iter().find_map(|message| message.text.strip_prefix("the metrics are at http://"));
        let (_, metrics) = get(address.unwrap().strip_suffix("/metrics").unwrap(), "/metrics").await;
        assert!(metrics.contains("amplifier_events_total{event=\"prompt:submit\"} 2\n"), "{metrics}");
        ends
    });
    let run = run.await;
    let told = told(&run);
    assert!(told[0].starts_with("the metrics are at http://127.0.0.1:"), "{told:?}");
    assert_eq!(
        told[1..3],
        ["This session is called “Test the parser”.", "a bundle has changed: its hooks are active from now on",]
    );
    assert!(told[3].starts_with("done after 2 steps: 1 tool call, 0 s, "), "{told:?}");
    assert!(told[4].starts_with("done after 1 step: 0 tool calls, 0 s, "), "{told:?}");
    assert_eq!(told.len(), 5, "{told:?}");
    let reminded =
        |request: usize| run.requests[request].messages.iter().any(|told| told.content.contains("[ ] Test it"));
    assert!(reminded(1) && reminded(2), "{:?}", run.requests);
    let metrics = std::fs::read_to_string(setup.folder.path().join("metrics.prom")).unwrap();
    assert!(metrics.contains("amplifier_events_total{event=\"session:start\"} 1\n"), "{metrics}");
}
