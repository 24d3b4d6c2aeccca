//! The turn: from a prompt to an answer, with hooks around every step.
//!
//! Both orchestrators run this machine. `loop-streaming` tells hooks and the person about an answer piece by piece, `loop-basic` when
//! it is complete; nothing else differs.

mod call;
mod tools;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use amplifier_core::{
    CANCEL_COMPLETED, CANCEL_REQUESTED, CancelCompleted, CancelRequested, ContextManager, ERROR_ORCHESTRATION,
    EXECUTION_COMPLETE, EXECUTION_START, ErrorOrchestration, EventData, EventType, ExecutionComplete, ExecutionStart,
    InjectedMessage, Map, Message, ORCHESTRATOR_COMPLETE, OrchestratorComplete, PROMPT_COMPLETE, PROMPT_SUBMIT,
    Payload, PromptComplete, PromptSubmit, Verdict, data,
};
use serde_json::{Value, json};

pub use self::call::MAX_STORED_DEPTH;
pub(crate) use self::call::{ModelCall, call_model};
pub(crate) use self::tools::ToolPreviews;
pub use self::tools::ToolResult;
pub(crate) use self::tools::run_single_call;
use crate::cancel::CancelLevel;
use crate::compact;
use crate::provider::StopReason;
use crate::session::Core;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With an answer.
    Answered(String),
    /// A hook, or a person whom a hook asked, did not allow it to go on.
    Denied(Denial),
    /// A person stopped it.
    Interrupted,
    /// Something failed.
    Failed(String),
}

/// Who did not allow something, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The hook.
    pub by: Arc<str>,
    /// Why.
    pub reason: String,
}

/// A denial reads as the model reads it.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denied by hook {}: {}", self.by, self.reason)
    }
}

impl TurnEnd {
    /// The word for it in events.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Answered(_) => "success",
            Self::Denied(_) | Self::Failed(_) => "error",
            Self::Interrupted => "interrupted",
        }
    }

    /// What the person is told.
    pub fn text(&self) -> String {
        match self {
            Self::Answered(text) => text.clone(),
            Self::Denied(denial) => denial.to_string(),
            Self::Interrupted => INTERRUPTED.to_owned(),
            Self::Failed(error) => format!("Failed: {error}"),
        }
    }
}

/// What the model reads where something was stopped.
pub(crate) const INTERRUPTED: &str = "Interrupted by the user.";

/// Why a turn does not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    Denied(Denial),
    Interrupted,
    Failed(String),
}

/// As the model reads it in the place of a result.
impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => denial.fmt(f),
            Self::Interrupted => f.write_str(INTERRUPTED),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Stop> for TurnEnd {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Denied(denial) => Self::Denied(denial),
            Stop::Interrupted => Self::Interrupted,
            Stop::Failed(error) => Self::Failed(error),
        }
    }
}

/// Runs a turn.
pub(crate) async fn run(session: &Core, prompt: &str, metadata: Map) -> TurnEnd {
    let started = Instant::now();
    let turn = session.begin_turn();
    let prompt = match submit(session, prompt, metadata).await {
        Ok(prompt) => prompt,
        Err(stop) => {
            if matches!(stop, Stop::Interrupted) {
                emit_cancelled(session, CancelLevel::No).await;
            }
            return stop.into();
        }
    };
    session.coordinator.emit(EXECUTION_START, ExecutionStart::new(prompt.as_str())).await.ignore();
    let mut reported = CancelLevel::No;
    let end = tokio::select! {
        biased;
        end = run_steps(session) => end.map_or_else(TurnEnd::from, TurnEnd::Answered),
        never = emit_cancel_requests(session, &mut reported) => match never {},
    };

    let status = end.status();
    match &end {
        TurnEnd::Answered(_) => {}
        TurnEnd::Interrupted => {
            session.push(closing_message(&end));
            emit_cancelled(session, reported).await;
        }
        TurnEnd::Denied(_) => session.push(closing_message(&end)),
        TurnEnd::Failed(error) => {
            session.push(closing_message(&end));
            let error = data! { "kind": "orchestration", "message": error.as_str() };
            session.coordinator.emit(ERROR_ORCHESTRATION, ErrorOrchestration::new(error)).await.ignore();
            session.notify("error", &end.text()).await;
        }
    }
    let duration = started.elapsed().as_millis() as u64;
    let coordinator = &session.coordinator;
    let complete = ExecutionComplete::new(status).with("response", end.text());
    coordinator.emit(EXECUTION_COMPLETE, complete).await.ignore();
    let last = json!({ "role": "assistant", "content": end.text() });
    let complete =
        OrchestratorComplete::new(session.orchestrator.as_str(), turn, duration, status).with("final_message", last);
    coordinator.emit(ORCHESTRATOR_COMPLETE, complete).await.ignore();
    let complete = PromptComplete::new(prompt, end.text()).with("duration_ms", duration);
    coordinator.emit(PROMPT_COMPLETE, complete).await.ignore();
    session.save();
    end
}

/// Puts the prompt to the hooks, and then into the conversation.
async fn submit(session: &Core, prompt: &str, metadata: Map) -> Result<String, Stop> {
    let submitted = PromptSubmit::new(prompt).with("metadata", metadata);
    let submitted = session.gate(PROMPT_SUBMIT, submitted).await?;
    let prompt = view(&submitted, PromptSubmit::prompt)?.to_owned();
    session.push(Message::user(prompt.as_str()));
    Ok(prompt)
}

/// Asks the model and uses the tools that it asks for, until it asks for none.
async fn run_steps(session: &Core) -> Result<String, Stop> {
    loop {
        session.spend_step()?;
        compact::if_needed(session).await?;
        let answer = call_model(session, ModelCall::Conversation).await?;
        let message = Message { tool_calls: answer.tool_calls.clone(), ..Message::assistant(answer.text.as_str()) };
        session.push(message);
        session.inject(answer.injected).await;
        if answer.tool_calls.is_empty() {
            return match answer.stop {
                Some(StopReason::MaxTokens) => {
                    Err(Stop::Failed("the answer was cut off: it may not be longer".to_owned()))
                }
                Some(StopReason::Refusal) => Err(Stop::Failed("the model refused to answer".to_owned())),
                _ => Ok(answer.text),
            };
        }
        tools::run_calls(session, answer.tool_calls).await?;
    }
}

/// The history goes on with an answer, so that the next prompt follows one.
fn closing_message(end: &TurnEnd) -> Message {
    let metadata = Map::from_iter([("source".to_owned(), Value::from("kernel"))]);
    Message { metadata, ..Message::assistant(end.text()) }
}

/// Tells hooks that a person wants the turn to stop, as soon as they do. `reported` is what they know.
async fn emit_cancel_requests(session: &Core, reported: &mut CancelLevel) -> Infallible {
    for level in [CancelLevel::Graceful, CancelLevel::Immediate] {
        session.cancel.reached(level).await;
        // A sub-agent stops with the one that delegates, which tells it.
        if session.depth == 0 && *reported < level {
            *reported = session.cancel.level();
            let requested = CancelRequested::new(reported.as_str());
            session.coordinator.emit(CANCEL_REQUESTED, requested).await.ignore();
        }
    }
    std::future::pending().await
}

/// Tells hooks that the turn has stopped.
async fn emit_cancelled(session: &Core, reported: CancelLevel) {
    let level = session.cancel.level();
    if session.depth > 0 {
        return;
    }
    if reported < level {
        session.coordinator.emit(CANCEL_REQUESTED, CancelRequested::new(level.as_str())).await.ignore();
    }
    session.coordinator.emit(CANCEL_COMPLETED, CancelCompleted::new(level.as_str())).await.ignore();
}

impl Core {
    /// Puts an operation to the hooks: the data to run it with, unless it may not run or the person stops the turn meanwhile.
    pub(crate) async fn gate<P: Payload>(
        &self,
        event: EventType<P>,
        data: impl Into<EventData>,
    ) -> Result<EventData, Stop> {
        let verdict = tokio::select! {
            biased;
            () = self.cancel.reached(CancelLevel::Graceful) => return Err(Stop::Interrupted),
            verdict = self.coordinator.emit(event, data) => verdict,
        };
        verdict.into_data()
    }

    /// Adds what hooks said to the conversation.
    pub(crate) async fn inject(&self, injected: Vec<InjectedMessage>) {
        for message in injected {
            // A conversation in memory always takes a message.
            let _ = self.context.add_message(message).await;
        }
        self.save();
    }

    /// The same for what has happened already: it is heard to its end, so that the record has an outcome.
    pub(crate) async fn review<P: Payload>(
        &self,
        event: EventType<P>,
        data: impl Into<EventData>,
    ) -> Result<EventData, Stop> {
        self.coordinator.emit(event, data).await.into_data()
    }
}

/// A field of data that hooks may have changed. Data that cannot be read must not run.
fn view<'a, P: Payload + 'a, T: ?Sized + ToOwned>(data: &'a EventData, field: fn(&P) -> &T) -> Result<T::Owned, Stop> {
    match data.view::<P>() {
        Ok(payload) => Ok(field(&payload).to_owned()),
        Err(error) => Err(invalid_data(&error.to_string())),
    }
}

/// A hook changed the data into something that cannot be used.
pub(crate) fn invalid_data(problem: &str) -> Stop {
    let reason = format!("what hooks made of it cannot be used: {problem}");
    Stop::Denied(Denial { by: "kernel".into(), reason })
}

pub(crate) trait VerdictExt {
    fn into_data(self) -> Result<EventData, Stop>;
    /// For events that are only observed.
    fn ignore(self);
}

impl VerdictExt for Verdict {
    fn into_data(self) -> Result<EventData, Stop> {
        match self {
            Self::Proceed(data) => Ok(data),
            Self::Denied { by, reason } => Err(Stop::Denied(Denial { by, reason })),
        }
    }

    fn ignore(self) {}
}

/// What a model reads of a tool's result: its `output`, if it has one.
pub(crate) fn result_text(result: &Value) -> String {
    let text = |key| result.get(key).and_then(Value::as_str);
    match result {
        Value::String(text) => text.clone(),
        _ => match (text("output"), text("error")) {
            (Some(output), _) => output.to_owned(),
            (None, Some(error)) => format!("Error: {error}"),
            (None, None) => result.to_string(),
        },
    }
}
