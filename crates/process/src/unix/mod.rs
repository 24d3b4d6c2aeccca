//! The implementation for Unix.

pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod pipes;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod signals;
pub(crate) mod sockets;
pub(crate) mod terminal;
