//! The command line of Amplifier Hooks, as a library for tests.

pub mod commands;
pub mod errors;
pub mod flags;
mod greeting;
pub mod launcher;
pub mod machine;
pub mod session;
pub mod signals;
pub mod terminal;
pub mod user;
