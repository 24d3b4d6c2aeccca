//! From genai's events to our chunks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_core::{Map, ToolCall};
use futures::{Stream, StreamExt, stream};
use genai::ServiceTarget;
use genai::chat::{self, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, StreamEnd};
use serde_json::Value;
use uuid::Uuid;

use super::error::ErrorMapper;
use crate::provider::{Chunk, ProviderError, StopReason, TokenUsage};

/// How ids begin that genai makes up for Gemini, and does not send back: Gemini would not know them.
const GENERATED_ID: &str = "call#";

/// Asks, and gives the pieces of the answer. Nothing is sent until the first piece is asked for.
pub(super) async fn open(
    client: genai::Client,
    target: ServiceTarget,
    request: ChatRequest,
    options: ChatOptions,
    errors: Arc<ErrorMapper>,
) -> Result<impl Stream<Item = Result<Chunk, ProviderError>>, ProviderError> {
    // Gemini says that it refuses a prompt in a field that genai does not pass on.
    let is_blocked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_blocked);
    let options = options.with_raw_frame_fn(move |_, frame| {
        if frame.data.contains("\"blockReason\"") {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let response = client.exec_chat_stream(target, request, Some(&options)).await;
    let events = response.map_err(|error| errors.read(error))?.stream;
    let response = ResponseStream { events, errors, is_blocked, pending: VecDeque::new() };
    Ok(stream::unfold(Some(response), |response| async move {
        let mut response = response?;
        let chunk = response.next().await;
        // Nothing follows the end, nor an error.
        let is_last = matches!(chunk, Err(_) | Ok(Chunk::End { .. }));
        Some((chunk, (!is_last).then_some(response)))
    }))
}

struct ResponseStream {
    events: ChatStream,
    errors: Arc<ErrorMapper>,
    is_blocked: Arc<AtomicBool>,
    /// The tool calls and the end, once they are complete.
    pending: VecDeque<Chunk>,
}

impl ResponseStream {
    async fn next(&mut self) -> Result<Chunk, ProviderError> {
        loop {
            if let Some(chunk) = self.pending.pop_front() {
                return Ok(chunk);
            }
            match self.events.next().await {
                None => return Err(ProviderError::Truncated),
                Some(Ok(ChatStreamEvent::Chunk(text))) if !text.content.is_empty() => {
                    return Ok(Chunk::Text(text.content));
                }
                Some(Ok(ChatStreamEvent::ReasoningChunk(text))) if !text.content.is_empty() => {
                    return Ok(Chunk::Thinking(text.content));
                }
                Some(Ok(ChatStreamEvent::End(end))) => self.pending = complete_response(end)?.into(),
                // Pieces of a tool call hold all that came before them; the end has them whole.
                Some(Ok(_)) => {}
                Some(Err(genai::Error::ChatResponse { .. })) if self.is_blocked.load(Ordering::Relaxed) => {
                    return Ok(Chunk::End { stop: StopReason::Refusal, usage: TokenUsage::default() });
                }
                Some(Err(error)) => return Err(self.errors.read(error)),
            }
        }
    }
}

fn complete_response(end: StreamEnd) -> Result<Vec<Chunk>, ProviderError> {
    let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
    // genai ends a stream of Gemini's that just stopped, too; and a `[DONE]` alone says nothing about the answer.
    let stop = stop(end.captured_stop_reason.as_ref().ok_or(ProviderError::Truncated)?)?;
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    if stop == StopReason::Refusal {
        // Calls that the service would not let the model finish are not made.
        return Ok(vec![Chunk::End { stop, usage }]);
    }

    let mut complete = Vec::with_capacity(calls.len());
    for call in without_duplicates(calls) {
        match arguments(&call.fn_name, call.fn_arguments, stop) {
            Ok(input) => {
                complete.push(ToolCall { id: identify(call.call_id, &call.fn_name), name: call.fn_name, input })
            }
            // Trying again would only be cut off again; whoever asked hears that the answer is too long.
            Err(_) if stop == StopReason::MaxTokens => {}
            Err(error) => return Err(error),
        }
    }
    let stop = match stop {
        _ if !complete.is_empty() => StopReason::ToolUse,
        StopReason::ToolUse => StopReason::EndTurn,
        stop => stop,
    };
    Ok(complete.into_iter().map(Chunk::ToolCall).chain([Chunk::End { stop, usage }]).collect())
}

/// A server that does not count calls from zero makes genai invent twins of the first, with half its arguments.
fn without_duplicates(mut calls: Vec<chat::ToolCall>) -> Vec<chat::ToolCall> {
    while let [first, second, ..] = calls.as_slice()
        && first.call_id == second.call_id
        && !first.call_id.is_empty()
        && !first.call_id.starts_with(GENERATED_ID)
    {
        calls.remove(0);
    }
    calls
}

fn arguments(tool: &str, arguments: Value, stop: StopReason) -> Result<Value, ProviderError> {
    match arguments {
        Value::Object(_) => Ok(arguments),
        // A tool without parameters, unless the answer was cut off before them.
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() && stop != StopReason::MaxTokens => Ok(Value::Object(Map::new())),
        _ => Err(ProviderError::Malformed(format!("the arguments for tool `{tool}` are no JSON object"))),
    }
}

/// Ids pair calls with results throughout a conversation. Those that genai makes up for services that give none are
/// the same in every answer.
fn identify(id: String, tool: &str) -> String {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if id.starts_with(GENERATED_ID) {
        let (_, number) = Uuid::now_v7().as_u64_pair();
        format!("{GENERATED_ID}{tool}#{}", number % u64::from(u32::MAX))
    } else if id.is_empty() || id.strip_prefix("call_").is_some_and(is_number) {
        format!("call_{}", Uuid::now_v7().simple())
    } else {
        id
    }
}

fn stop(reason: &chat::StopReason) -> Result<StopReason, ProviderError> {
    match reason {
        chat::StopReason::Completed(_) | chat::StopReason::StopSequence(_) => Ok(StopReason::EndTurn),
        chat::StopReason::MaxTokens(_) => Ok(StopReason::MaxTokens),
        chat::StopReason::ToolCall(_) => Ok(StopReason::ToolUse),
        chat::StopReason::ContentFilter(_) => Ok(StopReason::Refusal),
        chat::StopReason::Other(word) => match word.as_str() {
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                Err(ProviderError::Malformed(format!("the model stopped with `{word}`")))
            }
            _ => {
                tracing::warn!(reason = word, "the model stopped for an unknown reason");
                Ok(StopReason::EndTurn)
            }
        },
    }
}

fn usage(usage: &chat::Usage) -> TokenUsage {
    let thinking = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or_default();
    // Gemini counts thinking apart, and genai adds it only if there was an answer.
    TokenUsage { input_tokens: count(usage.prompt_tokens), output_tokens: count(usage.completion_tokens.or(thinking)) }
}
