//! The effects and errors of tools.

mod bash;
mod edit;
mod place;
mod protected;
mod read;
mod results;
mod search;
mod spec;
mod todo;
mod workspace;
mod write;
