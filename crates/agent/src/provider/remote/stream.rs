//! Conversion of the events of genai to chunks.

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

/// The prefix of ids that genai generates for Gemini and does not send back.
const GENERATED_ID: &str = "call#";

/// Sends a request, and streams the response. Nothing is sent before the first poll.
pub(super) async fn open(
    client: genai::Client,
    target: ServiceTarget,
    request: ChatRequest,
    options: ChatOptions,
    errors: Arc<ErrorMapper>,
) -> Result<impl Stream<Item = Result<Chunk, ProviderError>>, ProviderError> {
    // Gemini reports a blocked prompt in a field that genai does not pass on.
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
        // Nothing follows the end or an error.
        let is_last = matches!(chunk, Err(_) | Ok(Chunk::End { .. }));
        Some((chunk, (!is_last).then_some(response)))
    }))
}

struct ResponseStream {
    events: ChatStream,
    errors: Arc<ErrorMapper>,
    is_blocked: Arc<AtomicBool>,
    /// The tool calls and the end, once complete.
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
                // Each part of a tool call repeats the parts before; the end has the complete calls.
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
    // genai also ends a Gemini stream that broke off; and `[DONE]` alone does not prove a complete response.
    let stop = stop(end.captured_stop_reason.as_ref().ok_or(ProviderError::Truncated)?)?;
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    if stop == StopReason::Refusal {
        // A refused response has no valid calls.
        return Ok(vec![Chunk::End { stop, usage }]);
    }

    let mut complete = Vec::with_capacity(calls.len());
    for call in without_duplicates(calls) {
        match arguments(&call.fn_name, call.fn_arguments, stop) {
            Ok(input) => {
                complete.push(ToolCall { id: identify(call.call_id, &call.fn_name), name: call.fn_name, input })
            }
            // A retry would be cut off again; the caller reports that the response is too long.
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

/// Removes duplicates with partial arguments, which genai creates if a server does not number calls from zero.
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
        // A tool without parameters, unless the response was cut off.
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() && stop != StopReason::MaxTokens => Ok(Value::Object(Map::new())),
        _ => Err(ProviderError::Malformed(format!("the arguments for tool `{tool}` are not a JSON object"))),
    }
}

/// Returns a unique id, because genai generates the same ids in every response for services without ids.
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
    // Gemini counts thinking separately, and genai adds that only to a non-empty response.
    TokenUsage { input_tokens: count(usage.prompt_tokens), output_tokens: count(usage.completion_tokens.or(thinking)) }
}
