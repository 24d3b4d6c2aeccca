//! What the caller of an emission gets back.

use std::fmt;
use std::sync::Arc;

use crate::event::EventData;
use crate::text::is_readable;

/// Whether the operation may run.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an operation that was denied must not run"]
pub enum Verdict {
    /// It may run, with this data.
    Proceed(EventData),
    /// It must not run.
    Denied {
        /// The hook that denied it, or that asked for an approval which was refused.
        by: Arc<str>,
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// Whether the operation may run.
    pub fn is_proceed(&self) -> bool {
        matches!(self, Self::Proceed(_))
    }
}

impl Verdict {
    /// The model reads the reason, so it has a bounded size and no control characters.
    pub(super) fn denied(by: Arc<str>, reason: &str) -> Self {
        let readable = reason.chars().filter(|c| is_readable(*c));
        Self::Denied { by, reason: readable.take(LONGEST_REASON).collect() }
    }
}

/// In characters.
const LONGEST_REASON: usize = 10_240;

/// A denial reads as the agent reads it: `Denied by hook guard: no rm`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proceed(_) => f.write_str("Proceed"),
            Self::Denied { by, reason } => write!(f, "Denied by hook {by}: {reason}"),
        }
    }
}
