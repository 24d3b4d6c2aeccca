//! What a person has answered in advance.

use std::future::Future;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::{BoxFuture, PortError};
use crate::event::EventData;
use crate::result::DefaultDecision;
use crate::wildcard;

/// Where a session finds the person's standing answers. It is looked there whenever a hook asks, so that an answer counts from when it is
/// given until it is taken back, whoever does that and wherever.
///
/// [`ApprovalRules`] are a source that never changes.
pub trait RuleSource: Send + Sync + 'static {
    /// The rules as they are now.
    ///
    /// # Errors
    /// If they cannot be read. What they denied before stays denied then. Everything else is asked, whatever was allowed in advance, because
    /// a no that nobody has read may stand there; and where nobody answers, that is a no.
    fn in_force(&self) -> impl Future<Output = Result<ApprovalRules, PortError>> + Send;

    /// What was read before the session began, if anything was: what it denies stays denied, also if they can never be read again.
    fn read_before(&self) -> ApprovalRules {
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

impl RuleSource for ApprovalRules {
    async fn in_force(&self) -> Result<ApprovalRules, PortError> {
        Ok(self.clone())
    }
}

pub(crate) trait AnyRuleSource: Send + Sync {
    fn rules(&self) -> BoxFuture<'_, Result<ApprovalRules, PortError>>;
    fn covers<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<bool, PortError>>;
    fn accept<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), PortError>>;
}

impl<T: RuleSource> AnyRuleSource for T {
    fn rules(&self) -> BoxFuture<'_, Result<ApprovalRules, PortError>> {
        // Within a future, also if it panics before it has one.
        Box::pin(async move { self.in_force().await })
    }

    fn covers<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<bool, PortError>> {
        Box::pin(async move { self.covers_definition(tool).await })
    }

    fn accept<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.accept_definition(tool).await })
    }
}

/// The person's own standing answers, from a file that the person owns.
///
/// Each rule is `"<hook>:<pattern>": "allow"` or `"deny"`; the pattern is compared with the whole prompt, and `*` stands
/// for any text. Where several match, deny wins.
///
/// ```
/// let rules = amplifier_core::ApprovalRules::from_json(
///     r#"{ "production-guard:Allow write to staging/*": "allow", "cost-control:*": "deny" }"#,
/// )?;
/// # Ok::<(), amplifier_core::InvalidRules>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    // A list: a rule that stands twice in the file, once with each answer, counts as both, so that deny wins.
    rules: Vec<(String, DefaultDecision)>,
}

impl<'de> Deserialize<'de> for ApprovalRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rules;

        impl<'de> Visitor<'de> for Rules {
            type Value = ApprovalRules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ApprovalRules, A::Error> {
                let mut rules = Vec::new();
                while let Some((rule, decision)) = map.next_entry::<String, _>()? {
                    // A `*` in the place of the hook would look like "every hook" and match none.
                    if rule.split_once(':').is_none_or(|(hook, _)| hook.is_empty() || hook.contains('*')) {
                        return Err(A::Error::custom(format!("the rule `{rule}` names no hook")));
                    }
                    rules.push((rule, decision));
                }
                Ok(ApprovalRules { rules })
            }
        }

        deserializer.deserialize_map(Rules)
    }
}

/// Rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRules {
    /// The file cannot be read.
    #[error("the approval rules `{}` cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no set of rules.
    #[error("the approval rules are not of the form {{\"<hook>:<pattern>\": \"allow\" or \"deny\"}}: {0}")]
    Form(#[from] serde_json::Error),
}

impl ApprovalRules {
    /// Reads rules from JSON.
    ///
    /// # Errors
    /// If the text is no set of rules; nothing of it is used then.
    pub fn from_json(text: &str) -> Result<Self, InvalidRules> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads rules from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is no set of rules.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, InvalidRules> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        Self::from_json(&text.map_err(|source| InvalidRules::Io { path: path.to_owned(), source })?)
    }

    /// These and others. Where both answer a question, deny wins.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.rules.extend(others.rules);
        self
    }

    /// What they answer to a question of a hook, if they do.
    pub(crate) fn answer(&self, hook: &str, prompt: &str) -> Option<DefaultDecision> {
        // The hook is compared letter by letter: a `*` must not let one hook's rule speak for another.
        let applies = |rule: &str| {
            let pattern = rule.strip_prefix(hook).and_then(|rest| rest.strip_prefix(':'));
            pattern.is_some_and(|pattern| wildcard::matches(pattern, prompt))
        };
        let decisions = || self.rules.iter().filter(|(rule, _)| applies(rule)).map(|(_, decision)| *decision);
        decisions().find(|decision| *decision == DefaultDecision::Deny).or_else(|| decisions().next())
    }

    /// What they deny.
    pub(crate) fn denials(&self) -> Self {
        let denials = self.rules.iter().filter(|(_, decision)| *decision == DefaultDecision::Deny);
        Self { rules: denials.cloned().collect() }
    }
}
