//! Session settings of a bundle: limits, orchestrator, audit log, tools and models.

use std::cmp::Ordering;
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
#[non_exhaustive]
pub struct SessionSettings {
    /// Maximum size of an injection, in characters.
    pub injection_size_limit: Option<usize>,
    /// Maximum number of tokens that hooks may inject in one turn.
    pub injection_budget_per_turn: Option<usize>,
    /// Treatment of injections over the budget.
    pub over_budget: Option<OverBudget>,
    /// Delivery of responses.
    pub orchestrator: Option<Orchestrator>,
    /// Durability of the audit log.
    #[schemars(with = "Option<String>", extend("enum" = ["async", "group", "record"]))]
    pub audit: Option<Durability>,
    /// Place where approval requests are answered.
    #[serde(deserialize_with = "approval_channel")]
    #[schemars(with = "Option<String>", extend("enum" = ["terminal", "server"]))]
    pub approvals: Option<ApprovalChannel>,
    /// Approval mode.
    pub mode: Option<ApprovalMode>,
    /// Modes that cannot be used: `ask`, `accept-edits`.
    #[serde(deserialize_with = "forbidden_modes")]
    #[schemars(with = "Vec<String>", extend("items" = { "type": "string", "enum": ["ask", "accept-edits"] }))]
    pub forbid_modes: Vec<ApprovalMode>,
    /// Operations that `confirm` requests approval for.
    pub confirm: Option<Confirm>,
    /// Seconds to wait for an answer before an approval request is denied.
    #[serde(deserialize_with = "positive_seconds")]
    #[schemars(range(min = 0))]
    pub approval_timeout: Option<f64>,
    /// System prompt.
    pub system: Option<String>,
}

/// Reads seconds above zero. Checked during parsing, so that the error has a position.
fn positive_seconds<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    let seconds = Option::<f64>::deserialize(reader)?;
    if let Some(seconds) = seconds.filter(|seconds| !(seconds.is_finite() && *seconds > 0.0)) {
        return Err(D::Error::custom(format!("invalid `approval_timeout` `{seconds}`: expected seconds above zero")));
    }
    Ok(seconds)
}

/// Reads the place for answers. The dialogs of agents record nothing, so only the user's own configuration file can choose them.
fn approval_channel<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<ApprovalChannel>, D::Error> {
    let channel = Option::<ApprovalChannel>::deserialize(reader)?;
    if channel == Some(ApprovalChannel::Client) {
        return Err(D::Error::custom("invalid `approvals` `client`: only the configuration file can set it"));
    }
    Ok(channel)
}

/// Reads modes that can be forbidden. Without `plan` and `deny`, another bundle could take the stricter mode from the user.
fn forbidden_modes<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<ApprovalMode>, D::Error> {
    let modes = Vec::deserialize(reader)?;
    ApprovalMode::check_forbidden(&modes).map_err(D::Error::custom)?;
    Ok(modes)
}

words! {
    /// Delivery of responses.
    #[derive(JsonSchema)]
    pub enum Orchestrator("orchestrator") {
        /// Complete responses.
        Basic = "loop-basic",
        /// Responses in pieces.
        Streaming = "loop-streaming",
    }
}

words! {
    /// Place where approval requests are answered.
    #[derive(PartialOrd, Ord, JsonSchema)]
    pub enum ApprovalChannel("approval channel") {
        /// The terminal; for guarded agents, their own dialog.
        Client = "client",
        /// The terminal.
        Terminal = "terminal",
        /// The terminal and the console.
        Server = "server",
    }
}

words! {
    /// Approval mode.
    #[derive(JsonSchema)]
    pub enum ApprovalMode("approval mode") {
        /// Ask the user.
        Ask = "ask",
        /// Ask the user, except for writes in the workspace that git can undo.
        AcceptEdits = "accept-edits",
        /// Deny all that is not proven to only read.
        Plan = "plan",
        /// Deny all approval requests.
        Deny = "deny",
    }
}

impl ApprovalMode {
    fn strictness(self) -> u8 {
        match self {
            Self::AcceptEdits => 0,
            Self::Ask => 1,
            Self::Plan | Self::Deny => 2,
        }
    }

    /// Checks modes to forbid.
    ///
    /// # Errors
    /// If one of them cannot be forbidden; the text is the reason.
    pub fn check_forbidden(modes: &[Self]) -> Result<(), String> {
        match modes.iter().find(|mode| matches!(mode, Self::Plan | Self::Deny)) {
            Some(mode) => Err(format!("mode `{mode}` cannot be forbidden; expected `ask` or `accept-edits`")),
            None => Ok(()),
        }
    }
}

/// The greater mode is the stricter one. `plan` and `deny` are not comparable: a rule can allow an operation in `deny`, and `plan` still asks.
impl PartialOrd for ApprovalMode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let order = self.strictness().cmp(&other.strictness());
        (self == other || order != Ordering::Equal).then_some(order)
    }
}

words! {
    /// Operations that the built-in hook `confirm` requests approval for. Each value includes those before it.
    #[derive(PartialOrd, Ord, JsonSchema)]
    pub enum Confirm("value of `confirm`") {
        /// None.
        Off = "off",
        /// Commands that are not proven to only read, and tools of MCP servers.
        Commands = "commands",
        /// Also writes to files.
        Writes = "writes",
        /// Also commands that only read.
        All = "all",
    }
}

/// Tools of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Tools {
    /// Names of the only allowed tools; all by default.
    pub only: Option<Vec<String>>,
    /// MCP servers by name, whose tools are added.
    pub mcp: BTreeMap<String, McpServer>,
}

/// An MCP server that is started with the session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The program; a path is relative to the folder of the file.
    pub command: String,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Additional environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl McpServer {
    /// Resolves a relative path of the program from a folder. A name without a path is found in `PATH`.
    #[must_use]
    pub fn resolve_from(mut self, folder: &Path) -> Self {
        if self.command.contains('/') {
            // Removes `.` components.
            let program: PathBuf = folder.join(&self.command).components().collect();
            self.command = program.to_string_lossy().into_owned();
        }
        self
    }
}

/// An available model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// Name for `--provider`; that of the provider by default.
    pub name: Option<String>,
    /// Provider.
    pub provider: ProviderKind,
    /// Model name.
    pub model: Option<String>,
    /// Base address, if not the provider's default.
    pub base_url: Option<String>,
    /// File with the responses of `scripted`, relative to the bundle.
    pub script: Option<String>,
}

words! {
    /// Provider of a model.
    #[derive(JsonSchema)]
    pub enum ProviderKind("provider") {
        /// Anthropic.
        Anthropic = "anthropic",
        /// OpenAI, or a server with a compatible API.
        OpenAi = "openai",
        /// Google.
        Gemini = "gemini",
        /// Responses from a file.
        Scripted = "scripted",
    }
}

impl ProviderEntry {
    /// Returns the name, given or that of the provider.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.provider.as_str())
    }
}

impl SessionSettings {
    /// Applies the limits to the configuration of a session.
    pub fn apply(&self, config: &mut SessionConfig) {
        config.injection_size_limit = self.injection_size_limit.or(config.injection_size_limit);
        config.injection_budget_per_turn = self.injection_budget_per_turn.or(config.injection_budget_per_turn);
        config.over_budget = self.over_budget.unwrap_or(config.over_budget);
    }

    /// Overwrites settings with those of another file.
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
        take(&mut self.confirm, over.confirm);
        take(&mut self.mode, over.mode);
        self.forbid_modes.extend(over.forbid_modes);
        take(&mut self.approval_timeout, over.approval_timeout);
        take(&mut self.system, over.system);
    }
}

impl Tools {
    /// Adds the servers of another bundle, and removes tools that it does not allow.
    pub(super) fn join(&mut self, other: Self) {
        self.only = match (self.only.take(), other.only) {
            (Some(mine), Some(other)) => Some(mine.into_iter().filter(|tool| other.contains(tool)).collect()),
            (mine, other) => mine.or(other),
        };
        self.mcp.extend(other.mcp);
    }
}
