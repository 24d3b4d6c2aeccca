//! The commands, each in its own file.

pub mod approvals;
mod arguments;
pub mod audit;
pub mod chat;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod exit;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod guard;
pub mod hooks;
pub mod init;
pub mod man;
pub mod output;
mod reference;
pub mod run;
pub mod serve;
pub mod sessions;
pub mod tools;
mod trust;
