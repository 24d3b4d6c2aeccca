//! Token counts from a real tokenizer.

use std::sync::LazyLock;

use amplifier_core::{Message, TokenCounter};
use tiktoken_rs::CoreBPE;

/// OpenAI's newest vocabulary, loaded on first use. For models of other providers, the count is an estimate that is close enough for limits.
static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| {
    tiktoken_rs::o200k_base()
        .inspect_err(|error| tracing::error!(%error, "the tokenizer cannot be loaded; tokens are estimated"))
        .ok()
});

/// The overhead of a message beside its text, in tokens.
const PER_MESSAGE: usize = 4;

/// Counts tokens with OpenAI's `o200k_base`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokenizer;

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> usize {
        match &*VOCABULARY {
            Some(vocabulary) => pieces(text).map(|piece| vocabulary.encode_ordinary(piece).len()).sum(),
            None => amplifier_core::EstimatedTokens.count(text),
        }
    }
}

/// Splits the text, because the tokenizer fails on long runs of the same kind of character. Each split adds one token at most.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

const PIECE_BYTES: usize = 16 * 1024;

/// Returns the number of tokens in these messages.
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

/// Returns an upper bound of the number of tokens, without the tokenizer: a token has at least one byte.
pub(crate) fn token_upper_bound(messages: &[Message]) -> usize {
    let count = |message: &Message| {
        let calls = message.tool_calls.iter();
        let calls = calls.map(|call| call.name.len() + call.input.to_string().len() + PER_MESSAGE);
        message.content.len() + calls.sum::<usize>() + PER_MESSAGE
    };
    messages.iter().map(count).sum()
}
