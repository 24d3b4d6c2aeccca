//! Recorded events, judged again: what another bundle would have decided.

mod clock;
mod compare;
mod policy;
mod summary;

pub use self::compare::{Comparison, Uncompared, compare};
pub use self::policy::{Policy, SkippedHook};
pub use self::summary::DecisionSummary;
