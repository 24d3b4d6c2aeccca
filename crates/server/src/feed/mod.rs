//! What is recorded, as it is recorded.

/// The audit log, as it grows. A handle.
#[derive(Clone, Debug, Default)]
pub struct Feed {}
