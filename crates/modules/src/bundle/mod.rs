//! Bundles: what hooks a session has, in a YAML file.

mod entry;
mod error;
mod load;
mod register;

pub use entry::{HookEntry, HookKind, OneOrMany};
pub use error::BundleError;
pub use load::{Loaded, Placed, load};

use std::collections::BTreeMap;
use std::path::Path;

use amplifier_core::{Map, OverBudget, SessionConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

/// What stands in a bundle.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bundle {
    /// Other bundles, relative to this one. Their hooks come before those of this one.
    pub includes: Vec<Spanned<String>>,
    /// Settings of the session.
    pub session: SessionSettings,
    /// The hooks, in the order in which they are registered.
    pub hooks: Vec<Spanned<HookEntry>>,
    /// What the hooks should do, for `amplifier hooks test`.
    pub tests: Vec<Spanned<Case>>,
}

/// Settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// The longest injection, in characters.
    pub injection_size_limit: Option<usize>,
    /// How many tokens hooks may inject in one turn.
    pub injection_budget_per_turn: Option<usize>,
    /// What happens beyond that: `warn`, `drop` or `truncate`.
    #[schemars(with = "Option<String>")]
    pub over_budget: Option<OverBudget>,
}

/// An event, and what the hooks of the bundle should make of it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The event.
    pub event: String,
    /// Its data.
    #[serde(default)]
    pub data: Map,
    /// What should come of it.
    pub expect: Expected,
}

/// What should come of an event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// The decision: `continue`, `modify`, `inject_context`, `ask_user` or `deny`.
    pub decision: Option<String>,
    /// The hook that denies or asks.
    pub by: Option<String>,
    /// A part of the reason, of the question, or of what is injected.
    pub says: Option<String>,
    /// Fields of the data afterwards, by JSON Pointer.
    pub data: BTreeMap<String, Value>,
}

impl SessionSettings {
    /// Puts them in the place of what a session would have otherwise.
    pub fn apply(&self, config: &mut SessionConfig) {
        config.injection_size_limit = self.injection_size_limit.or(config.injection_size_limit);
        config.injection_budget_per_turn = self.injection_budget_per_turn.or(config.injection_budget_per_turn);
        config.over_budget = self.over_budget.unwrap_or(config.over_budget);
    }
}

impl Bundle {
    /// Reads a bundle from text. `file` is named in errors.
    ///
    /// # Errors
    /// If it is no YAML, or not what a bundle is made of: with the place, and a suggestion where there is one.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BundleError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let bundle: Self = serde_saphyr::from_str(text).map_err(|error| BundleError::yaml(&error, text, file))?;
        for entry in &bundle.hooks {
            if let Err(problem) = entry.value.kind() {
                return Err(BundleError::at(entry.referenced, problem, text, file));
            }
        }
        Ok(bundle)
    }
}
