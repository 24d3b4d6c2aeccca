//! Models, behind one small trait.

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

/// A model that can be asked.
pub trait Provider: Send + Sync + 'static {
    /// What it is called in events: `anthropic`, `openai`, `scripted`.
    fn name(&self) -> &str;

    /// The model.
    fn model(&self) -> &str;

    /// How many tokens it can read at once.
    fn context_limit(&self) -> usize;

    /// Sends a request, and gives the pieces of the answer as they come. The last piece is [`Chunk::End`]; an answer without one is
    /// truncated. After an error nothing more comes.
    ///
    /// # Cancel safety
    /// Dropping the stream ends the call.
    fn answer(&self, request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>>;
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The conversation, system messages included.
    pub messages: Vec<Message>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// Parameters of the call: `temperature`, `max_tokens`, `top_p`, …
    pub parameters: Map,
    /// The tag in which what hooks say is sent; without one, a provider behind a network uses a tag of its own.
    pub tag: Option<ContextTag>,
}

/// A tool, as a model is told about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// More of the text.
    Text(String),
    /// More of the reasoning.
    Thinking(String),
    /// A whole tool call.
    ToolCall(ToolCall),
    /// The answer is complete.
    End {
        /// Why the model stopped.
        stop: StopReason,
        /// Tokens used.
        usage: TokenUsage,
    },
}

words! {
    /// Why a model stopped.
    pub enum StopReason("stop reason") {
        /// It had said what it had to say.
        EndTurn = "end_turn",
        /// It wants tools to be used.
        ToolUse = "tool_use",
        /// It said as much as it may.
        MaxTokens = "max_tokens",
        /// It refused to answer.
        Refusal = "refusal",
    }
}

/// Tokens used by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// What the model read.
    pub input_tokens: u64,
    /// What it wrote.
    pub output_tokens: u64,
}

/// Why a model gave no answer. Messages never contain a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// It asked to slow down.
    #[error("the provider asked to slow down: {message}")]
    Throttled {
        /// What it said.
        message: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// It cannot answer at the moment.
    #[error("the provider cannot answer at the moment: {0}")]
    Unavailable(String),
    /// It could not be reached, or the connection was cut.
    #[error("the connection to the provider failed: {0}")]
    Connection(String),
    /// It took too long.
    #[error("the provider gave no answer within {0:?}")]
    TimedOut(Duration),
    /// The answer ended before it was complete.
    #[error("the answer ended before it was complete")]
    Truncated,
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// The key is missing or wrong.
    #[error("the provider does not accept the key: {0}")]
    Unauthorized(String),
    /// It does not take the request.
    #[error("the provider does not take the request: {0}")]
    Rejected(String),
    /// It is broken, and will be the next time.
    #[error("the provider failed: {0}")]
    Failed(String),
    /// The script of a scripted provider has no answer for this.
    #[error("the script does not go on: {0}")]
    Script(String),
}

impl ProviderError {
    /// Whether another try may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::Unavailable(_) | Self::Connection(_) => true,
            Self::TimedOut(_) | Self::Truncated | Self::Malformed(_) => true,
            Self::Unauthorized(_) | Self::Rejected(_) | Self::Failed(_) | Self::Script(_) => false,
        }
    }

    /// The word for it in events.
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
