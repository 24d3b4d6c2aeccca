//! Helpers for testing hooks and sessions without network, waits and randomness.

mod approvals;
mod clock;
mod display;
mod recorder;

pub use approvals::{ScriptedAnswer, ScriptedApprovals};
pub use clock::ManualClock;
pub use display::CollectingDisplay;
pub use recorder::EventRecorder;
