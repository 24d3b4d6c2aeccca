//! Failures of hooks.

use std::time::Duration;

use super::{ActionKind, FlatAction};

/// The failure of a hook. It becomes part of the report, and the hook's `on_error` decides.
///
/// Every type that implements [`std::error::Error`] can be converted with `?`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HookError {
    /// The hook returned an error.
    Failed(String),
    /// The hook panicked.
    Panicked(String),
    /// The hook exceeded its time limit.
    TimedOut(Duration),
    /// The hook returned an invalid result, or could not read the event.
    Unreadable(String),
    /// The hook returned an invalid object with an action other than `continue`. It tried to intervene, so a gate denies the
    /// operation, independent of its `on_error`.
    InvalidAnswer(String),
}

impl HookError {
    /// Creates an error with this message.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Failed(_) => ActionKind::Failed,
            Self::Panicked(_) => ActionKind::Panicked,
            Self::TimedOut(_) => ActionKind::TimedOut,
            Self::Unreadable(_) | Self::InvalidAnswer(_) => ActionKind::Unreadable,
        }
    }

    /// Creates the error for an invalid JSON result. The action in `answer` decides between the two variants.
    pub fn unreadable(answer: &serde_json::Value, what: impl Into<String>) -> Self {
        match answer.get("action") {
            Some(action) if action != FlatAction::Continue.as_str() => Self::InvalidAnswer(what.into()),
            _ => Self::Unreadable(what.into()),
        }
    }

    pub(crate) fn from_panic(panic: Box<dyn std::any::Any + Send>) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let error = Self::Panicked(text.unwrap_or("no message").to_owned());
        crate::contain::drop_quietly(panic);
        error
    }
}

impl std::fmt::Display for HookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Panicked(what) => write!(f, "panicked: {what}"),
            Self::TimedOut(after) => write!(f, "gave no answer within {after:?}"),
            Self::Failed(what) | Self::Unreadable(what) | Self::InvalidAnswer(what) => f.write_str(what),
        }
    }
}

// Not an `Error` itself, so that every error can be converted.
impl<E: std::error::Error> From<E> for HookError {
    fn from(error: E) -> Self {
        let mut what = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            what = format!("{what}: {cause}");
            source = cause.source();
        }
        Self::Failed(what)
    }
}
