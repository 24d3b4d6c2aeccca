//! The program without a terminal: in scripts, in pipes, in the background.

#![cfg(unix)]

mod approvals;
mod configuration;
mod confirm;
mod definitions;
mod failing_hooks;
mod failures;
mod mode;
mod run;
mod sessions;
mod signals;
