//! Turns: from a prompt to the response, with hooks around every step.
//!
//! Both orchestrators run this code. `loop-streaming` delivers a response to hooks and the user as it arrives, `loop-basic` when it is complete;
//! nothing else differs.

mod call;
mod tools;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use amplifier_core::{
    CANCEL_COMPLETED, CANCEL_REQUESTED, CancelCompleted, CancelRequested, ContextManager, ERROR_ORCHESTRATION,
    EXECUTION_COMPLETE, EXECUTION_START, ErrorOrchestration, EventData, EventEffects, EventType, ExecutionComplete,
    ExecutionStart, InjectedMessage, Map, Message, ORCHESTRATOR_COMPLETE, OrchestratorComplete, PROMPT_COMPLETE,
    PROMPT_SUBMIT, Payload, PromptComplete, PromptSubmit, Verdict, data,
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

/// The result of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The final response.
    Answered(String),
    /// A denial by a hook, or by a user whose approval a hook requested.
    Denied(Denial),
    /// The user interrupted the turn.
    Interrupted,
    /// A failure, with its reason.
    Failed(String),
}

/// The hook that denied an operation, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The hook.
    pub by: Arc<str>,
    /// The reason.
    pub reason: String,
}

/// The text that the model reads.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denied by hook {}: {}", self.by, self.reason)
    }
}

impl TurnEnd {
    /// Returns the status for events.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Answered(_) => "success",
            Self::Denied(_) | Self::Failed(_) => "error",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the text for the user.
    pub fn text(&self) -> String {
        match self {
            Self::Answered(text) => text.clone(),
            Self::Denied(denial) => denial.to_string(),
            Self::Interrupted => INTERRUPTED.to_owned(),
            Self::Failed(error) => format!("Failed: {error}"),
        }
    }
}

/// The text that the model reads for an interrupted operation.
pub(crate) const INTERRUPTED: &str = "Interrupted by the user.";

#[derive(Debug)]
pub(crate) enum Stop {
    Denied(Denial),
    Interrupted,
    Failed(String),
}

/// The text that the model reads instead of a result.
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

async fn submit(session: &Core, prompt: &str, metadata: Map) -> Result<String, Stop> {
    let submitted = PromptSubmit::new(prompt).with("metadata", metadata);
    let submitted = session.gate(PROMPT_SUBMIT, submitted).await?;
    let prompt = view(&submitted, PromptSubmit::prompt)?.to_owned();
    session.push(Message::user(prompt.as_str()));
    Ok(prompt)
}

/// Calls the model and runs the requested tools until a response requests none.
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
                    Err(Stop::Failed("the response was cut off at its token limit".to_owned()))
                }
                Some(StopReason::Refusal) => Err(Stop::Failed("the model refused to answer".to_owned())),
                _ => Ok(answer.text),
            };
        }
        tools::run_calls(session, answer.tool_calls).await?;
    }
}

/// Returns a message in place of the final response, so that the next prompt follows one.
fn closing_message(end: &TurnEnd) -> Message {
    let metadata = Map::from_iter([("source".to_owned(), Value::from("kernel"))]);
    Message { metadata, ..Message::assistant(end.text()) }
}

/// Emits the cancel requests of the user as they arrive. `reported` is the last emitted level.
async fn emit_cancel_requests(session: &Core, reported: &mut CancelLevel) -> Infallible {
    for level in [CancelLevel::Graceful, CancelLevel::Immediate] {
        session.cancel.reached(level).await;
        // A sub-agent stops with its parent, which emits the request.
        if session.depth == 0 && *reported < level {
            *reported = session.cancel.level();
            let requested = CancelRequested::new(reported.as_str());
            session.coordinator.emit(CANCEL_REQUESTED, requested).await.ignore();
        }
    }
    std::future::pending().await
}

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
    /// Emits an operation, and returns its data as the hooks left it. Fails if a hook denies it or the user interrupts.
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
        self.count_if_denied(event, &verdict);
        verdict.into_data()
    }

    /// Counts a denial. A compaction that hooks postpone is no operation of the agent; nobody can be asked about it either.
    fn count_if_denied<P: Payload>(&self, event: EventType<P>, verdict: &Verdict) {
        if !verdict.is_proceed() && event.name().effects() == EventEffects::All {
            self.count_denial();
        }
    }

    pub(crate) async fn inject(&self, injected: Vec<InjectedMessage>) {
        for message in injected {
            // A conversation in memory accepts every message.
            let _ = self.context.add_message(message).await;
        }
        self.save();
    }

    /// Emits a completed operation. An interruption does not stop this, so that the record has an outcome.
    pub(crate) async fn review<P: Payload>(
        &self,
        event: EventType<P>,
        data: impl Into<EventData>,
    ) -> Result<EventData, Stop> {
        let verdict = self.coordinator.emit(event, data).await;
        self.count_if_denied(event, &verdict);
        verdict.into_data()
    }
}

/// Reads a field of data that hooks may have changed. Unreadable data must not run.
fn view<'a, P: Payload + 'a, T: ?Sized + ToOwned>(data: &'a EventData, field: fn(&P) -> &T) -> Result<T::Owned, Stop> {
    match data.view::<P>() {
        Ok(payload) => Ok(field(&payload).to_owned()),
        Err(error) => Err(invalid_data(&error.to_string())),
    }
}

/// The denial for unusable data from a hook.
pub(crate) fn invalid_data(problem: &str) -> Stop {
    let reason = format!("unusable data from a hook: {problem}");
    Stop::Denied(Denial { by: "kernel".into(), reason })
}

pub(crate) trait VerdictExt {
    fn into_data(self) -> Result<EventData, Stop>;
    /// Ignores the verdict, for events that cannot be denied.
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

/// Returns the text of a tool's result for the model: its `output`, if there is one.
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
