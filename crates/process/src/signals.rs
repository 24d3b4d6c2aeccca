//! Requests of the user or the system to stop this process.

pub use crate::system::signals::{Interrupts, Termination};
