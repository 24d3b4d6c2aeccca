//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod bad_input;
mod cancel;
mod conformance;
mod conversation;
mod driving;
mod emission;
mod events;
mod examples;
mod nesting;
mod ports;
mod properties;
mod rate;
mod record;
mod registering;
mod schema;
mod session;
mod tracing;
