//! How a hook fails.

use std::time::Duration;

use super::{ActionKind, FlatAction};

/// How a hook failed. A failure is data: it becomes part of the report, and the hook's `on_error` decides.
///
/// Every type that implements [`std::error::Error`] turns into one with `?`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HookError {
    /// The hook said that it failed.
    Failed(String),
    /// The hook panicked.
    Panicked(String),
    /// The hook gave no answer in time.
    TimedOut(Duration),
    /// The hook answered something that is no result, or could not read the event.
    Unreadable(String),
    /// The hook answered an object that states an action other than `continue`, but is invalid. It tried to intervene, so
    /// a gate that answers so denies the operation, whatever its `on_error` says.
    InvalidAnswer(String),
}

impl HookError {
    /// A failure, in words.
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

    /// The failure of a hook that answered a JSON value which cannot be read: `answer` tells whether it tried to intervene.
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
        crate::guard::drop_quietly(panic);
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

// Not an `Error` itself, so that every error can become one.
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
