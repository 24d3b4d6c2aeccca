//! The ways in which a person or the system tells this process to stop.

pub use crate::system::signals::{Interrupts, Termination};
