//! Counting tokens: an estimate, corrected by what providers report.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::{EstimatedTokens, Message, TokenCounter};

use serde_json::json;

use crate::provider::ModelRequest;

#[cfg(feature = "tokenizer")]
mod tokenizer;

#[cfg(feature = "tokenizer")]
pub use tokenizer::Tokenizer;

/// Tokens of a message beside its text, in the known formats.
const PER_MESSAGE: usize = 4;

/// Estimates the tokens that a model reads with these messages.
pub fn count_messages(messages: &[Message]) -> usize {
    sum(messages, |text| EstimatedTokens.count(text))
}

/// Returns the most tokens that the messages can have: a token has at least one byte.
pub(crate) fn token_upper_bound(messages: &[Message]) -> usize {
    sum(messages, str::len)
}

fn sum(messages: &[Message], count: impl Fn(&str) -> usize) -> usize {
    let message = |message: &Message| {
        let calls = message.tool_calls.iter();
        let calls = calls.map(|call| count(&call.name) + count(&call.input.to_string()) + PER_MESSAGE);
        count(&message.content) + calls.sum::<usize>() + PER_MESSAGE
    };
    messages.iter().map(message).sum()
}

/// The tokens of a session's messages. The counts grow if its provider reports more than was counted.
pub(crate) struct TokenEstimate {
    counter: Arc<dyn TokenCounter>,
    /// Reported tokens per thousand counted ones.
    per_thousand: AtomicUsize,
}

const EXACT: usize = 1000;

/// The largest correction. A report beyond it is taken for a mistake of the provider, and must not shorten the conversation with every call.
const LARGEST: usize = 4 * EXACT;

impl TokenEstimate {
    pub(crate) fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, per_thousand: EXACT.into() }
    }

    /// An estimate by the same counter, without the corrections.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.counter.clone())
    }

    /// Returns about how many tokens the messages have.
    pub(crate) fn count(&self, messages: &[Message]) -> usize {
        let per_thousand = self.per_thousand.load(Ordering::Relaxed);
        self.counted(messages).saturating_mul(per_thousand).div_ceil(EXACT)
    }

    /// Returns the tokens of a request before any correction, its tools included.
    pub(crate) fn of_request(&self, request: &ModelRequest) -> usize {
        let tools = request.tools.iter().map(|tool| self.counter.count(&json!(tool).to_string()));
        self.counted(&request.messages) + tools.sum::<usize>()
    }

    /// Compares the count of a request to what the provider reports.
    pub(crate) fn correct(&self, counted: usize, reported: u64) {
        let reported = usize::try_from(reported).unwrap_or(usize::MAX);
        let per_thousand = reported.saturating_mul(EXACT).checked_div(counted).unwrap_or(EXACT);
        // Never below the count: a conversation that is shortened early goes on, one that outgrew the model may not.
        self.per_thousand.store(per_thousand.clamp(EXACT, LARGEST), Ordering::Relaxed);
    }

    fn counted(&self, messages: &[Message]) -> usize {
        sum(messages, |text| self.counter.count(text))
    }
}
