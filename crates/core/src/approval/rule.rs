//! An approval rule: an answer given in advance.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Actor;
use crate::event::EventName;
use crate::result::DefaultDecision;
use crate::wildcard;
use crate::words::words;

/// An answer given in advance: for a session, a project or a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// The sessions that the rule is for.
    pub scope: RuleScope,
    /// The session, if the scope is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The folder, if the scope is a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The hook whose requests the rule answers.
    pub hook: String,
    /// The event of the request that the answer was given to. The pattern is then its exact prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub event: Option<EventName>,
    /// The prompts; `*` stands for any text. Empty if the rule is about an operation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    /// The operation, by the name that its description has: `write src/**`. It is compared letter by letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The answer.
    pub decision: DefaultDecision,
    /// The user who gave it, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The time at which it was given, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Timestamp>,
}

words! {
    /// The sessions that a rule is for.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum RuleScope("scope of a rule") {
        /// One session, until it ends.
        Session = "session",
        /// All sessions in a folder.
        Project = "project",
        /// All sessions of the user.
        User = "user",
    }
}

/// A rule that would answer other requests than its text suggests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRule {
    /// A rule is written `<hook>:<pattern>`, so the name of the hook ends at the first colon.
    #[error("invalid hook name `{0}` in a rule; expected a name without `*` and `:`")]
    Hook(String),
    /// The pattern is empty.
    #[error("the pattern is empty; `*` stands for any text")]
    Pattern,
    /// The operation is empty, or the rule has a pattern, too.
    #[error("a rule is about an operation or about prompts; name exactly one")]
    Operation,
}

impl ApprovalRule {
    /// A rule for all sessions of the user.
    pub fn new(hook: impl Into<String>, pattern: impl Into<String>, decision: DefaultDecision) -> Self {
        Self {
            scope: RuleScope::User,
            session: None,
            project: None,
            hook: hook.into(),
            event: None,
            pattern: pattern.into(),
            operation: None,
            decision,
            by: None,
            created_at: None,
        }
    }

    /// A rule about an operation, for all sessions of the user.
    pub fn for_operation(hook: impl Into<String>, operation: impl Into<String>, decision: DefaultDecision) -> Self {
        Self { operation: Some(operation.into()), ..Self::new(hook, "", decision) }
    }

    /// Checks the hook's name and the pattern.
    ///
    /// # Errors
    /// If the hook's name or the pattern is invalid.
    pub fn check(&self) -> Result<(), InvalidRule> {
        match &self.operation {
            _ if self.hook.is_empty() || self.hook.contains(['*', ':']) => Err(InvalidRule::Hook(self.hook.clone())),
            Some(operation) if operation.is_empty() || !self.pattern.is_empty() => Err(InvalidRule::Operation),
            None if self.pattern.is_empty() => Err(InvalidRule::Pattern),
            _ => Ok(()),
        }
    }

    /// Returns an identifier of the scope, the requests and the answer. It does not depend on the user who gave the rule.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        let place = self.session.as_deref().or(self.project.as_deref()).unwrap_or_default();
        let event = self.event.as_ref().map_or("", EventName::as_str);
        for part in [place, &self.hook, event, &self.pattern, self.decision.as_str()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        if let Some(operation) = &self.operation {
            hash.update((operation.len() as u64).to_be_bytes());
            hash.update(operation);
        }
        let digest: String = hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{digest}", self.scope)
    }

    /// Returns the rule in one line: `<hook>:<pattern>` as files have it, or the operation after the hook.
    pub fn file_key(&self) -> String {
        match &self.operation {
            Some(operation) => format!("{} {operation}", self.hook),
            None => format!("{}:{}", self.hook, self.pattern),
        }
    }

    /// Returns a sentence about the requests that the rule answers.
    pub fn explanation(&self) -> String {
        let Self { hook, pattern, .. } = self;
        let place = match (&self.scope, &self.project) {
            (RuleScope::Session, _) => "until this session ends".to_owned(),
            (RuleScope::Project, Some(project)) => format!("in every session in `{project}`"),
            _ => "in every session".to_owned(),
        };
        let allows = self.decision == DefaultDecision::Allow;
        let word = if allows { "allowed" } else { "denied" };
        if let Some(event) = &self.event {
            return format!(
                "Requests of hook `{hook}` at `{event}` with the prompt \"{pattern}\" are {word} without an approver, {place}."
            );
        }
        let unless = if allows { ", unless another rule denies them" } else { "" };
        if let Some(operation) = &self.operation {
            return format!(
                "Operations of the kind `{operation}` are {word} without an approver when hook `{hook}` asks, {place}{unless}."
            );
        }
        match pattern.as_str() {
            "*" => format!("All requests of hook `{hook}` are {word} without an approver, {place}{unless}."),
            pattern if pattern.contains('*') => format!(
                "Requests of hook `{hook}` with a prompt of the form \"{pattern}\", where `*` is any text, are {word} without an \
                 approver, {place}{unless}."
            ),
            pattern => format!(
                "Requests of hook `{hook}` with the prompt \"{pattern}\" are {word} without an approver, {place}{unless}."
            ),
        }
    }

    /// Returns `true` if the rule answers a request of the hook. Names are compared letter by letter: a `*` must not let one hook's rule
    /// answer for another.
    pub(super) fn applies(&self, hook: &str, prompt: &str) -> bool {
        if self.operation.is_some() {
            return false;
        }
        let matches = |pattern: &str| match self.event {
            Some(_) => pattern == prompt,
            None => wildcard::matches(pattern, prompt),
        };
        if self.hook == hook {
            return matches(&self.pattern);
        }
        // A hook name with a colon: the rule's text fits either hook.
        hook.contains(':')
            && self.file_key().strip_prefix(hook).and_then(|rest| rest.strip_prefix(':')).is_some_and(matches)
    }
}
