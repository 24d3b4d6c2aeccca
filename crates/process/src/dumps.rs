//! Memory that other processes of the same user cannot read.

use rustix::io;
#[cfg(target_os = "linux")]
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Keeps this process from writing core dumps, and on Linux other processes of the same user from reading its memory, tracing it and opening its
/// `/proc/PID` files.
///
/// Call it before the first key is in memory. Programs that this process starts write no core dumps either; the rest ends for them when they
/// are started, as `execve` resets it.
///
/// # Errors
/// If the system refuses.
pub fn forbid_core_dumps() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // The limit alone is not enough: `prlimit` of another process can raise it, and a program behind `core_pattern` gets a dump of any size.
    #[cfg(target_os = "linux")]
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
