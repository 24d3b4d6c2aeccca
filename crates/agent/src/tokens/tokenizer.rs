//! The tokenizer of OpenAI's models.

use std::sync::LazyLock;

use amplifier_core::{EstimatedTokens, TokenCounter};
use tiktoken_rs::CoreBPE;

// Loading takes a moment, so it waits for the first use.
static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| {
    tiktoken_rs::o200k_base()
        .inspect_err(|error| tracing::error!(%error, "the tokenizer cannot be loaded; tokens are estimated"))
        .ok()
});

/// Counts tokens with OpenAI's `o200k_base`. For models of other makers the count is an estimate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokenizer;

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> usize {
        match &*VOCABULARY {
            Some(vocabulary) => pieces(text).map(|piece| vocabulary.encode_ordinary(piece).len()).sum(),
            None => EstimatedTokens.count(text),
        }
    }
}

/// The vocabulary fails on long runs of one kind of character. Short pieces have none; each end of a piece adds one token at most.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

const PIECE: usize = 16 * 1024;
