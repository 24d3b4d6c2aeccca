//! Helpers for testing hooks and sessions: no network, no waiting, nothing left to chance.

mod approvals;
mod clock;
mod display;
mod recorder;

pub use approvals::{ScriptedAnswer, ScriptedApprovals};
pub use clock::ManualClock;
pub use display::CollectingDisplay;
pub use recorder::EventRecorder;
