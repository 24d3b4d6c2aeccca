//! Tokens, and what they cost.

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What a model costs, for a million tokens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// The model; `*` stands for any text.
    model: String,
    /// A million tokens that it reads.
    input: f64,
    /// A million tokens that it writes.
    output: f64,
    /// A million tokens that it reads from a cache; as `input` unless given.
    cached: Option<f64>,
}

/// Prices, checked.
#[derive(Debug)]
pub(super) struct Prices(Vec<(GlobMatcher, Price)>);

impl Prices {
    pub(super) fn new(prices: Vec<Price>) -> Result<Self, String> {
        let check = |(at, price): (usize, Price)| {
            let position = format!("`prices[{at}]`");
            let amounts = [("input", Some(price.input)), ("output", Some(price.output)), ("cached", price.cached)];
            let wrong = amounts.into_iter().find(|(_, amount)| amount.is_some_and(|a| !a.is_finite() || a < 0.0));
            if let Some((name, _)) = wrong {
                return Err(format!("{position}: `{name}` is no price: give 0 or more, for a million tokens"));
            }
            let glob = Glob::new(&price.model);
            let glob = glob.map_err(|error| format!("{position}: `model` is not a pattern: {}", error.kind()))?;
            Ok((glob.compile_matcher(), price))
        };
        prices.into_iter().enumerate().map(check).collect::<Result<_, _>>().map(Self)
    }

    /// The price of a model, if it is known.
    pub(super) fn for_model(&self, model: &str) -> Option<&Price> {
        self.0.iter().find(|(glob, _)| glob.is_match(model)).map(|(_, price)| price)
    }

    pub(super) fn are_given(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Tokens used, as `provider:response` tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct TokenUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Those of `input_tokens` that came from a cache.
    #[serde(default)]
    pub(super) cached_tokens: u64,
}

impl TokenUsage {
    /// What a call used. A call that used nothing is one of which nothing was told.
    pub(super) fn parse(usage: &Value) -> Option<Self> {
        Self::deserialize(usage).ok().filter(|usage| usage.tokens() > 0)
    }

    pub(super) fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
    }

    pub(super) fn cost(&self, price: &Price) -> f64 {
        let cached = self.cached_tokens.min(self.input_tokens);
        let fresh = self.input_tokens - cached;
        let cost = fresh as f64 * price.input
            + cached as f64 * price.cached.unwrap_or(price.input)
            + self.output_tokens as f64 * price.output;
        cost / 1_000_000.0
    }
}

/// An amount as people write it: with cents, or with more digits where there would be none.
pub(super) fn amount(money: f64, currency: &str) -> String {
    if money == 0.0 || money >= 1.0 { format!("{money:.2} {currency}") } else { format!("{money:.4} {currency}") }
}
