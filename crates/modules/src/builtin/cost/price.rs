//! Token usage and prices.

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Price of a model, per million tokens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// Name of the model; `*` matches any text.
    model: String,
    /// Price of a million input tokens.
    input: f64,
    /// Price of a million output tokens.
    output: f64,
    /// Price of a million input tokens from a cache. Default: the price of `input`.
    cached: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Prices(Vec<(GlobMatcher, Price)>);

impl Prices {
    pub(super) fn new(prices: Vec<Price>) -> Result<Self, String> {
        let check = |(at, price): (usize, Price)| {
            let position = format!("`prices[{at}]`");
            let amounts = [("input", Some(price.input)), ("output", Some(price.output)), ("cached", price.cached)];
            let wrong = amounts.into_iter().find(|(_, amount)| amount.is_some_and(|a| !a.is_finite() || a < 0.0));
            if let Some((name, _)) = wrong {
                return Err(format!("{position}: invalid price in `{name}`; give 0 or more, for a million tokens"));
            }
            let glob = Glob::new(&price.model);
            let glob = glob.map_err(|error| format!("{position}: invalid pattern in `model`: {}", error.kind()))?;
            Ok((glob.compile_matcher(), price))
        };
        prices.into_iter().enumerate().map(check).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn for_model(&self, model: &str) -> Option<&Price> {
        self.0.iter().find(|(glob, _)| glob.is_match(model)).map(|(_, price)| price)
    }

    pub(super) fn are_given(&self) -> bool {
        !self.0.is_empty()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct TokenUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Input tokens that came from a cache.
    #[serde(default)]
    pub(super) cached_tokens: u64,
}

impl TokenUsage {
    /// Returns the usage of a call; `None` if the provider reported none, or zero.
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

/// Returns an amount with cents, or with more digits for amounts below one.
pub(super) fn amount(money: f64, currency: &str) -> String {
    if money == 0.0 || money >= 1.0 { format!("{money:.2} {currency}") } else { format!("{money:.4} {currency}") }
}
