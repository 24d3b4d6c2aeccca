//! The tests of this crate, as one program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may fail loudly")]

mod answers;
mod continuity;
mod daemon;
mod denials;
mod measured;
mod pages;
mod patches;
mod payloads;
mod protection;
mod readers;
mod samples;
mod served;
mod settings;
