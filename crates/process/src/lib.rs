//! Programs: starting them, their environment, their output, their end, and their sandbox.

mod dumps;
mod environment;
pub mod sandbox;

pub use dumps::forbid_core_dumps;
pub use environment::{is_for_loader, is_inherited_by_commands, is_inherited_by_hooks};
