//! What a bundle says about the session: limits, the loop, the record, tools and models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use amplifier_audit::Durability;
use amplifier_core::{OverBudget, SessionConfig, words};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// The longest injection, in characters.
    pub injection_size_limit: Option<usize>,
    /// How many tokens hooks may inject in one turn.
    pub injection_budget_per_turn: Option<usize>,
    /// What happens beyond that.
    pub over_budget: Option<OverBudget>,
    /// How answers are told.
    pub orchestrator: Option<Orchestrator>,
    /// How safely the audit log is kept.
    #[schemars(with = "Option<String>", extend("enum" = ["async", "group", "record"]))]
    pub audit: Option<Durability>,
    /// How approvals are requested.
    pub approvals: Option<ApprovalMode>,
    /// How long a question waits for an answer, in seconds, before it is denied.
    #[serde(deserialize_with = "positive_seconds")]
    #[schemars(range(min = 0))]
    pub approval_timeout: Option<f64>,
    /// What the model is told before everything else.
    pub system: Option<String>,
}

/// Here, so that the reader knows the place.
fn positive_seconds<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    let seconds = Option::<f64>::deserialize(reader)?;
    if let Some(seconds) = seconds.filter(|seconds| !(seconds.is_finite() && *seconds > 0.0)) {
        return Err(D::Error::custom(format!("`approval_timeout` is {seconds}: give seconds, above zero")));
    }
    Ok(seconds)
}

words! {
    /// How answers are told.
    #[derive(JsonSchema)]
    pub enum Orchestrator("orchestrator") {
        /// When they are complete.
        Basic = "loop-basic",
        /// Piece by piece.
        Streaming = "loop-streaming",
    }
}

words! {
    /// How approvals are requested.
    #[derive(PartialOrd, Ord, JsonSchema)]
    pub enum ApprovalMode("approval mode") {
        /// A person is asked.
        Ask = "ask",
        /// A person is asked, at the terminal or at the server.
        Server = "server",
        /// They are refused.
        Deny = "deny",
    }
}

/// What the agent can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// The only tools that it has, by name; all of them unless given.
    pub only: Option<Vec<String>>,
    /// MCP servers whose tools it has, too, by a name for each.
    pub mcp: BTreeMap<String, McpServer>,
}

/// An MCP server that is started with the session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The program; one with a path is looked for from the folder of the file that names it.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What is added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl McpServer {
    /// The same with a program that begins at that folder, if it has a path that is not whole. A name alone is looked for where programs are.
    #[must_use]
    pub fn resolve_from(mut self, folder: &Path) -> Self {
        if self.command.contains('/') {
            // Without the dots that stand in it.
            let program: PathBuf = folder.join(&self.command).components().collect();
            self.command = program.to_string_lossy().into_owned();
        }
        self
    }
}

/// A model that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// What it is called here, for `--provider`; the word of `provider` unless given.
    pub name: Option<String>,
    /// Whose it is.
    pub provider: ProviderKind,
    /// Which.
    pub model: Option<String>,
    /// Where, if not at the usual place.
    pub base_url: Option<String>,
    /// The file that `scripted` plays, from the folder of the bundle.
    pub script: Option<String>,
}

words! {
    /// Whose a model is.
    #[derive(JsonSchema)]
    pub enum ProviderKind("provider") {
        /// Anthropic's.
        Anthropic = "anthropic",
        /// OpenAI's, or one that speaks the same way.
        OpenAi = "openai",
        /// Google's.
        Gemini = "gemini",
        /// A file.
        Scripted = "scripted",
    }
}

impl ProviderEntry {
    /// What it is called.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.provider.as_str())
    }
}

impl SessionSettings {
    /// Puts the limits in the place of what a session would have otherwise.
    pub fn apply(&self, config: &mut SessionConfig) {
        config.injection_size_limit = self.injection_size_limit.or(config.injection_size_limit);
        config.injection_budget_per_turn = self.injection_budget_per_turn.or(config.injection_budget_per_turn);
        config.over_budget = self.over_budget.unwrap_or(config.over_budget);
    }

    /// Takes over what the other one sets.
    pub(super) fn overlay(&mut self, over: Self) {
        fn take<T>(place: &mut Option<T>, over: Option<T>) {
            if over.is_some() {
                *place = over;
            }
        }
        take(&mut self.injection_size_limit, over.injection_size_limit);
        take(&mut self.injection_budget_per_turn, over.injection_budget_per_turn);
        take(&mut self.over_budget, over.over_budget);
        take(&mut self.orchestrator, over.orchestrator);
        take(&mut self.audit, over.audit);
        take(&mut self.approvals, over.approvals);
        take(&mut self.approval_timeout, over.approval_timeout);
        take(&mut self.system, over.system);
    }
}

impl Tools {
    /// Adds what another bundle says: its servers, and no tool that it does not have.
    pub(super) fn join(&mut self, other: Self) {
        self.only = match (self.only.take(), other.only) {
            (Some(mine), Some(other)) => Some(mine.into_iter().filter(|tool| other.contains(tool)).collect()),
            (mine, other) => mine.or(other),
        };
        self.mcp.extend(other.mcp);
    }
}
