//! Model providers.

mod context_tag;
mod remote;
mod scripted;

pub use context_tag::ContextTag;
pub use remote::{Kind, RemoteOptions, RemoteProvider};
pub use scripted::{Script, ScriptError, ScriptedCall, ScriptedFault, ScriptedProvider, ScriptedResponse};

use std::time::Duration;

use amplifier_core::{Map, Message, ToolCall, words};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model of a provider.
pub trait Provider: Send + Sync + 'static {
    /// Returns the name in events: `anthropic`, `openai`, `scripted`.
    fn name(&self) -> &str;

    /// Returns the name of the model.
    fn model(&self) -> &str;

    /// Returns the size of the context window in tokens.
    fn context_limit(&self) -> usize;

    /// Sends a request, and streams the response. The last chunk is [`Chunk::End`]; a response without it is truncated. Nothing follows an error.
    ///
    /// # Cancel safety
    /// Dropping the stream ends the call.
    fn answer(&self, request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>>;
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The conversation, system messages included.
    pub messages: Vec<Message>,
    /// The available tools.
    pub tools: Vec<ToolSpec>,
    /// Parameters of the call: `temperature`, `max_tokens`, `top_p`, …
    pub parameters: Map,
    /// The tag around text of hooks; without one, a remote provider uses its own.
    pub tag: Option<ContextTag>,
}

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The purpose, and when to use the tool.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
}

/// A part of a streamed response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// More of the text.
    Text(String),
    /// More of the reasoning.
    Thinking(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// The end of a complete response.
    End {
        /// The stop reason.
        stop: StopReason,
        /// Tokens used.
        usage: TokenUsage,
    },
}

words! {
    /// The reason why a model stopped.
    pub enum StopReason("stop reason") {
        /// The response is finished.
        EndTurn = "end_turn",
        /// The model requests tool calls.
        ToolUse = "tool_use",
        /// The response reached its token limit.
        MaxTokens = "max_tokens",
        /// The model refused to answer.
        Refusal = "refusal",
    }
}

/// Tokens used by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// The tokens of the request.
    pub input_tokens: u64,
    /// The tokens of the response.
    pub output_tokens: u64,
}

/// The reason why a model call failed. Messages never contain a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider limits the rate of requests.
    #[error("the provider limits requests: {message}")]
    Throttled {
        /// The message of the provider.
        message: String,
        /// The requested delay.
        retry_after: Option<Duration>,
    },
    /// The provider is temporarily unavailable.
    #[error("the provider is unavailable: {0}")]
    Unavailable(String),
    /// The provider is unreachable, or the connection broke.
    #[error("the connection to the provider failed: {0}")]
    Connection(String),
    /// The call exceeded its time limit.
    #[error("the provider did not respond within {0:?}")]
    TimedOut(Duration),
    /// The response is incomplete.
    #[error("the response is incomplete")]
    Truncated,
    /// The response is malformed.
    #[error("malformed response: {0}")]
    Malformed(String),
    /// The key is missing or invalid.
    #[error("invalid provider key: {0}")]
    Unauthorized(String),
    /// The provider rejected the request.
    #[error("the provider rejected the request: {0}")]
    Rejected(String),
    /// The provider failed permanently.
    #[error("the provider failed: {0}")]
    Failed(String),
    /// The script has no response for the request.
    #[error("no scripted response: {0}")]
    Script(String),
}

impl ProviderError {
    /// Returns `true` if a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::Unavailable(_) | Self::Connection(_) => true,
            Self::TimedOut(_) | Self::Truncated | Self::Malformed(_) => true,
            Self::Unauthorized(_) | Self::Rejected(_) | Self::Failed(_) | Self::Script(_) => false,
        }
    }

    /// Returns the kind for events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Throttled { .. } => "throttled",
            Self::Unavailable(_) => "unavailable",
            Self::Connection(_) => "connection",
            Self::TimedOut(_) => "timed_out",
            Self::Truncated => "truncated",
            Self::Malformed(_) => "malformed",
            Self::Unauthorized(_) => "unauthorized",
            Self::Rejected(_) => "rejected",
            Self::Failed(_) => "failed",
            Self::Script(_) => "script",
        }
    }
}
