//! Counting tokens with a real tokenizer.

use std::sync::LazyLock;

use amplifier_core::{Message, TokenCounter};
use tiktoken_rs::CoreBPE;

/// OpenAI's newest vocabulary. It needs a moment when it is first used. For other makers' models the count is an estimate, which is close
/// enough to keep a conversation within limits.
static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| {
    tiktoken_rs::o200k_base()
        .inspect_err(|error| tracing::error!(%error, "the tokenizer cannot be loaded; tokens are estimated"))
        .ok()
});

/// What a message costs beside its text, in the formats that are known.
const PER_MESSAGE: usize = 4;

/// Counts tokens with OpenAI's `o200k_base`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokenizer;

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> usize {
        match &*VOCABULARY {
            Some(vocabulary) => vocabulary.encode_ordinary(text).len(),
            None => amplifier_core::EstimatedTokens.count(text),
        }
    }
}

/// How many tokens a model reads with these messages.
pub fn count_messages(messages: &[Message]) -> usize {
    let count = |message: &Message| {
        let calls = message
            .tool_calls
            .iter()
            .map(|call| Tokenizer.count(&call.name) + Tokenizer.count(&call.input.to_string()) + PER_MESSAGE);
        Tokenizer.count(&message.content) + calls.sum::<usize>() + PER_MESSAGE
    };
    messages.iter().map(count).sum()
}
