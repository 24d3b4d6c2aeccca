//! Answers to approval requests.

use serde::{Deserialize, Serialize};

use super::ChosenRule;
use crate::text::truncate_chars;

/// The option that an approver chose, and the approver's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalAnswer {
    /// The label of an option.
    pub label: String,
    /// The approver, where known. It is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The approver's reason for a denial, which the model reads: at most [`MAX_REASON_CHARS`](Self::MAX_REASON_CHARS) characters. No effect if
    /// the option allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One of the offered rules. Only an option that always allows can create one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<ChosenRule>,
}

/// The user who did something, and the channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Actor {
    /// The name that the approval system knows the user by.
    pub name: String,
    /// The channel: `terminal`, `console`, `api`, …
    pub via: String,
}

impl Actor {
    /// A user of a channel.
    pub fn new(name: impl Into<String>, via: impl Into<String>) -> Self {
        Self { name: name.into(), via: via.into() }
    }
}

impl ApprovalAnswer {
    /// An answer of a known approver.
    pub fn by(label: impl Into<String>, name: impl Into<String>, via: impl Into<String>) -> Self {
        Self { label: label.into(), by: Some(Actor::new(name, via)), reason: None, rule: None }
    }

    /// Adds the reason for a denial.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Creates one of the offered rules.
    #[must_use]
    pub fn with_rule(mut self, rule: ChosenRule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The maximum length of a reason; `…` replaces the rest.
    pub const MAX_REASON_CHARS: usize = 2_000;

    /// Returns the reason as the model reads it: without control characters, and none if it is blank.
    pub(crate) fn clean_reason(&self) -> Option<String> {
        let reason: String = self.reason.as_deref()?.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        let reason = truncate_chars(reason.trim(), Self::MAX_REASON_CHARS);
        (!reason.is_empty()).then(|| reason.into_owned())
    }
}

impl From<String> for ApprovalAnswer {
    fn from(label: String) -> Self {
        Self { label, by: None, reason: None, rule: None }
    }
}

impl From<&str> for ApprovalAnswer {
    fn from(label: &str) -> Self {
        label.to_owned().into()
    }
}

/// An approval request without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The approver has disconnected.
    #[error("the connection to the approver is closed")]
    Closed,
    /// The approval system stopped waiting.
    #[error("no answer in time")]
    TimedOut,
    /// Nobody can be asked, with the reason.
    #[error("{0}")]
    Unavailable(String),
    /// Another failure.
    #[error("{0}")]
    Failed(String),
}

impl From<std::io::Error> for ApprovalError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<tokio::task::JoinError> for ApprovalError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Failed(error.to_string())
    }
}
