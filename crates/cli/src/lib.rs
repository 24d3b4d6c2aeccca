//! The command line of Amplifier Hooks, as a library for tests.

pub mod commands;
pub mod errors;
pub mod flags;
mod greeting;
pub mod launcher;
pub mod server_requests;
pub mod session;
pub mod signals;
pub mod terminal;
pub mod user;
