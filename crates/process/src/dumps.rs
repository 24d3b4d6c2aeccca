//! Protection of memory from other processes of the same user.

use std::io;

/// Disables core dumps. On Linux, other processes of the same user can no longer read or trace this one, or open its `/proc/PID` files. Windows
/// writes dumps only if the administrator asks for them.
///
/// Call this before the first key is in memory. Programs that this process starts write no core dumps either; `execve` resets the rest.
///
/// # Errors
/// If the system refuses.
pub fn forbid_core_dumps() -> io::Result<()> {
    crate::system::process::forbid_core_dumps()
}
