//! The verdict on an emission.

use std::fmt;
use std::sync::Arc;

use crate::event::EventData;
use crate::text::is_readable;

/// The verdict on an operation: proceed with this data, or denied.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an operation that was denied must not run"]
pub enum Verdict {
    /// The operation may run, with this data.
    Proceed(EventData),
    /// The operation must not run.
    Denied {
        /// The hook that denied it, or whose approval request was denied.
        by: Arc<str>,
        /// The reason.
        reason: String,
    },
}

impl Verdict {
    /// Returns `true` if the operation may run.
    pub fn is_proceed(&self) -> bool {
        matches!(self, Self::Proceed(_))
    }
}

impl Verdict {
    /// Creates a denial. The model reads the reason, so its size is limited and control characters are removed.
    pub(super) fn denied(by: Arc<str>, reason: &str) -> Self {
        let readable = reason.chars().filter(|c| is_readable(*c));
        Self::Denied { by, reason: readable.take(LONGEST_REASON).collect() }
    }
}

/// In characters.
const LONGEST_REASON: usize = 10_240;

/// The text that the agent reads: `Denied by hook guard: no rm`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proceed(_) => f.write_str("Proceed"),
            Self::Denied { by, reason } => write!(f, "Denied by hook {by}: {reason}"),
        }
    }
}
