//! One model call: hooks, request, retries, and hooks on the response.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use amplifier_core::{
    CONTENT_BLOCK_DELTA, CONTENT_BLOCK_END, CONTENT_BLOCK_START, ContentBlockDelta, ContentBlockEnd, ContentBlockStart,
    ERROR_PROVIDER, ErrorProvider, HookRole, InjectedMessage, Map, Message, PROVIDER_REQUEST, PROVIDER_RESPONSE,
    PROVIDER_RETRY, PROVIDER_THROTTLE, ProviderRequest, ProviderResponse, ProviderRetry, ProviderThrottle,
    THINKING_DELTA, THINKING_FINAL, ThinkingDelta, ThinkingFinal, ToolCall, data,
};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Stop, VerdictExt, invalid_data};
use crate::cancel::CancelLevel;
use crate::provider::{Chunk, ModelRequest, ProviderError, StopReason, TokenUsage};
use crate::session::{Core, Orchestrator, new_id};
use crate::tokens::token_upper_bound;

pub(crate) enum ModelCall {
    /// The conversation, with tools.
    Conversation,
    /// A side request, without tools and without observers.
    Side(Vec<Message>),
}

/// The response of the model, as hooks left it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelResponse {
    pub(crate) text: String,
    pub(crate) tool_calls: Vec<ToolCall>,
    /// The injections of hooks, which follow the response.
    pub(crate) injected: Vec<InjectedMessage>,
    thinking: String,
    usage: TokenUsage,
    pub(crate) stop: Option<StopReason>,
}

pub(crate) async fn call_model(session: &Core, call: ModelCall) -> Result<ModelResponse, Stop> {
    let is_side = matches!(call, ModelCall::Side(_));
    let request = request(session, call).await?;
    let counted = counted(session, &request);
    let is_live = !is_side && session.orchestrator == Orchestrator::Streaming && !is_reviewed(session);
    if !is_side {
        session.observer.thinking();
    }
    let answer = match call_with_retries(session, request, is_live).await {
        Ok(answer) => answer,
        Err(stop) => {
            let (kind, message) = match &stop {
                CallFailure::Interrupted => ("cancelled", "stopped by the person".to_owned()),
                CallFailure::Provider(error) => (error.kind(), error.to_string()),
            };
            if !is_side {
                session.observer.response_ended(&TokenUsage::default());
            }
            emit_failure(session, kind, &message).await;
            return Err(match stop {
                CallFailure::Interrupted => Stop::Interrupted,
                CallFailure::Provider(_) => Stop::Failed(message),
            });
        }
    };
    session.count_tokens(&answer.usage);
    if let Some(counted) = counted {
        session.tokens.correct(counted, answer.usage.input_tokens);
    }
    if session.orchestrator == Orchestrator::Basic && !answer.thinking.is_empty() {
        session.coordinator.emit_often(THINKING_FINAL, ThinkingFinal::new(answer.thinking.as_str())).await;
    }
    let answer = review(session, answer).await?;
    if !is_side {
        if !is_live && !answer.text.is_empty() {
            session.observer.text(&answer.text);
        }
        session.observer.response_ended(&answer.usage);
    }
    Ok(answer)
}

/// Counts the tokens of a request; none while the conversation is far from the limit of the model, because counting takes time.
fn counted(session: &Core, request: &ModelRequest) -> Option<usize> {
    let is_large = token_upper_bound(&request.messages) > session.provider.context_limit() / 4;
    is_large.then(|| session.tokens.of_request(request))
}

async fn emit_failure(session: &Core, kind: &str, message: &str) {
    let failed = ErrorProvider::new(session.provider.name(), data! { "kind": kind, "message": message });
    session.coordinator.emit(ERROR_PROVIDER, failed).await.ignore();
}

/// Returns `true` if a hook can change or withhold responses. The user then sees a response only after that hook.
fn is_reviewed(session: &Core) -> bool {
    let hooks = session.coordinator.hooks().list_handlers_of(PROVIDER_RESPONSE);
    hooks.iter().any(|hook| hook.role == HookRole::Gate)
}

/// Emits the request, and builds it from the data that the hooks left.
async fn request(session: &Core, call: ModelCall) -> Result<ModelRequest, Stop> {
    let conversation = &session.context.conversation;
    let (is_conversation, messages, tools) = match call {
        ModelCall::Conversation => (true, conversation.upcoming(), session.tool_specs()),
        ModelCall::Side(messages) => (false, messages, Vec::new()),
    };
    let shown = json!(messages);
    let parameters = session.options.parameters.clone();
    let data = ProviderRequest::new(session.provider.name())
        .with("model", session.provider.model())
        .with("messages", shown.clone())
        .with("parameters", parameters);
    // Injections of this event are part of the call. Those for a side request must not enter the conversation.
    session.context.capture_injections(PROVIDER_REQUEST.as_str(), !is_conversation);
    let allowed = session.gate(PROVIDER_REQUEST, data).await;
    let injected = session.context.take_injections();
    if !is_conversation {
        session.inject(injected.iter().filter(|one| !one.placement.is_ephemeral()).cloned().collect()).await;
    }
    let data = allowed?;
    let changed = |injected: Vec<InjectedMessage>| {
        let mut messages: Vec<Message> = read_field("messages", data.get("messages"))?;
        messages.extend(injected.into_iter().map(Message::from));
        Ok(messages)
    };
    let messages = match is_conversation {
        true => {
            let current = conversation.next_call();
            if data.get("messages") == Some(&shown) { Ok(current) } else { changed(injected) }
        }
        false => changed(injected),
    };
    session.save();
    let parsed = messages.and_then(|messages| {
        let parameters: Map = read_field("parameters", data.get("parameters"))?;
        Ok(ModelRequest { messages, tools, parameters, tag: Some(session.tag.clone()) })
    });
    if let Err(Stop::Denied(denial)) = &parsed {
        emit_failure(session, "unusable", &denial.reason).await;
    }
    parsed
}

fn read_field<T: DeserializeOwned>(field: &str, value: Option<&Value>) -> Result<T, Stop> {
    let value = value.ok_or_else(|| invalid_data(&format!("missing `{field}`")))?;
    T::deserialize(value).map_err(|error| invalid_data(&format!("`{field}`: {error}")))
}

enum CallFailure {
    Interrupted,
    Provider(ProviderError),
}

async fn call_with_retries(session: &Core, request: ModelRequest, is_live: bool) -> Result<ModelResponse, CallFailure> {
    let mut attempt = 0;
    loop {
        let error = match attempt_once(session, request.clone(), is_live).await {
            Err(CallFailure::Provider(error)) if error.is_transient() && attempt < session.options.retries => error,
            result => return result,
        };
        attempt += 1;
        let delay = match &error {
            ProviderError::Throttled { retry_after: Some(requested), .. } => (*requested).min(MAX_DELAY),
            _ => (session.options.retry_delay * 2u32.saturating_pow(attempt - 1)).min(MAX_DELAY),
        };
        let name = session.provider.name();
        let milliseconds = delay.as_millis() as u64;
        if matches!(error, ProviderError::Throttled { .. }) {
            session.coordinator.emit(PROVIDER_THROTTLE, ProviderThrottle::new(name, milliseconds)).await.ignore();
        }
        let retry = ProviderRetry::new(name, u64::from(attempt))
            .with("delay_ms", milliseconds)
            .with("error", json!({ "kind": error.kind(), "message": error.to_string() }));
        session.coordinator.emit(PROVIDER_RETRY, retry).await.ignore();
        session.observer.note(&format!("{error}; trying again in {:.1} s", delay.as_secs_f64()));
        tokio::select! {
            () = session.cancel.reached(CancelLevel::Graceful) => return Err(CallFailure::Interrupted),
            () = tokio::time::sleep(delay) => {}
        }
    }
}

const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// The largest nesting depth of stored JSON: deeper values cannot be read back.
pub const MAX_STORED_DEPTH: usize = 100;

const MAX_DELAY: Duration = Duration::from_secs(60);

async fn attempt_once(session: &Core, request: ModelRequest, is_live: bool) -> Result<ModelResponse, CallFailure> {
    let limit = session.options.call_timeout;
    let mut answer = ModelResponse::default();
    let mut blocks = BlockEvents { session, is_live, index: 0, open: None };
    let mut room = MAX_RESPONSE_BYTES;
    let panicked = || CallFailure::Provider(ProviderError::Malformed("the provider panicked".to_owned()));
    let stream = catch_unwind(AssertUnwindSafe(|| session.provider.answer(request)));
    let mut stream = AssertUnwindSafe(stream.map_err(|_| panicked())?).catch_unwind();
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        let next = tokio::select! {
            biased;
            () = session.cancel.reached(CancelLevel::Graceful) => return Err(CallFailure::Interrupted),
            next = tokio::time::timeout_at(deadline, stream.next()) => next,
        };
        let chunk = match next {
            Err(_) => return Err(CallFailure::Provider(ProviderError::TimedOut(limit))),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(panicked()),
            Ok(Some(Ok(Err(error)))) => return Err(CallFailure::Provider(error)),
            Ok(Some(Ok(Ok(chunk)))) => chunk,
        };
        room = match room.checked_sub(size(&chunk)) {
            Some(left) => left,
            None => {
                let why = format!("longer than {MAX_RESPONSE_BYTES} bytes");
                return Err(CallFailure::Provider(ProviderError::Malformed(why)));
            }
        };
        blocks.record(&chunk).await;
        match chunk {
            Chunk::Text(text) => answer.text.push_str(&text),
            Chunk::Thinking(text) => answer.thinking.push_str(&text),
            Chunk::ToolCall(call) => {
                check_depth(&call).map_err(|why| CallFailure::Provider(ProviderError::Malformed(why)))?;
                answer.tool_calls.push(call);
            }
            Chunk::End { stop, usage } => (answer.stop, answer.usage) = (Some(stop), usage),
        }
    }
    blocks.end().await;
    if answer.stop.is_none() {
        return Err(CallFailure::Provider(ProviderError::Truncated));
    }
    Ok(answer)
}

/// Returns the size of a chunk in memory; a call takes more than its text.
fn size(chunk: &Chunk) -> usize {
    const PER_CALL: usize = 16 << 10;
    match chunk {
        Chunk::Text(text) | Chunk::Thinking(text) => text.len(),
        Chunk::ToolCall(call) => PER_CALL + call.name.len() + call.input.to_string().len(),
        Chunk::End { .. } => 0,
    }
}

pub(super) fn check_depth(call: &ToolCall) -> Result<(), String> {
    if exceeds_depth(&call.input, MAX_STORED_DEPTH) {
        return Err(format!("the input of `{}` is nested deeper than {MAX_STORED_DEPTH} levels", call.name));
    }
    Ok(())
}

fn exceeds_depth(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(all), Some(left)) => all.iter().any(|one| exceeds_depth(one, left)),
        (Value::Object(all), Some(left)) => all.values().any(|one| exceeds_depth(one, left)),
        _ => false,
    }
}

/// Emits the response; hooks may change its text or withhold it.
async fn review(session: &Core, answer: ModelResponse) -> Result<ModelResponse, Stop> {
    let stop = answer.stop.map_or("", StopReason::as_str);
    let response = ProviderResponse::new(session.provider.name())
        .with("model", session.provider.model())
        .with("content", answer.text.as_str())
        .with("tool_calls", json!(answer.tool_calls))
        .with("usage", json!(answer.usage))
        .with("stop_reason", stop);
    session.context.capture_injections(PROVIDER_RESPONSE.as_str(), true);
    let reviewed = session.review(PROVIDER_RESPONSE, response).await;
    let injected = session.context.take_injections();
    let parsed = reviewed.and_then(|data| {
        let text = read_field("content", data.get("content"))?;
        let tool_calls = read_field("tool_calls", data.get("tool_calls"))?;
        Ok((text, tool_calls))
    });
    match parsed {
        Ok((text, tool_calls)) => {
            let tool_calls = with_unique_ids(session, tool_calls);
            Ok(ModelResponse { text, tool_calls, injected, ..answer })
        }
        Err(stop) => {
            session.inject(injected).await;
            Err(stop)
        }
    }
}

/// Gives each call a unique id. A model may repeat or omit ids, and a result must belong to one call.
fn with_unique_ids(session: &Core, mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
    if calls.is_empty() {
        return calls;
    }
    let history = session.context.conversation.history();
    let known = history.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone());
    let mut used: HashSet<String> = known.collect();
    for call in &mut calls {
        if call.id.is_empty() || !used.insert(call.id.clone()) {
            call.id = format!("call-{}", new_id());
            used.insert(call.id.clone());
        }
    }
    calls
}

/// Emits the blocks of a response while it streams.
struct BlockEvents<'a> {
    session: &'a Core,
    is_live: bool,
    index: u64,
    /// The kind and the text so far of the open block.
    open: Option<(&'static str, String)>,
}

impl BlockEvents<'_> {
    async fn record(&mut self, chunk: &Chunk) {
        if self.session.orchestrator != Orchestrator::Streaming {
            return;
        }
        match chunk {
            Chunk::Text(text) => {
                if self.is_live {
                    self.session.observer.text(text);
                }
                self.piece("text", text).await;
            }
            Chunk::Thinking(text) => {
                self.piece("thinking", text).await;
                self.session.coordinator.emit_often(THINKING_DELTA, ThinkingDelta::new(text.as_str())).await;
            }
            Chunk::ToolCall(call) => {
                self.begin("tool_use").await;
                self.open = None;
                self.close(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.input })).await;
            }
            Chunk::End { .. } => self.end().await,
        }
    }

    async fn piece(&mut self, kind: &'static str, text: &str) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.begin(kind).await;
        }
        if let Some((_, so_far)) = &mut self.open {
            so_far.push_str(text);
        }
        let delta = ContentBlockDelta::new(self.index, json!({ "type": kind, "text": text }));
        self.session.coordinator.emit_often(CONTENT_BLOCK_DELTA, delta).await;
    }

    async fn begin(&mut self, kind: &'static str) {
        self.end().await;
        self.open = Some((kind, String::new()));
        self.session.coordinator.emit_often(CONTENT_BLOCK_START, ContentBlockStart::new(self.index, kind)).await;
    }

    async fn end(&mut self) {
        let Some((kind, text)) = self.open.take() else { return };
        if kind == "thinking" {
            self.session.coordinator.emit_often(THINKING_FINAL, ThinkingFinal::new(text.as_str())).await;
        }
        self.close(json!({ "type": kind, "text": text })).await;
    }

    async fn close(&mut self, block: Value) {
        let ended = ContentBlockEnd::new(self.index).with("block", block);
        self.session.coordinator.emit_often(CONTENT_BLOCK_END, ended).await;
        self.index += 1;
    }
}
