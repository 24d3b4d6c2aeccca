//! Who may do what.

/// Who may do what. A handle.
#[derive(Clone, Debug, Default)]
pub struct Access {}
