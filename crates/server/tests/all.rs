//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod api;
mod common;
mod feed;
mod link;
mod search;
mod security;
