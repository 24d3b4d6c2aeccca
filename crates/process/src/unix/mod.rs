//! What Unix systems do in their own way.

pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod pipes;
pub(crate) mod process;
