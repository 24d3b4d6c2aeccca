//! The program without a terminal: in scripts, in pipes, in the background.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test that cannot go on should say where")]

mod common;

#[path = "headless/approvals.rs"]
mod approvals;
#[path = "headless/configuration.rs"]
mod configuration;
#[path = "headless/definitions.rs"]
mod definitions;
#[path = "headless/failing_hooks.rs"]
mod failing_hooks;
#[path = "headless/failures.rs"]
mod failures;
#[path = "headless/run.rs"]
mod run;
#[path = "headless/sessions.rs"]
mod sessions;
#[path = "headless/signals.rs"]
mod signals;
