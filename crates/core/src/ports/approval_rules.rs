//! The port for approval rules.

use std::future::Future;

use super::{BoxFuture, PortError};
use crate::approval::{ApprovalRule, ApprovalRules, RuleScope};
use crate::event::EventData;

/// A session's source of approval rules. It is read at each request, so that a rule counts from the moment it is added until it is removed, by any
/// process.
///
/// [`ApprovalRules`] are a fixed source.
pub trait ApprovalRuleSource: Send + Sync + 'static {
    /// Returns the active rules.
    ///
    /// # Errors
    /// If the rules cannot be read. Known denials then stay active, and everything else needs an approval, even if a rule allowed it, because an
    /// unread rule may deny it.
    fn active_rules(&self) -> impl Future<Output = Result<ApprovalRules, PortError>> + Send;

    /// Returns the rules that were read before the session began, if any: their denials stay active even if the rules can never be read again.
    fn last_known_rules(&self) -> ApprovalRules {
        ApprovalRules::default()
    }

    /// Returns `true` if rules that allow the tool count for this definition of it. They do not if the definition has changed since the user
    /// accepted it; an approval is then requested.
    ///
    /// # Errors
    /// If the definition cannot be compared; an approval is then requested, too.
    fn covers_definition(&self, tool: &ToolDefinition) -> impl Future<Output = Result<bool, PortError>> + Send {
        let _ = tool;
        async { Ok(true) }
    }

    /// Remembers that the user always allows a tool with this definition.
    ///
    /// # Errors
    /// If the definition cannot be stored. The answer still counts for the session.
    fn accept_definition(&self, tool: &ToolDefinition) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = tool;
        async { Ok(()) }
    }

    /// Returns the scopes of rules that can be added, each with its project if it is one. Rules for the session need no source.
    fn writable_scopes(&self) -> Vec<(RuleScope, Option<String>)> {
        Vec::new()
    }

    /// Adds a rule that an approver created, in one of the [`writable_scopes`](Self::writable_scopes).
    ///
    /// # Errors
    /// If the rule cannot be stored. It then counts for the session.
    fn add_rule(&self, rule: &ApprovalRule) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = rule;
        async { Err("this session has no rule files".into()) }
    }
}

/// The field of `tool:pre` with the digest of the tool's definition, for external tools such as those of MCP servers.
pub const TOOL_DEFINITION: &str = "tool_definition";

/// A tool, and the digest of its definition: allows given in advance count only for the definition that they were given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// The name of the tool.
    pub tool: String,
    /// The digest of its description and input schema.
    pub digest: String,
}

impl ToolDefinition {
    pub(crate) fn from_data(data: &EventData) -> Option<Self> {
        Some(Self { digest: data.text(TOOL_DEFINITION)?.to_owned(), tool: data.text("tool_name")?.to_owned() })
    }
}

impl ApprovalRuleSource for ApprovalRules {
    async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
        Ok(self.clone())
    }
}

pub(crate) trait AnyApprovalRuleSource: Send + Sync {
    fn rules(&self) -> BoxFuture<'_, Result<ApprovalRules, PortError>>;
    fn covers<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<bool, PortError>>;
    fn accept<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), PortError>>;
    fn scopes(&self) -> Vec<(RuleScope, Option<String>)>;
    fn add<'a>(&'a self, rule: &'a ApprovalRule) -> BoxFuture<'a, Result<(), PortError>>;
}

impl<T: ApprovalRuleSource> AnyApprovalRuleSource for T {
    fn rules(&self) -> BoxFuture<'_, Result<ApprovalRules, PortError>> {
        // Inside a future, so that an early panic is caught, too.
        Box::pin(async move { self.active_rules().await })
    }

    fn covers<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<bool, PortError>> {
        Box::pin(async move { self.covers_definition(tool).await })
    }

    fn accept<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.accept_definition(tool).await })
    }

    fn scopes(&self) -> Vec<(RuleScope, Option<String>)> {
        self.writable_scopes()
    }

    fn add<'a>(&'a self, rule: &'a ApprovalRule) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.add_rule(rule).await })
    }
}
