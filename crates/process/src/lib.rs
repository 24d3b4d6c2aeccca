#![doc = include_str!("../README.md")]

mod command;
mod detach;
mod dumps;
mod environment;
pub mod files;
mod links;
pub mod locks;
mod output;
mod process;
mod programs;
mod run;
pub mod sandbox;
pub mod signals;
pub mod sockets;
#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod system;
pub mod terminal;

pub use command::Command;
pub use detach::detach;
pub use dumps::forbid_core_dumps;
pub use environment::{Environment, is_secret_variable};
pub use links::follow_links;
pub use output::{OutputBuffer, drain, os_string};
pub use process::{LingeringProcess, Process, ProcessExit, RunningProcess, describe, ending_signal, read, write};
pub use programs::{HOME_VARIABLE, bash, file_opener, posix_shell, this_program, user_name};
pub use run::CompletedProcess;
pub use system::group::ProcessGroup;
pub use system::pipes::{Receiver, Sender};
