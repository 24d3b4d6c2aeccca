//! What a person has answered in advance.

use std::future::Future;

use super::{BoxFuture, PortError};
use crate::approval::ApprovalRules;
use crate::event::EventData;

/// Where a session finds the person's standing answers. It is looked there whenever a hook asks, so that an answer counts from when it is
/// given until it is taken back, whoever does that and wherever.
///
/// [`ApprovalRules`] are a source that never changes.
pub trait ApprovalRuleSource: Send + Sync + 'static {
    /// The rules as they are now.
    ///
    /// # Errors
    /// If they cannot be read. What they denied before stays denied then. Everything else is asked, whatever was allowed in advance, because
    /// a no that nobody has read may stand there; and where nobody answers, that is a no.
    fn active_rules(&self) -> impl Future<Output = Result<ApprovalRules, PortError>> + Send;

    /// What was read before the session began, if anything was: what it denies stays denied, also if they can never be read again.
    fn last_known_rules(&self) -> ApprovalRules {
        ApprovalRules::default()
    }

    /// `true` if rules that allow something count for a tool that is defined like this. They do not if the definition is not the one that the
    /// person knew; the person is asked then.
    ///
    /// # Errors
    /// If that cannot be said. The person is asked then, too.
    fn covers_definition(&self, tool: &ToolDefinition) -> impl Future<Output = Result<bool, PortError>> + Send {
        let _ = tool;
        async { Ok(true) }
    }

    /// Takes note that the person always allows a tool that is defined like this.
    ///
    /// # Errors
    /// If that cannot be kept. The answer counts for the session all the same.
    fn accept_definition(&self, tool: &ToolDefinition) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = tool;
        async { Ok(()) }
    }
}

/// The field of `tool:pre` with the digest of the tool's definition, for tools that are defined elsewhere, as those of MCP servers are.
pub const TOOL_DEFINITION: &str = "tool_definition";

/// A tool, and the digest of what its maker says about it: allows given in advance count only for the definition that they were given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// The name of the tool.
    pub tool: String,
    /// The digest of its description and of the schema of its input.
    pub digest: String,
}

impl ToolDefinition {
    /// The definition that the data of an event names.
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
}

impl<T: ApprovalRuleSource> AnyApprovalRuleSource for T {
    fn rules(&self) -> BoxFuture<'_, Result<ApprovalRules, PortError>> {
        // Within a future, also if it panics before it has one.
        Box::pin(async move { self.active_rules().await })
    }

    fn covers<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<bool, PortError>> {
        Box::pin(async move { self.covers_definition(tool).await })
    }

    fn accept<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.accept_definition(tool).await })
    }
}
