//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod approval;
mod audit;
mod bundles;
mod clients;
mod command_folder;
mod common;
mod confine;
mod demo;
mod evasion;
mod events;
mod fleet;
mod guard;
mod guard_approvals;
mod guard_faults;
mod headless;
mod hooks;
mod json;
mod managed;
mod mistakes;
mod notify;
mod protect;
mod replay;
mod review;
mod sandbox;
mod self_approval;
mod serve;
mod serving;
mod terminal;
mod trace;
mod trust;
mod validate;
