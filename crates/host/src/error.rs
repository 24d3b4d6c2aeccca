//! Errors of sessions that are built from configuration.

use std::error::Error as StdError;
use std::io;

use amplifier_audit::AuditError;
use amplifier_core::InvalidRules;
use amplifier_modules::bundle::BundleError;
use amplifier_modules::trust::TrustError;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The result of a function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a session cannot be built from configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid: a command exits with 2.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A bundle is invalid or unreadable.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A file cannot be pinned, or the trust store fails.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A file or folder cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The configuration is rejected.
    #[error("{0}")]
    Refused(String),
    /// A part failed; `source` has the reason.
    #[error("{what}")]
    Failed {
        /// The part.
        what: String,
        /// The reason.
        source: BoxError,
    },
    /// Another part of the program failed.
    #[error(transparent)]
    Other(BoxError),
}

/// An invalid flag, variable or setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Returns an error for an invalid flag, variable or setting.
pub fn usage(message: impl Into<String>) -> Error {
    UsageError(message.into()).into()
}

impl Error {
    /// Returns `true` if a flag, a variable or a setting is invalid.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) => true,
            Self::Failed { source, .. } => source.downcast_ref::<Self>().is_some_and(Self::is_usage),
            _ => false,
        }
    }

    pub(crate) fn other(error: impl Into<BoxError>) -> Self {
        Self::Other(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::other(error)
    }
}

impl From<InvalidRules> for Error {
    fn from(error: InvalidRules) -> Self {
        Self::other(error)
    }
}

/// Returns the message of an error with its causes. A cause that a message already contains is not repeated.
pub fn reasons(error: &(dyn StdError + 'static)) -> String {
    let mut next = Some(error);
    let chain = std::iter::from_fn(|| {
        let error = next?;
        next = error.source();
        Some(error)
    });
    chain.map(ToString::to_string).fold(String::new(), |joined, reason| match joined.as_str() {
        "" => reason,
        text if text.contains(&reason) => joined,
        text => format!("{text}: {reason}"),
    })
}

/// Adds the failed operation to an error.
pub(crate) trait ErrorContext<T> {
    fn context(self, what: impl Into<String>) -> Result<T>;

    fn with_context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<BoxError>> ErrorContext<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T> {
        self.with_context(|| what)
    }

    fn with_context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| Error::Failed { what: what().into(), source: error.into() })
    }
}

impl<T> ErrorContext<T> for Option<T> {
    fn context(self, what: impl Into<String>) -> Result<T> {
        self.with_context(|| what)
    }

    fn with_context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.ok_or_else(|| Error::Refused(what().into()))
    }
}

/// Returns an error with a message.
macro_rules! bail {
    ($($message:tt)*) => {
        return Err($crate::Error::Refused(format!($($message)*)))
    };
}
pub(crate) use bail;
