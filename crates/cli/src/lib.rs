//! The command line of Amplifier Hooks, as a library, so that its parts can be tested alone.

pub mod agent;
pub mod commands;
pub mod confine;
pub mod errors;
pub mod flags;
pub mod hosting;
pub mod rules;
pub mod signals;
pub mod terminal;
