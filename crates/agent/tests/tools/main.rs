//! The effects and errors of tools.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod bash;
mod edit;
mod place;
mod protected;
mod read;
mod search;
mod spec;
mod todo;
mod workspace;
mod write;
