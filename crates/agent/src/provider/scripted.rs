//! A provider that replays a script: for tests, demonstrations, and use without a network.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::{Map, Message, Speaker, ToolCall};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{Chunk, ModelRequest, Provider, ProviderError, StopReason, TokenUsage};

/// The responses of a scripted provider, in order. As JSON:
///
/// ```json
/// { "answers": [
///     { "text": "Let me look.", "tools": [ { "name": "Read", "input": { "file_path": "a.py" } } ] },
///     { "when": "Denied by hook", "text": "Then I leave it." },
///     { "text": "Done." }
/// ] }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// The responses.
    pub answers: Vec<ScriptedResponse>,
    /// The responses of sub-agents, by the name of the agent.
    #[serde(default)]
    pub agents: HashMap<String, Vec<ScriptedResponse>>,
}

/// One response of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedResponse {
    /// The response is used only if the last message contains this text; otherwise it is skipped.
    pub when: Option<String>,
    /// The reasoning.
    pub thinking: Option<String>,
    /// The text.
    pub text: String,
    /// The tool calls.
    pub tools: Vec<ScriptedCall>,
    /// The error to return instead.
    pub error: Option<ScriptedFault>,
    /// The delay before each chunk (a thought, a word, a tool call, the end), in milliseconds.
    pub delay_ms: u64,
}

/// A tool call of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The id that pairs the call with its result; numbered if missing.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The input.
    #[serde(default = "no_input")]
    pub input: Value,
}

fn no_input() -> Value {
    Value::Object(Map::new())
}

/// The error of a scripted response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptedFault {
    /// The provider limits the rate of requests.
    Throttled,
    /// The provider is unavailable.
    Unavailable,
    /// The response is truncated after its text.
    Truncated,
    /// The request is rejected.
    Rejected,
}

/// The reason why a script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script `{path}` cannot be read: {error}")]
    Unreadable {
        /// The path.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The file is not a script.
    #[error("invalid script `{path}`{}: {error}", within(.field.as_deref()))]
    Malformed {
        /// The path.
        path: String,
        /// The invalid field: `answers[1].tools[0].name`.
        field: Option<String>,
        /// The problem and its position.
        error: serde_json::Error,
    },
}

fn within(field: Option<&str>) -> String {
    field.map_or_else(String::new, |field| format!(", at `{field}`"))
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is invalid.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let shown = || path.display().to_string();
        let text = std::fs::read(path).map_err(|error| ScriptError::Unreadable { path: shown(), error })?;
        let mut json = serde_json::Deserializer::from_slice(&text);
        let script = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let is_field = error.path().iter().any(|part| !matches!(part, Segment::Unknown));
            (is_field.then(|| error.path().to_string()), error.into_inner())
        });
        let whole = script.and_then(|script| json.end().map(|()| script).map_err(|error| (None, error)));
        whole.map_err(|(field, error)| ScriptError::Malformed { path: shown(), field, error })
    }

    /// A script with these responses.
    pub fn new(answers: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        Self { answers: answers.into_iter().collect(), agents: HashMap::new() }
    }
}

impl ScriptedResponse {
    /// A response with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds a tool call.
    #[must_use]
    pub fn calling(mut self, name: &str, input: Value) -> Self {
        self.tools.push(ScriptedCall { id: None, name: name.to_owned(), input });
        self
    }

    /// A response with an error.
    pub fn failing(fault: ScriptedFault) -> Self {
        Self { error: Some(fault), ..Self::default() }
    }
}

/// A provider that replays a [`Script`].
pub struct ScriptedProvider {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State>,
    context_limit: usize,
}

struct State {
    script: Script,
    /// The number of used responses, in total and by agent.
    used: HashMap<Option<String>, usize>,
    calls: u64,
    requests: Option<Vec<ModelRequest>>,
}

impl ScriptedProvider {
    /// A provider for a script.
    pub fn new(script: Script) -> Self {
        let state = State { script, used: HashMap::new(), calls: 0, requests: None };
        Self { state: Mutex::new(state), context_limit: 200_000 }
    }

    /// Sets the size of the context window.
    #[must_use]
    pub fn with_context_limit(mut self, tokens: usize) -> Self {
        self.context_limit = tokens;
        self
    }

    /// Records every request for [`requests`](Self::requests). For tests: each request holds the whole conversation, so memory grows with every call.
    #[must_use]
    pub fn recording(self) -> Self {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests = Some(Vec::new());
        self
    }

    /// Returns the recorded requests; none unless the provider is [`recording`](Self::recording).
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests.clone().unwrap_or_default()
    }

    fn next(&self, request: ModelRequest) -> Result<ScriptedResponse, ProviderError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { script, used, calls, requests } = &mut *state;
        let agent = agent_of(&request.messages).filter(|agent| script.agents.contains_key(agent));
        let last = request.messages.last().map_or("", |message| message.content.as_str()).to_owned();
        if let Some(requests) = requests {
            requests.push(request);
        }
        let answers = agent.as_ref().and_then(|agent| script.agents.get(agent)).unwrap_or(&script.answers);
        let next = used.entry(agent.clone()).or_default();
        let matches = |answer: &ScriptedResponse| answer.when.as_ref().is_none_or(|wanted| last.contains(wanted));
        let found = answers.iter().enumerate().skip(*next).find(|(_, answer)| matches(answer));
        let Some((at, answer)) = found else {
            let whose = agent.map_or_else(String::new, |agent| format!(" of agent `{agent}`"));
            let why = match answers.len() - *next {
                0 => format!("all {} answers{whose} were given", answers.len()),
                left => format!("none of the {left} answers{whose} that are left is for this message"),
            };
            return Err(ProviderError::Script(why));
        };
        *next = at + 1;
        let mut answer = answer.clone();
        for call in &mut answer.tools {
            *calls += 1;
            call.id.get_or_insert_with(|| format!("call-{calls}"));
        }
        Ok(answer)
    }
}

/// Returns the agent of a conversation, which the first message of a sub-agent names.
fn agent_of(messages: &[Message]) -> Option<String> {
    let system = messages.first().filter(|message| message.role == Speaker::System)?;
    Some(system.metadata.get("agent_name")?.as_str()?.to_owned())
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        "script"
    }

    fn context_limit(&self) -> usize {
        self.context_limit
    }

    fn answer(&self, request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        let input_tokens = crate::count_messages(&request.messages) as u64;
        let answer = match self.next(request) {
            Ok(answer) => answer,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let output_tokens = crate::count_messages(&[Message::assistant(&answer.text)]) as u64;
        let stop = if answer.tools.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let mut chunks: Vec<Result<Chunk, ProviderError>> = Vec::new();
        chunks.extend(answer.thinking.map(|text| Ok(Chunk::Thinking(text))));
        chunks.extend(answer.text.split_inclusive(' ').map(|word| Ok(Chunk::Text(word.to_owned()))));
        match answer.error {
            None => {
                let call = |ScriptedCall { id, name, input }| ToolCall { id: id.unwrap_or_default(), name, input };
                chunks.extend(answer.tools.into_iter().map(|one| Ok(Chunk::ToolCall(call(one)))));
                chunks.push(Ok(Chunk::End { stop, usage: TokenUsage { input_tokens, output_tokens } }));
            }
            Some(ScriptedFault::Truncated) => chunks.push(Err(ProviderError::Truncated)),
            Some(fault) => chunks = vec![Err(fault.into())],
        }
        let delay = Duration::from_millis(answer.delay_ms);
        let paced = move |chunk| async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            chunk
        };
        stream::iter(chunks).then(paced).boxed()
    }
}

impl From<ScriptedFault> for ProviderError {
    fn from(fault: ScriptedFault) -> Self {
        let scripted = "as the script says".to_owned();
        match fault {
            ScriptedFault::Throttled => {
                Self::Throttled { message: scripted, retry_after: Some(Duration::from_millis(10)) }
            }
            ScriptedFault::Unavailable => Self::Unavailable(scripted),
            ScriptedFault::Truncated => Self::Truncated,
            ScriptedFault::Rejected => Self::Rejected(scripted),
        }
    }
}
