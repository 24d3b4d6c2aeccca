//! The tool calls of one response: hooks run one after another, tools concurrently.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use amplifier_core::{
    ARTIFACT_READ, ARTIFACT_WRITE, ActionPreview, ArtifactRead, ArtifactWrite, COMPARED_WITH, ComparedWith,
    DECISION_TOOL_RESOLUTION, DecisionToolResolution, ERROR_TOOL, ErrorTool, EventData, EventName, Map, Message,
    POLICY_VIOLATION, PolicyViolation, PortError, PreviewSource, TOOL_DEFINITION, TOOL_POST, TOOL_PRE, ToolCall,
    ToolPost, ToolPre, data,
};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::check_depth;
use super::{INTERRUPTED, Stop, VerdictExt, result_text, view};
use crate::cancel::CancelLevel;
use crate::session::Core;
use crate::sub_agent;
use crate::tool::{Access, Artifact, Tool, ToolError, ToolOutput};

/// A tool call after the hooks.
enum PreparedCall {
    /// The call does not run. The model reads this text.
    Skipped(ToolCall, String),
    /// The call may run, with the data that the hooks left.
    Approved(ApprovedCall),
}

struct ApprovedCall {
    call: ToolCall,
    input: Map,
    /// The file version in the preview that the user approved.
    compared_with: Option<ComparedWith>,
    /// The reason why the call cannot run. The record has an intent, so it needs an outcome.
    invalid: Option<String>,
}

struct CompletedCall {
    approved: ApprovedCall,
    result: Result<ToolOutput, ToolError>,
    milliseconds: u64,
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id that pairs the call with its result in the conversation.
    pub id: String,
    /// `true` if the tool ran successfully.
    pub success: bool,
    /// The `tool_result` as hooks left it; none if the tool did not run, or its result is withheld.
    pub result: Option<Value>,
    /// The text for the model: the output, the error, or the denial.
    pub text: String,
}

impl ToolResult {
    /// The result of a call that reached neither hooks nor the conversation.
    pub(crate) fn not_started(call: ToolCall, why: &str) -> Self {
        Self { id: call.id, success: false, result: None, text: format!("Error: {why}") }
    }
}

/// Runs one tool at the request of the caller. The conversation gets the call and its result, so that injections have a position.
pub(crate) async fn run_single_call(session: &Core, call: ToolCall) -> ToolResult {
    if let Err(why) = check_depth(&call) {
        return ToolResult::not_started(call, &why);
    }
    let metadata = Map::from_iter([("source".to_owned(), Value::from("caller"))]);
    session.push(Message { tool_calls: vec![call.clone()], metadata, ..Message::assistant("") });
    match prepare(session, call).await {
        PreparedCall::Skipped(call, why) => skip(session, call, why),
        PreparedCall::Approved(approved) => {
            let completed = execute(session, approved).await;
            conclude(session, completed).await
        }
    }
}

/// Adds the reason to the conversation as the result.
fn skip(session: &Core, call: ToolCall, why: String) -> ToolResult {
    session.observer.tool_ended(&call, false, &why);
    session.push(Message::tool_result(call.id.as_str(), why.as_str()));
    ToolResult { id: call.id, success: false, result: None, text: why }
}

/// Runs all tool calls of a response. Afterwards every call has a result.
pub(super) async fn run_calls(session: &Core, calls: Vec<ToolCall>) -> Result<(), Stop> {
    let mut prepared = Vec::new();
    for call in calls {
        prepared.push(prepare(session, call).await);
    }
    let run = |call| async {
        match call {
            PreparedCall::Skipped(call, why) => Err((call, why)),
            PreparedCall::Approved(approved) => Ok(execute(session, approved).await),
        }
    };
    for done in join_all(prepared.into_iter().map(run)).await {
        match done {
            Ok(completed) => drop(conclude(session, completed).await),
            Err((call, why)) => drop(skip(session, call, why)),
        }
    }
    if session.cancel.level() == CancelLevel::No { Ok(()) } else { Err(Stop::Interrupted) }
}

async fn prepare(session: &Core, call: ToolCall) -> PreparedCall {
    match approve(session, &call).await {
        Ok(approved) => PreparedCall::Approved(approved),
        Err(Stop::Failed(problem)) => {
            let error = ToolError::Input { tool: call.name.clone(), problem };
            let text = format!("Error: {error}");
            emit_failure(session, &call.name, &error, &text).await;
            PreparedCall::Skipped(call, text)
        }
        Err(stop) => PreparedCall::Skipped(call, stop.to_string()),
    }
}

async fn approve(session: &Core, call: &ToolCall) -> Result<ApprovedCall, Stop> {
    let available: Vec<String> = session.tools.keys().cloned().collect();
    let choice = DecisionToolResolution::new(available, call.name.as_str())
        .with("reason", "the model asked for it")
        .with("tool_call_id", call.id.as_str());
    let choice = session.gate(DECISION_TOOL_RESOLUTION, choice).await?;
    let name = view(&choice, DecisionToolResolution::selected_tool)?;

    let input = match &call.input {
        Value::Object(input) => input.clone(),
        Value::Null => Map::new(),
        other => return Err(Stop::Failed(format!("expected an object, not {other}"))),
    };
    let mut operation = ToolPre::new(name.as_str(), input.clone()).with("tool_call_id", call.id.as_str());
    if let Some(definition) = session.tools.get(&name).and_then(|tool| tool.definition()) {
        operation = operation.with(TOOL_DEFINITION, definition);
    }
    let operation = session.gate(TOOL_PRE, operation).await?;
    // The user approved this version, so only this version is changed.
    let compared_with = operation.get(COMPARED_WITH).map(ComparedWith::deserialize).transpose();
    let changed = operation.view::<ToolPre>().map_err(|error| error.to_string());
    let changed = changed.and_then(|changed| match changed.tool_input() {
        // Earlier gates have approved this tool.
        _ if changed.tool_name() != name => {
            Err(format!("the tool cannot become `{}` here, only at `decision:tool_resolution`", changed.tool_name()))
        }
        Value::Object(input) => Ok(input.clone()),
        _ => Err("`tool_input` is not an object".to_owned()),
    });
    let changed = changed.and_then(|input| match compared_with {
        Ok(compared_with) => Ok((input, compared_with)),
        Err(error) => Err(format!("`{COMPARED_WITH}` cannot be read: {error}")),
    });
    Ok(match changed {
        Ok((input, compared_with)) => {
            let call = ToolCall { id: call.id.clone(), name, input: Value::Object(input.clone()) };
            ApprovedCall { call, input, compared_with, invalid: None }
        }
        Err(problem) => {
            let invalid = Some(format!("unusable data from a hook: {problem}"));
            ApprovedCall { call: call.clone(), input, compared_with: None, invalid }
        }
    })
}

async fn execute(session: &Core, approved: ApprovedCall) -> CompletedCall {
    let started = Instant::now();
    // The user may have interrupted while hooks ran for another call of the response.
    let is_stopped = session.cancel.level() != CancelLevel::No;
    if let Some(why) = approved.invalid.clone().or_else(|| is_stopped.then(|| INTERRUPTED.to_owned())) {
        return CompletedCall { approved, result: Err(ToolError::Failed(why)), milliseconds: 0 };
    }
    session.observer.tool_started(&approved.call);
    session.count_tool();
    let run: BoxFuture<'_, _> = match session.tools.get(&approved.call.name) {
        Some(_) if approved.call.name == sub_agent::NAME => {
            sub_agent::run(session, &approved.call.id, approved.input.clone())
        }
        Some(tool) => run_tool(tool.clone(), approved.input.clone(), approved.compared_with.clone()),
        None => {
            let known: Vec<&str> = session.tools.keys().map(String::as_str).collect();
            let why = format!("unknown tool `{}`; expected one of {}", approved.call.name, known.join(", "));
            async { Err(ToolError::Failed(why)) }.boxed()
        }
    };
    // A sub-agent stops by itself, and records the outcomes of its own tools.
    let stopped = async {
        match approved.call.name.as_str() {
            sub_agent::NAME => std::future::pending().await,
            _ => session.cancel.reached(CancelLevel::Immediate).await,
        }
    };
    let result = tokio::select! {
        biased;
        () = stopped => Err(ToolError::Failed(INTERRUPTED.to_owned())),
        result = AssertUnwindSafe(run).catch_unwind() => match result {
            Ok(result) => result,
            Err(_) => Err(ToolError::Failed("the tool panicked".to_owned())),
        },
    };
    CompletedCall { approved, result, milliseconds: started.elapsed().as_millis() as u64 }
}

fn run_tool(
    tool: Arc<dyn Tool>,
    input: Map,
    compared_with: Option<ComparedWith>,
) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
    async move {
        match compared_with {
            Some(compared_with) => tool.run_previewed(input, compared_with).await,
            None => tool.run(input).await,
        }
    }
    .boxed()
}

pub(crate) struct ToolPreviews(pub(crate) BTreeMap<String, Arc<dyn Tool>>);

impl PreviewSource for ToolPreviews {
    async fn preview(&self, event: &EventName, data: &EventData) -> Result<Option<ActionPreview>, PortError> {
        let tool = data.text("tool_name").filter(|_| *event == TOOL_PRE.name()).and_then(|name| self.0.get(name));
        let (Some(tool), Some(Value::Object(input))) = (tool.cloned(), data.get("tool_input").cloned()) else {
            return Ok(None);
        };
        Ok(match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(move || tool.preview(&input)).await?,
            // A process forked from the session has no runtime.
            Err(_) => tool.preview(&input),
        })
    }
}

/// Emits the result, and adds it to the conversation as the hooks left it.
async fn conclude(session: &Core, completed: CompletedCall) -> ToolResult {
    let CompletedCall { approved: ApprovedCall { call, input, .. }, result, milliseconds } = completed;
    let (result, failure) = match result {
        Ok(output) => {
            for artifact in &output.artifacts {
                emit_artifact(session, artifact).await;
            }
            (output.result, None)
        }
        Err(error) => (Map::from_iter([("error".to_owned(), Value::from(error.to_string()))]), Some(error)),
    };
    let success = failure.is_none();
    let post =
        ToolPost::new(call.name.as_str(), input, result, success, milliseconds).with("tool_call_id", call.id.as_str());
    let (result, text) = match session.review(TOOL_POST, post).await {
        Ok(data) => match data.get("tool_result") {
            Some(result) => (Some(result.clone()), result_text(result)),
            None => (None, "a hook left no result".to_owned()),
        },
        Err(stop) => (None, stop.to_string()),
    };
    if let Some(error) = &failure {
        // The text as hooks left it: they may have removed a secret.
        emit_failure(session, &call.name, error, &text).await;
    }
    session.observer.tool_ended(&call, success, &text);
    session.push(Message::tool_result(call.id.as_str(), text.as_str()));
    ToolResult { id: call.id, success: success && result.is_some(), result, text }
}

async fn emit_artifact(session: &Core, artifact: &Artifact) {
    let Artifact { path, bytes, access } = artifact;
    let bytes = json!(bytes);
    let coordinator = &session.coordinator;
    match access {
        Access::Read => {
            coordinator.emit(ARTIFACT_READ, ArtifactRead::new(path.as_str()).with("bytes", bytes)).await.ignore();
        }
        Access::Write => {
            coordinator.emit(ARTIFACT_WRITE, ArtifactWrite::new(path.as_str()).with("bytes", bytes)).await.ignore();
        }
    }
}

async fn emit_failure(session: &Core, tool: &str, error: &ToolError, text: &str) {
    if matches!(error, ToolError::Outside(_)) {
        let violation = PolicyViolation::new("workspace", text).with("event", "tool:pre");
        session.coordinator.emit(POLICY_VIOLATION, violation).await.ignore();
    }
    let error = data! { "kind": error.kind(), "message": text };
    session.coordinator.emit(ERROR_TOOL, ErrorTool::new(tool, error)).await.ignore();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Workspace, standard};

    #[test]
    fn a_preview_needs_no_runtime() {
        let folder = tempfile::tempdir().unwrap();
        let tools = standard(&Workspace::new(folder.path()).unwrap());
        let tools = ToolPreviews(tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect());
        let input = data! { "file_path": "a.txt", "content": "one\n" };
        let data = data! { "tool_name": "Write", "tool_input": input };
        let preview = futures::executor::block_on(tools.preview(&TOOL_PRE.name(), &data)).unwrap().unwrap();
        assert_eq!((preview.title.as_str(), preview.body.len()), ("Write", 1));
    }
}
