//! Conversion of requests for genai.

use std::mem;

use amplifier_core::{Map, Message, Speaker};
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, MessageContent, ReasoningEffort, ToolCall,
    ToolResponse,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Kind;
use crate::provider::{ModelRequest, ProviderError, ToolSpec};

/// The default for Anthropic, which requires a limit.
const ANTHROPIC_MAX_TOKENS: u32 = 8192;

pub(super) fn prepare(
    kind: Kind,
    model: &str,
    request: ModelRequest,
) -> Result<(ChatRequest, ChatOptions), ProviderError> {
    let mut options = parameters(request.parameters)?;
    if kind == Kind::Anthropic {
        options.max_tokens.get_or_insert(ANTHROPIC_MAX_TOKENS);
    }
    if kind == Kind::OpenAi {
        // Otherwise genai takes the end of a name such as `mistral-medium` for a reasoning effort. This wire format cannot express a budget, so genai
        // omits the budget.
        options.reasoning_effort = Some(ReasoningEffort::Budget(0));
    }
    options.extra_body = Some(Value::Object(extra_body(kind, model, request.tools)));
    let mut messages = request.messages;
    let tag = request.tag.unwrap_or_default();
    tag.mark(&mut messages);
    Ok((conversation(kind, messages, tag.description()), options))
}

fn parameters(parameters: Map) -> Result<ChatOptions, ProviderError> {
    let mut options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "temperature" => options.temperature = Some(parameter(&name, value, "a number")?),
            "top_p" => options.top_p = Some(parameter(&name, value, "a number")?),
            "max_tokens" => options.max_tokens = Some(parameter(&name, value, "a positive integer")?),
            "stop_sequences" => options.stop_sequences = parameter(&name, value, "an array of strings")?,
            _ => tracing::warn!(parameter = name, "this parameter is unknown and is not sent"),
        }
    }
    Ok(options)
}

fn parameter<T: DeserializeOwned>(name: &str, value: Value, wanted: &str) -> Result<T, ProviderError> {
    serde_json::from_value(value).map_err(|_| ProviderError::Rejected(format!("parameter `{name}` must be {wanted}")))
}

/// Returns the fields that are sent unchanged.
///
/// genai gives some names a meaning: the tool `web_search` would run at the provider, past every hook, and `a::b` would select model `b`.
fn extra_body(kind: Kind, model: &str, tools: Vec<ToolSpec>) -> Map {
    let mut body = Map::new();
    if kind != Kind::Gemini {
        body.insert("model".to_owned(), model.into());
    }
    if !tools.is_empty() {
        let declared: Vec<_> = tools.into_iter().map(|tool| declare_tool(kind, tool)).collect();
        let tools = if kind == Kind::Gemini { json!([{ "functionDeclarations": declared }]) } else { declared.into() };
        body.insert("tools".to_owned(), tools);
    }
    body
}

fn declare_tool(kind: Kind, ToolSpec { name, description, input_schema }: ToolSpec) -> Value {
    match kind {
        Kind::Anthropic => json!({ "name": name, "description": description, "input_schema": input_schema }),
        Kind::OpenAi => {
            let function = json!({ "name": name, "description": description, "parameters": input_schema });
            json!({ "type": "function", "function": function })
        }
        Kind::Gemini => json!({ "name": name, "description": description, "parametersJsonSchema": input_schema }),
    }
}

fn conversation(kind: Kind, messages: Vec<Message>, about_tag: String) -> ChatRequest {
    let mut messages = messages.into_iter().peekable();
    let mut system = Vec::new();
    while let Some(message) = messages.next_if(|message| message.role == Speaker::System) {
        system.push(message.content);
    }
    system.retain(|text| !text.trim().is_empty());
    system.push(about_tag);
    let mut turns = ChatTurns { kind, turns: Vec::new(), results: Vec::new(), user_texts: Vec::new() };
    for message in messages {
        turns.add(message);
    }
    turns.end_user_turn();
    ChatRequest { system: Some(system.join("\n\n")), ..ChatRequest::new(turns.turns) }
}

/// The conversation in the order of the wire format: results directly after the calls, and, for formats with a single leading system message,
/// alternating turns of model and user.
struct ChatTurns {
    kind: Kind,
    turns: Vec<ChatMessage>,
    // INVARIANT: the messages since the last turn of the model.
    results: Vec<ContentPart>,
    user_texts: Vec<(ChatRole, String)>,
}

impl ChatTurns {
    fn add(&mut self, message: Message) {
        let Message { role, content, tool_calls, tool_call_id, .. } = message;
        // Anthropic rejects blank text, and the others do not need it.
        let is_blank = content.trim().is_empty();
        match role {
            Speaker::Tool => {
                let id = self.id(tool_call_id.unwrap_or_default());
                self.results.push(ContentPart::ToolResponse(ToolResponse::new(id, content)));
            }
            Speaker::Assistant => {
                let text = (!is_blank).then_some(ContentPart::Text(content));
                let calls = tool_calls.into_iter().map(|call| {
                    let fn_arguments = if call.input.is_null() { json!({}) } else { call.input };
                    let call_id = self.id(call.id);
                    let fn_name = call.name;
                    ContentPart::ToolCall(ToolCall { call_id, fn_name, fn_arguments, thought_signatures: None })
                });
                let parts: Vec<_> = text.into_iter().chain(calls).collect();
                self.answer(parts);
            }
            Speaker::System | Speaker::User if is_blank => {}
            Speaker::System if self.kind == Kind::OpenAi => self.user_texts.push((ChatRole::System, content)),
            Speaker::System | Speaker::User => self.user_texts.push((ChatRole::User, content)),
        }
    }

    fn answer(&mut self, parts: Vec<ContentPart>) {
        if parts.is_empty() {
            return;
        }
        self.end_user_turn();
        match self.turns.last_mut() {
            Some(last) if last.role == ChatRole::Assistant && self.kind != Kind::OpenAi => {
                parts.into_iter().for_each(|part| last.content.push(part));
            }
            _ => self.turns.push(ChatMessage::assistant(MessageContent::from_parts(parts))),
        }
    }

    /// Ends the turn of the user and of the tools.
    fn end_user_turn(&mut self) {
        let mut results = mem::take(&mut self.results);
        let user_texts = mem::take(&mut self.user_texts);
        if self.kind == Kind::Anthropic {
            results.extend(user_texts.into_iter().map(|(_, text)| ContentPart::Text(text)));
            self.turn(ChatRole::User, results);
            return;
        }
        self.turn(ChatRole::Tool, results);
        if self.kind == Kind::Gemini {
            self.turn(ChatRole::User, user_texts.into_iter().map(|(_, text)| ContentPart::Text(text)).collect());
        } else {
            user_texts.into_iter().for_each(|(role, text)| self.turn(role, vec![ContentPart::Text(text)]));
        }
    }

    fn turn(&mut self, role: ChatRole, parts: Vec<ContentPart>) {
        if !parts.is_empty() {
            self.turns.push(ChatMessage::new(role, MessageContent::from_parts(parts)));
        }
    }

    /// Replaces characters that Anthropic rejects: a conversation may contain ids of another service.
    fn id(&self, id: String) -> String {
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if self.kind == Kind::Anthropic { id.replace(|letter| !is_allowed(letter), "_") } else { id }
    }
}
