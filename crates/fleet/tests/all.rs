//! The tests of this crate, as one program, with real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may fail loudly, and says when it does not run"
)]

mod approvals;
mod connection;
mod enrol;
mod hooks;
mod policies;
mod records;
mod security;
mod support;
