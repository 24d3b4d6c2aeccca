//! The events of a tool call: each operation passes the hooks before the tool, and its result those after it.

use std::path::Path;
use std::sync::atomic::Ordering;

use amplifier_core::{AGENT_SPAWN, AgentSpawn, Map, TOOL_POST, TOOL_PRE, ToolPost, ToolPre, data};
use amplifier_modules::tool_words;
use serde_json::Value;

use super::session::{GuardSession, allowed};
use crate::answer::{Change, GuardAnswer};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, ToolOperation};

/// Fields with paths that rules read.
const PATH_FIELDS: [&str; 2] = ["file_path", "notebook_path"];

impl GuardSession {
    pub(super) async fn tool_pre(&self, event: &ClientEvent, tool: &ClientTool) -> Result<GuardAnswer, String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let call = self.running.begin(event, tool);
        let mut changes = Vec::new();
        for (number, operation) in tool.operations.iter().enumerate() {
            let id = operation_id(&call.id, number, tool);
            match self.operation(event, operation, &id).await {
                Ok(changed) => changes.push(changed),
                Err(reason) => {
                    self.record_none_run(tool, number, &call.id, &reason).await;
                    return Err(reason);
                }
            }
        }
        let change = match changes.as_slice() {
            [changed] => changed.clone(),
            // The possible names of one tool.
            [first, ..] if tool.has_one_input() && changes.iter().all(|change| change == first) => first.clone(),
            _ if changes.iter().all(Option::is_none) => None,
            _ => {
                let reason = "a hook changed a part of the call, which this client cannot apply";
                self.record_none_run(tool, tool.operations.len(), &call.id, reason).await;
                return Err(reason.to_owned());
            }
        };
        call.allow();
        let change =
            change.map(|input| Change::Input(tool_words::to_theirs(event.client.into(), &tool.name, &input).into()));
        Ok(GuardAnswer { change, ..GuardAnswer::default() })
    }

    /// Records that the first operations of a call, which have an intent in the log, do not run either.
    pub(super) async fn record_none_run(&self, tool: &ClientTool, count: usize, call: &str, reason: &str) {
        for (number, operation) in tool.operations.iter().enumerate().take(count) {
            self.record_not_run(operation, &operation_id(call, number, tool), reason).await;
        }
    }

    /// Emits the events before one operation, and returns the input if hooks changed it.
    async fn operation(&self, event: &ClientEvent, operation: &ToolOperation, id: &str) -> Result<Option<Map>, String> {
        let input = self.with_absolute_paths(event, operation);
        let pre = ToolPre::new(operation.tool.as_str(), input.clone()).with("tool_call_id", id);
        let pre = pre.with("client", event.client.as_str());
        let pre = match event.folder.as_deref().and_then(Path::to_str) {
            Some(folder) => pre.with("cwd", folder),
            None => pre,
        };
        let pre = match &event.agent {
            Some(agent) => pre.with("agent_id", agent.as_str()),
            None => pre,
        };
        let data = allowed(self.coordinator.emit(TOOL_PRE, pre).await)?;
        let deny = |reason: String| async {
            self.record_not_run(operation, id, &reason).await;
            Err(reason)
        };
        if data.text("tool_name") != Some(&operation.tool) {
            return deny("a hook changed the tool, which no client can apply".to_owned()).await;
        }
        let Some(Value::Object(mut changed)) = data.get("tool_input").cloned() else {
            return deny("a hook left no input of the tool".to_owned()).await;
        };
        if operation.tool == "Task" {
            let text = |key: &str| changed.get(key).and_then(Value::as_str).unwrap_or_default();
            let task = text("prompt").to_owned();
            let names = ["subagent_type", "agent_type", "agent_name", "name"];
            let name = names.into_iter().map(text).find(|name| !name.is_empty()).unwrap_or("general").to_owned();
            let spawn = AgentSpawn::new(self.id.as_str(), name.as_str(), task.as_str()).with("tool_call_id", id);
            let spawned = match allowed(self.coordinator.emit(AGENT_SPAWN, spawn).await) {
                Ok(spawned) => spawned,
                Err(reason) => return deny(reason).await,
            };
            if spawned.text("agent_name") != Some(&name) || spawned.get("config_override").is_some() {
                return deny("a hook changed the agent, which this client cannot apply".to_owned()).await;
            }
            match spawned.text("task") {
                Some(changed_task) if changed_task != task => {
                    changed.insert("prompt".to_owned(), changed_task.into());
                }
                Some(_) => {}
                None => return deny("a hook left no task for the agent".to_owned()).await,
            }
            // This client has an event of its own for the agent, which follows.
            if event.client == Client::Cursor {
                self.state().spawned.insert(id.to_owned(), task);
            }
        }
        Ok((changed != input).then_some(changed))
    }

    /// Emits the start of an agent, unless it passed with the call of its tool.
    pub(super) async fn spawn(&self, event: &ClientEvent, agent: &str, task: &str) -> Result<GuardAnswer, String> {
        let call = event.call.as_deref().unwrap_or_default();
        if self.state().spawned.remove(call).as_deref() == Some(task) {
            return Ok(GuardAnswer::default());
        }
        let agent = if agent.is_empty() { "general" } else { agent };
        let spawn = AgentSpawn::new(self.id.as_str(), agent, task).with("tool_call_id", call);
        let data = allowed(self.coordinator.emit(AGENT_SPAWN, spawn).await)?;
        let is_unchanged = data.text("agent_name") == Some(agent)
            && data.text("task") == Some(task)
            && data.get("config_override").is_none();
        match is_unchanged {
            true => Ok(GuardAnswer::default()),
            false => Err("a hook changed the agent, which this client cannot apply".to_owned()),
        }
    }

    /// Paths are relative to the folder of the agent; those of rules and previews to the workspace.
    fn with_absolute_paths(&self, event: &ClientEvent, operation: &ToolOperation) -> Map {
        let mut input = operation.input.clone();
        let root = self.policy.policy.workspace().root();
        if let Some(folder) = event.folder.as_deref().filter(|folder| folder.is_absolute() && *folder != root) {
            make_absolute(&mut input, folder);
            // `MultiEdit` of some clients names a file in each edit.
            let edits = input.get_mut("edits").and_then(Value::as_array_mut);
            edits.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|edit| make_absolute(edit, folder));
        }
        input
    }

    pub(super) async fn tool_post(
        &self,
        event: &ClientEvent,
        tool: &ClientTool,
        result: &Value,
        success: bool,
        milliseconds: u64,
    ) -> Result<GuardAnswer, String> {
        let call = self.running.end(event, tool);
        self.state().spawned.remove(&call);
        let mut result_now = result.clone();
        for (number, operation) in tool.operations.iter().enumerate() {
            let input = self.with_absolute_paths(event, operation);
            let id = operation_id(&call, number, tool);
            let post = ToolPost::new(operation.tool.as_str(), input, result_now.clone(), success, milliseconds)
                .with("tool_call_id", id.as_str());
            let data = allowed(self.coordinator.emit(TOOL_POST, post).await)?;
            result_now = data.get("tool_result").cloned().ok_or("a hook left no result")?;
        }
        let change = (result_now != *result).then_some(Change::Result(result_now));
        Ok(GuardAnswer { change, ..GuardAnswer::default() })
    }

    /// Records that an allowed operation does not run after all.
    async fn record_not_run(&self, operation: &ToolOperation, id: &str, reason: &str) {
        let result = data! { "error": format!("not run: {reason}") }.into_map();
        let post = ToolPost::new(operation.tool.as_str(), operation.input.clone(), result, false, 0);
        _ = self.coordinator.emit(TOOL_POST, post.with("tool_call_id", id)).await;
    }
}

fn make_absolute(input: &mut Map, folder: &Path) {
    for field in PATH_FIELDS {
        if let Some(Value::String(path)) = input.get_mut(field)
            && Path::new(path).is_relative()
            && !path.starts_with('~')
        {
            *path = folder.join(&path).to_string_lossy().into_owned();
        }
    }
}

/// Each operation of a patch is an operation of its own in the log.
fn operation_id(call: &str, number: usize, tool: &ClientTool) -> String {
    if tool.operations.len() == 1 { call.to_owned() } else { format!("{call}#{}", number + 1) }
}
