//! Every event carries what is documented about it.

use std::collections::BTreeSet;

use amplifier_agent::Orchestrator;
use amplifier_agent::provider::{Script, ScriptedFault, ScriptedProvider, ScriptedResponse};
use amplifier_agent::tool::ToolError;
use amplifier_core::{EventData, HookResult, TOOL_PRE, catalog};
use serde_json::{Value, json};

use crate::common::{ORCHESTRATORS, Run, World, tool};
use crate::order::{one_agent, one_tool};

/// The fields that the events reference documents beside `session_id` and `timestamp`.
const DOCUMENTED: &[(&str, &[(&str, &str)])] = &[
    ("session:start", &[("mount_plan", "object"), ("source", "string")]),
    ("session:end", &[("reason", "string"), ("duration_ms", "integer"), ("stats", "object")]),
    ("prompt:submit", &[("prompt", "string"), ("metadata", "object")]),
    ("tool:pre", &[("tool_name", "string"), ("tool_input", "object"), ("tool_call_id", "string")]),
    (
        "tool:post",
        &[
            ("tool_name", "string"),
            ("tool_input", "object"),
            ("tool_result", "object"),
            ("success", "boolean"),
            ("duration_ms", "integer"),
            ("tool_call_id", "string"),
        ],
    ),
    (
        "orchestrator:complete",
        &[
            ("orchestrator", "string"),
            ("final_message", "object"),
            ("turn_count", "integer"),
            ("duration_ms", "integer"),
            ("status", "string"),
        ],
    ),
    (
        "agent:spawn",
        &[("parent_session_id", "string"), ("agent_name", "string"), ("task", "string"), ("config_override", "object")],
    ),
    (
        "agent:complete",
        &[
            ("parent_session_id", "string"),
            ("agent_name", "string"),
            ("task", "string"),
            ("result", "object"),
            ("duration_ms", "integer"),
            ("status", "string"),
        ],
    ),
    (
        "context:pre_compact",
        &[
            ("trigger", "string"),
            ("current_tokens", "integer"),
            ("target_tokens", "integer"),
            ("messages_count", "integer"),
        ],
    ),
    ("user:notification", &[("notification_type", "string"), ("message", "string"), ("metadata", "object")]),
    ("decision:tool_resolution", &[("available_tools", "array"), ("selected_tool", "string"), ("reason", "string")]),
    ("decision:agent_resolution", &[("agent_name", "string"), ("reason", "string")]),
    ("decision:context_resolution", &[("strategy", "string"), ("reason", "string")]),
    ("error:tool", &[("tool_name", "string"), ("error", "object")]),
    ("error:provider", &[("provider", "string"), ("error", "object")]),
    ("error:orchestration", &[("error", "object")]),
];

/// The schema's word for a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The errors in the data of an event, by the events reference and by the schema of the catalog.
fn problems((name, data): &(String, EventData)) -> Vec<String> {
    let whole = serde_json::to_value(data).unwrap();
    let spec = catalog().iter().find(|spec| spec.name == name).unwrap_or_else(|| panic!("{name} is not known"));
    let schema = spec.schema();
    let required = schema["required"].as_array().unwrap().iter().map(|field| field.as_str().unwrap());
    let required = required.chain(["session_id", "timestamp"]).filter(|field| whole.get(*field).is_none());
    let missing = required.map(|field| format!("{name} has no `{field}`"));
    let described = schema["properties"].as_object().unwrap().iter();
    let described =
        described.filter_map(|(field, schema)| Some((field.as_str(), whole.get(field)?, schema["type"].as_str()?)));
    let documented = DOCUMENTED.iter().find(|(event, _)| event == name).map_or(&[][..], |(_, fields)| fields);
    let documented = documented.iter().map(|(field, expected)| (*field, &whole[field], *expected));
    let mistyped = described.chain(documented).filter(|(_, value, expected)| kind(value) != *expected);
    let mistyped =
        mistyped.map(|(field, value, expected)| format!("`{field}` of {name} is {value}, not of type {expected}"));
    missing.chain(mistyped).collect()
}

/// Sessions in which, between them, every documented event happens.
async fn everything(orchestrator: Orchestrator) -> Vec<Run> {
    let asked = World::new(one_tool()).orchestrator(orchestrator);
    asked.hooks.hook(TOOL_PRE).named("gate").run(|_| HookResult::ask("Really?"));

    let script =
        Script::new([ScriptedResponse::text("").calling("Broken", json!({})), ScriptedResponse::text("Done.")]);
    let broken = World::new(script).orchestrator(orchestrator);
    let tool = tool("Broken", &broken.inputs, |_| async { Err(ToolError::Failed("it broke".into())) });

    let script = Script::new([
        ScriptedResponse::failing(ScriptedFault::Throttled),
        ScriptedResponse::failing(ScriptedFault::Rejected),
    ]);
    let rejected = World::new(script).orchestrator(orchestrator);

    let limited = World::new(one_tool()).orchestrator(orchestrator).options(|options| options.steps = 1);

    let script = Script::new(["A.", "B.", "C."].map(ScriptedResponse::text));
    let long = World::with(ScriptedProvider::new(script).with_context_limit(200)).orchestrator(orchestrator);

    vec![
        asked.run(&["go"]).await,
        World::new(one_agent()).orchestrator(orchestrator).run(&["go"]).await,
        broken.tool(tool).run(&["go"]).await,
        rejected.run(&["go"]).await,
        limited.run(&["go"]).await,
        long.run(&[&"word ".repeat(130), &"more ".repeat(25)]).await,
    ]
}

#[tokio::test]
async fn every_event_carries_what_is_documented() {
    for orchestrator in ORCHESTRATORS {
        let runs = everything(orchestrator).await;
        let problems: BTreeSet<String> = runs.iter().flat_map(|run| &run.events).flat_map(problems).collect();
        assert_eq!(problems, BTreeSet::new(), "{}", orchestrator.as_str());
        for (event, _) in DOCUMENTED {
            assert!(
                runs.iter().any(|run| !run.events(event).is_empty()),
                "{event} happens in {}",
                orchestrator.as_str()
            );
        }
    }
}
