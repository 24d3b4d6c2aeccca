//! The tests of this crate, as one program, with real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may fail loudly")]

mod connection;
mod records;
mod support;
