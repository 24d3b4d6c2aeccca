//! Replay of recorded events with another bundle.

mod clock;
mod compare;
mod policy;
mod summary;

pub use self::compare::{Comparison, SkipReason, compare};
pub use self::policy::{ReplayPolicy, SkippedHook};
pub use self::summary::DecisionSummary;
