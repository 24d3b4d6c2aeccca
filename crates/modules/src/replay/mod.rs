//! Recorded events, judged again: what another bundle would have decided.

mod clock;
mod compare;
mod judgement;
mod policy;

pub use self::compare::{Comparison, Uncompared, compare};
pub use self::judgement::Judgement;
pub use self::policy::{Policy, SkippedHook};
