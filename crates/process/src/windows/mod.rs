//! What Windows does in its own way.

pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod pipes;
pub(crate) mod process;
