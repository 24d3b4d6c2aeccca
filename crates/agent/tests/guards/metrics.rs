use std::time::Duration;

use amplifier_agent::provider::{Script, ScriptedFault, ScriptedResponse};
use amplifier_core::testing::ManualClock;
use serde_json::{Value, json};

use super::server::{Server, get};
use super::{Setup, asked, check_problems, echoes, told};
use crate::common::World;

/// A turn in which something of everything happens.
fn eventful(setup: &Setup) -> World {
    let script = Script::new([
        ScriptedResponse::failing(ScriptedFault::Throttled),
        ScriptedResponse::text("I call.")
            .calling("Echo", json!({ "text": "a" }))
            .calling("Bash", json!({ "command": "rm -rf x" }))
            .calling("Bash", json!({ "command": "false" })),
        ScriptedResponse::text("Done."),
    ]);
    setup.world(script).person(&["Deny"])
}

#[tokio::test]
async fn prometheus_reads_a_file_of_all_that_happened() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-bash-guard
          - module: hooks-metrics
            config: { file: amplifier.prom }
        ",
    );
    let run = eventful(&setup).run(&["Work"]).await;
    assert_eq!(asked(&run).len(), 1);
    let text = std::fs::read_to_string(setup.folder.path().join("amplifier.prom")).unwrap();
    let tokens: u64 =
        run.events("provider:response").iter().map(|data| data["usage"]["input_tokens"].as_u64().unwrap()).sum();
    let tokens = format!("amplifier_tokens_total{{model=\"script\",kind=\"input\"}} {tokens}");
    for line in [
        "# TYPE amplifier_events_total counter",
        "amplifier_events_total{event=\"session:start\"} 1",
        "amplifier_events_total{event=\"session:end\"} 1",
        "amplifier_events_total{event=\"tool:pre\"} 3",
        "amplifier_tool_calls_total{tool=\"Echo\",success=\"true\"} 1",
        "amplifier_tool_calls_total{tool=\"Bash\",success=\"false\"} 1",
        "# TYPE amplifier_tool_duration_seconds histogram",
        "amplifier_tool_duration_seconds_count{tool=\"Bash\"} 1",
        "amplifier_tool_duration_seconds_bucket{tool=\"Echo\",le=\"+Inf\"} 1",
        "amplifier_model_calls_total{provider=\"scripted\",model=\"script\",success=\"true\"} 2",
        "amplifier_model_duration_seconds_count{provider=\"scripted\",model=\"script\"} 2",
        "amplifier_denials_total{event=\"tool:pre\"} 1",
        "amplifier_approvals_total{decision=\"denied\"} 1",
        tokens.as_str(),
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in:\n{text}");
    }
    let files: Vec<_> =
        std::fs::read_dir(setup.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "nothing half-written is left: {files:?}");
}

#[tokio::test]
async fn a_request_that_is_denied_is_counted_and_one_that_fails_too() {
    let setup = Setup::new(
        "
        hooks:
          - rule: not-today
            on: provider:request
            when: messages.exists(m, m.content == 'Deny')
            deny: not today
          - module: hooks-metrics
            config: { file: amplifier.prom }
        ",
    );
    setup.world(Script::new([ScriptedResponse::failing(ScriptedFault::Rejected)])).run(&["Fail", "Deny"]).await;
    let text = std::fs::read_to_string(setup.folder.path().join("amplifier.prom")).unwrap();
    for line in [
        "amplifier_model_calls_total{provider=\"scripted\",model=\"script\",success=\"false\"} 1",
        "amplifier_denials_total{event=\"provider:request\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in:\n{text}");
    }
}

#[tokio::test]
async fn prometheus_can_ask_while_a_session_runs() {
    let setup = Setup::new("hooks:\n  - module: hooks-metrics\n    config: { listen: '127.0.0.1:0' }\n");
    let world = setup.world(echoes(2));
    let display = world.display.clone();
    world
        .run_by(async |session| {
            let end = session.prompt("Echo").await;
            let message = display.messages()[0].text.clone();
            let address = message.strip_prefix("the metrics are at http://").unwrap().strip_suffix("/metrics").unwrap();
            let (status, text) = get(address, "/metrics").await;
            assert_eq!(status, 200);
            let line = "amplifier_tool_calls_total{tool=\"Echo\",success=\"true\"} 2";
            assert!(text.lines().any(|one| one == line), "{text}");
            assert_eq!(get(address, "/").await, (404, "the metrics are at /metrics\n".to_owned()));
            vec![end]
        })
        .await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_and_fails_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let setup = Setup::new(&format!("hooks:\n  - module: hooks-metrics\n    config: {{ listen: '{address}' }}\n"));
    let run = setup.world(echoes(1)).run(&["Echo"]).await;
    assert_eq!(
        told(&run),
        [format!("the metrics cannot be served at `{address}`: Address already in use (os error 98)")]
    );
    assert_eq!(run.ends[0].text(), "Done.");
}

/// The metric of that name, in what a server was sent.
fn metric<'a>(sent: &'a Value, name: &str) -> &'a Value {
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name} is not in {sent}"))
}

#[tokio::test]
async fn open_telemetry_is_sent_everything_at_the_end_of_a_session() {
    let server = Server::start(200).await;
    let setup = Setup::new(&format!(
        "
        hooks:
          - module: hooks-metrics
            config: {{ otlp: '{}', service: my-agents, headers: {{ x-key: abc }} }}
        ",
        server.url
    ));
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1_000));
    setup.world_in(setup.scope().clock(clock), echoes(2)).run(&["Echo"]).await;
    let taken = server.taken();
    assert_eq!(taken.len(), 1);
    let (head, sent) = &taken[0];
    assert!(head.contains("content-type: application/json\r\n") && head.contains("x-key: abc\r\n"), "{head}");
    let service = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "my-agents" } }] });
    assert_eq!(sent["resourceMetrics"][0]["resource"], service);
    let scope = json!({ "name": "amplifier-modules", "version": env!("CARGO_PKG_VERSION") });
    assert_eq!(sent["resourceMetrics"][0]["scopeMetrics"][0]["scope"], scope);
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    assert_eq!(
        *metric(sent, "amplifier.tool.calls"),
        json!({
            "name": "amplifier.tool.calls", "unit": "{call}", "description": "Tools that ran, by tool and success.",
            "sum": { "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
                "attributes": [text("tool", "Echo"), text("success", "true")],
                "startTimeUnixNano": "1000000000000", "timeUnixNano": "1000000000000", "asInt": "2",
            }] },
        })
    );
    assert_eq!(
        *metric(sent, "amplifier.model.duration"),
        json!({
            "name": "amplifier.model.duration", "unit": "s", "description": "Duration of calls to the model.",
            "histogram": { "aggregationTemporality": 2, "dataPoints": [{
                "attributes": [text("provider", "scripted"), text("model", "script")],
                "startTimeUnixNano": "1000000000000", "timeUnixNano": "1000000000000",
                "count": "3", "sum": 0.0,
                "bucketCounts": ["3", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0"],
                "explicitBounds": [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0],
            }] },
        })
    );
}

#[tokio::test]
async fn exports_come_every_interval_and_hold_all_so_far() {
    let server = Server::start(200).await;
    let setup = Setup::new(&format!(
        "hooks:\n  - module: hooks-metrics\n    config: {{ otlp: '{}', interval: 60 }}\n",
        server.url
    ));
    let clock = ManualClock::new();
    let world = setup.world_in(setup.scope().clock(clock.clone()), echoes(2));
    world
        .run_by(async |session| {
            let end = session.prompt("Echo").await;
            clock.advance_when_waiting(Duration::from_secs(60)).await;
            let sent = async {
                while server.taken().is_empty() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(90), sent).await.expect("an export");
            vec![end]
        })
        .await;
    let counts =
        |at: usize| metric(&server.taken()[at].1, "amplifier.tool.calls")["sum"]["dataPoints"][0]["asInt"].clone();
    assert_eq!((server.taken().len(), counts(0), counts(1)), (2, json!("2"), json!("2")));
}

#[tokio::test]
async fn a_place_that_does_not_take_metrics_is_told_at_the_end() {
    let server = Server::start(503).await;
    let setup = Setup::new(&format!("hooks:\n  - module: hooks-metrics\n    config: {{ otlp: '{}' }}\n", server.url));
    let run = setup.world(echoes(1)).run(&["Echo"]).await;
    assert_eq!(told(&run), ["the metrics could not be exported: the server answered with status 503"]);

    let setup = Setup::new("hooks:\n  - module: hooks-metrics\n    config: { file: /nowhere/at/all.prom }\n");
    let run = setup.world(echoes(1)).run(&["Echo"]).await;
    assert!(
        told(&run)[0].starts_with("the metrics could not be exported: `/nowhere/at/all.prom`: "),
        "{:?}",
        told(&run)
    );
    assert_eq!(run.ends[0].text(), "Done.");
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-metrics",
        &[
            ("{}", "the metrics have no destination; give `file`, `listen` or `otlp`"),
            ("{ listen: here }", "`listen`: invalid socket address syntax"),
            ("{ file: x, headers: { a: b } }", "`headers` needs `otlp`"),
            ("{ file: x, interval: 0 }", "`interval` is 0: give a number of seconds above zero"),
            (
                "{ otlp: here }",
                "`otlp`: invalid address of hook `hooks-metrics`: relative URL without a base; expected `https://HOST/PATH`",
            ),
        ],
    );
}
