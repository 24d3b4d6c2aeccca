//! Approval rules: answers given in advance.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
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
    /// The prompts; `*` stands for any text.
    pub pattern: String,
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
            decision,
            by: None,
            created_at: None,
        }
    }

    /// Checks the hook's name and the pattern.
    ///
    /// # Errors
    /// If the hook's name or the pattern is invalid.
    pub fn check(&self) -> Result<(), InvalidRule> {
        match () {
            () if self.hook.is_empty() || self.hook.contains(['*', ':']) => Err(InvalidRule::Hook(self.hook.clone())),
            () if self.pattern.is_empty() => Err(InvalidRule::Pattern),
            () => Ok(()),
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
        let digest: String = hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{digest}", self.scope)
    }

    /// Returns the rule as files have it: `<hook>:<pattern>`.
    pub fn file_key(&self) -> String {
        format!("{}:{}", self.hook, self.pattern)
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
    fn applies(&self, hook: &str, prompt: &str) -> bool {
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

/// Rules of a user, from a file that the user owns.
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
    // A list: a rule that is in the file with both answers counts as both, so that deny wins.
    rules: Vec<ApprovalRule>,
}

impl FromIterator<ApprovalRule> for ApprovalRules {
    fn from_iter<I: IntoIterator<Item = ApprovalRule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

impl<'de> Deserialize<'de> for ApprovalRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RulesVisitor;

        impl<'de> Visitor<'de> for RulesVisitor {
            type Value = ApprovalRules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ApprovalRules, A::Error> {
                let mut rules = Vec::new();
                while let Some((rule, decision)) = map.next_entry::<String, _>()? {
                    // A `*` instead of the hook would look like "every hook" and match none.
                    match rule.split_once(':') {
                        Some((hook, pattern)) if !hook.is_empty() && !hook.contains('*') => {
                            rules.push(ApprovalRule::new(hook, pattern, decision));
                        }
                        _ => {
                            return Err(A::Error::custom(format!(
                                "invalid rule `{rule}`: missing hook name; expected `<hook>:<pattern>`"
                            )));
                        }
                    }
                }
                Ok(ApprovalRules { rules })
            }
        }

        deserializer.deserialize_map(RulesVisitor)
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
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not a set of rules.
    #[error("the approval rules are not of the form {{\"<hook>:<pattern>\": \"allow\" or \"deny\"}}: {0}")]
    Form(#[from] serde_json::Error),
}

impl ApprovalRules {
    /// Reads rules from JSON.
    ///
    /// # Errors
    /// If the text is not a set of rules; none of it is used then.
    pub fn from_json(text: &str) -> Result<Self, InvalidRules> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads rules from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a set of rules.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, InvalidRules> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        Self::from_json(&text.map_err(|source| InvalidRules::Io { path: path.to_owned(), source })?)
    }

    /// Returns these rules and others. If both answer a request, deny wins.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.rules.extend(others.rules);
        self
    }

    pub(crate) fn decision(&self, hook: &str, prompt: &str) -> Option<DefaultDecision> {
        let decisions = || self.rules.iter().filter(|rule| rule.applies(hook, prompt)).map(|rule| rule.decision);
        decisions().find(|decision| *decision == DefaultDecision::Deny).or_else(|| decisions().next())
    }

    pub(crate) fn denials(&self) -> Self {
        self.iter().filter(|rule| rule.decision == DefaultDecision::Deny).cloned().collect()
    }

    /// Returns the rules, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &ApprovalRule> {
        self.rules.iter()
    }
}
