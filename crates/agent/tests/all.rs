//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod cancel;
mod common;
mod compaction;
mod elsewhere;
mod execute_tool;
mod guards;
mod linter;
mod mcp;
mod modules;
mod order;
mod parallel;
mod preview_corpus;
mod previews;
mod providers;
mod review;
mod scripted;
mod section7;
mod sessions;
mod smoke;
mod store;
mod tools;
mod wire;
