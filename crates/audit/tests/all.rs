//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod anchor;
mod attacks;
mod common;
mod copy;
mod disk;
mod elsewhere;
mod emissions;
mod failures;
mod kill;
mod log;
mod ongoing;
mod prometheus;
mod python;
mod reader;
mod redact;
mod requests;
mod rotation;
mod stored;
mod tamper;
