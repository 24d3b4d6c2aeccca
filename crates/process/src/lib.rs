//! Programs: starting them, their environment, their output, their end, and their sandbox.

mod command;
mod dumps;
mod environment;
mod group;
mod output;
mod pipes;
mod process;
mod run;
pub mod sandbox;

pub use command::Command;
pub use dumps::forbid_core_dumps;
pub use environment::Environment;
pub use group::ProcessGroup;
pub use output::{OutputBuffer, drain};
pub use process::{Process, ProcessExit, RunningProcess, describe, read, write};
pub use run::CompletedProcess;
