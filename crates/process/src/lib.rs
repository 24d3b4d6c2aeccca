//! The operating system: programs, with their environment, output, end and sandbox, and [files] and [locks].
//!
//! All that differs from system to system is here, so that no other crate asks which one it runs on.

mod command;
mod dumps;
mod environment;
pub mod files;
pub mod locks;
mod output;
mod process;
mod run;
pub mod sandbox;
#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod system;

pub use command::Command;
pub use dumps::forbid_core_dumps;
pub use environment::Environment;
pub use output::{OutputBuffer, drain};
pub use process::{Process, ProcessExit, RunningProcess, UnendedProcess, describe, ending_signal, read, write};
pub use run::CompletedProcess;
pub use system::group::ProcessGroup;
pub use system::pipes::{Receiver, Sender};
