//! Memory that other processes of the same user cannot read.

use std::io;

/// Keeps this process from writing core dumps, and on Linux other processes of the same user from reading its memory, tracing it and opening its
/// `/proc/PID` files. Windows writes dumps only where the administrator asks for them.
///
/// Call it before the first key is in memory. Programs that this process starts write no core dumps either; the rest ends for them when they
/// are started, as `execve` resets it.
///
/// # Errors
/// If the system refuses.
pub fn forbid_core_dumps() -> io::Result<()> {
    crate::system::process::forbid_core_dumps()
}
