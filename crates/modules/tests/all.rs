//! The tests of this crate, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

mod bundle;
mod changes;
mod rules;
mod settings;
mod shell;
mod shell_corpus;
mod shell_widths;
mod shell_work;
mod transport;
mod transport_command;
mod transport_http;
mod transport_protocol;
mod transport_wasm;
mod transport_worker;
mod trust;
