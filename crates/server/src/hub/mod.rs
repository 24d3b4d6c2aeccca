//! Who is connected, and what is asked.

/// Who is connected, and what is asked. A handle.
#[derive(Clone, Debug, Default)]
pub struct Hub {}
