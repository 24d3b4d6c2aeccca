//! The `Task` tool: delegates to a sub-agent, which inherits the hooks, approvals, record, limits and cancellation.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use amplifier_core::{
    AGENT_COMPLETE, AGENT_SPAWN, ActionPreview, AgentComplete, AgentSpawn, DECISION_AGENT_RESOLUTION,
    DecisionAgentResolution, EventData, InjectedMessage, Map, Message,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::context::SessionContext;
use crate::provider::{ContextTag, ToolSpec};
use crate::session::{Core, new_id};
use crate::tool::{TodoTool, Tool, ToolError, ToolOutput, input, preview_or_error};
use crate::turn::{self, Stop, TurnEnd, invalid_data, result_text};

pub(crate) const NAME: &str = "Task";

/// The definition of the `Task` tool. The session runs it, because a sub-agent needs the state of a session.
pub(crate) struct TaskTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task for the other agent, with everything that it needs to know: it does not see this conversation.
    task: String,
    /// A name for the other agent: what it is good at.
    #[serde(default = "general")]
    agent_name: String,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskOutput {
    /// The final response of the other agent, for the model.
    output: String,
}

fn general() -> String {
    "general".to_owned()
}

impl Tool for TaskTool {
    fn spec(&self) -> ToolSpec {
        input::spec::<Input>(
            NAME,
            "Delegates a task to another agent with the same tools, and gives back what it answers. For work that can be done on its \
             own, and for keeping this conversation short.",
        )
    }

    fn result_schema(&self) -> Option<Value> {
        Some(input::schema::<TaskOutput>())
    }

    fn run(&self, _input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        async { Err(ToolError::Failed("only a session can delegate".to_owned())) }.boxed()
    }

    fn preview(&self, input: &Map) -> Option<ActionPreview> {
        Some(preview_or_error(NAME, input, preview(input)))
    }
}

pub(crate) fn preview(input: &Map) -> Result<ActionPreview, ToolError> {
    let Input { task, agent_name } = input::read(NAME, input.clone())?;
    Ok(ActionPreview::new(NAME).target(agent_name).lines(&task))
}

/// Runs a sub-agent. Boxed, because a sub-agent may delegate, too.
pub(crate) fn run<'a>(parent: &'a Core, call: &'a str, input: Map) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
    async move {
        let input: Input = input::read(NAME, input)?;
        if parent.depth + 1 >= parent.options.depth {
            let times = parent.options.depth.saturating_sub(1);
            let why = format!("too many nested agents; at most {times} delegations are allowed");
            return Err(ToolError::Failed(why));
        }
        delegate(parent, call, input).await.map_err(|stop| ToolError::Failed(stop.to_string()))
    }
    .boxed()
}

async fn delegate(parent: &Core, call: &str, input: Input) -> Result<ToolOutput, Stop> {
    let started = Instant::now();
    let id = new_id();
    let (spawn, injected) = {
        let _alone = parent.delegation.lock().await;
        let choice = DecisionAgentResolution::new(input.agent_name.as_str()).with("reason", "the model asked for it");
        let choice = parent.gate(DECISION_AGENT_RESOLUTION, choice).await?;
        let spawn = AgentSpawn::new(parent.id.as_str(), text(&choice, "agent_name")?, input.task)
            .with("config_override", Map::new())
            .with("child_session_id", id.as_str())
            .with("tool_call_id", call);
        parent.context.capture_injections(AGENT_SPAWN.as_str(), true);
        let allowed = parent.gate(AGENT_SPAWN, spawn).await;
        let injected = parent.context.take_injections();
        match allowed {
            Ok(spawn) => (spawn, injected),
            Err(stop) => {
                // No sub-agent starts, so the injections stay here.
                parent.inject(injected).await;
                return Err(stop);
            }
        }
    };
    let end = match SpawnRequest::read(&spawn) {
        Ok(spawn) => run_child(parent, id, &spawn, injected).await,
        Err(stop) => {
            parent.inject(injected).await;
            stop.into()
        }
    };
    let complete = AgentComplete::new(
        parent.id.as_str(),
        spawn.text("agent_name").unwrap_or(&input.agent_name),
        spawn.text("task").unwrap_or_default(),
        json!({ "output": end.text() }),
        started.elapsed().as_millis() as u64,
        end.status(),
    )
    .with("tool_call_id", call);
    let complete = {
        let _alone = parent.delegation.lock().await;
        parent.review(AGENT_COMPLETE, complete).await?
    };
    let result = complete.get("result").map(result_text).unwrap_or_default();
    match end {
        TurnEnd::Answered(_) => Ok(ToolOutput::new(&TaskOutput { output: result })),
        _ => Err(Stop::Failed(result)),
    }
}

/// The start of a sub-agent, as the hooks left it.
struct SpawnRequest {
    agent: String,
    task: String,
    config: ChildConfig,
}

/// The configuration of a sub-agent where it differs. Unknown fields are rejected: they may be meant as a limit.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct ChildConfig {
    /// The only tools of the sub-agent; those of the parent unless given.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    system: Option<String>,
}

/// Rejects `null`, which would remove a limit.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl SpawnRequest {
    fn read(data: &EventData) -> Result<Self, Stop> {
        let config = match data.get("config_override") {
            None => ChildConfig::default(),
            Some(config @ Value::Object(_)) => ChildConfig::deserialize(config)
                .map_err(|error| invalid_data(&format!("`config_override`: {error}")))?,
            // Serde would read an array by position, and an empty one as no limit.
            Some(_) => return Err(invalid_data("`config_override` is not an object")),
        };
        Ok(Self { agent: text(data, "agent_name")?, task: text(data, "task")?, config })
    }
}

fn text(data: &EventData, field: &str) -> Result<String, Stop> {
    data.text(field).map(str::to_owned).ok_or_else(|| invalid_data(&format!("`{field}` is not text")))
}

async fn run_child(parent: &Core, id: String, spawn: &SpawnRequest, injected: Vec<InjectedMessage>) -> TurnEnd {
    parent.observer.note(&format!("delegates to `{}`", spawn.agent));
    let child = child(parent, id, &spawn.agent, &spawn.config);
    child.inject(injected).await;
    let end = match child.start("startup").await {
        Ok(()) => turn::run(&child, &spawn.task, Map::new()).await,
        Err(error) => TurnEnd::Failed(error.to_string()),
    };
    let reason = if matches!(end, TurnEnd::Answered(_)) { "complete" } else { "error" };
    match child.end(reason).await {
        Ok(()) => end,
        Err(error) => TurnEnd::Failed(error.to_string()),
    }
}

fn child(parent: &Core, id: String, agent: &str, config: &ChildConfig) -> Core {
    let context = SessionContext::default();
    let mut tools = parent.tools.clone();
    if let Some(wanted) = &config.tools {
        tools.retain(|name, _| wanted.contains(name));
    }
    // The sub-agent gets its own list of tasks.
    if let Some(todo) = tools.get_mut("Todo") {
        *todo = Arc::new(TodoTool::new());
    }
    let system = config.system.clone();
    let system = system.unwrap_or_else(|| format!("You are the agent `{agent}`. Do the task and report the result."));
    let metadata = Map::from_iter([("agent_name".to_owned(), Value::from(agent))]);
    context.conversation.push(Message { metadata, ..Message::system(system) });
    let coordinator = parent.coordinator.child().session_id(id.as_str()).context(context.clone()).build();
    let plan = json!({ "agent_name": agent, "parent_session_id": parent.id, "config_override": config });
    Core {
        id,
        coordinator,
        context,
        provider: parent.provider.clone(),
        tag: ContextTag::new(),
        tools,
        orchestrator: parent.orchestrator,
        options: parent.options.clone(),
        observer: Arc::new(crate::observer::NullObserver),
        cancel: parent.cancel.clone(),
        audit: parent.audit.clone(),
        depth: parent.depth + 1,
        budget: parent.budget.clone(),
        mount_plan: plan.as_object().cloned().unwrap_or_default(),
        started: Instant::now(),
        turns: 0.into(),
        tool_calls: 0.into(),
        own_tokens: 0.into(),
        compaction_deferred: false.into(),
        tokens: parent.tokens.fresh(),
        delegation: tokio::sync::Mutex::default(),
        journal: Mutex::default(),
    }
}
