//! Processes on Unix.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use super::group::GroupWatcher;

/// Makes a program lead its own process group, or join that of a watcher.
pub(crate) fn set_group(command: &mut tokio::process::Command, watcher: Option<&GroupWatcher>) {
    command.process_group(watcher.map_or(0, GroupWatcher::group));
}

pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(crate) fn os_string(bytes: &[u8]) -> Option<OsString> {
    Some(OsStr::from_bytes(bytes).to_owned())
}

pub(crate) fn start_session() -> io::Result<()> {
    Ok(setsid().map(drop)?)
}

/// Replaces this process by the program. Returns only on failure.
pub(crate) fn replace(program: &mut Command) -> io::Error {
    program.exec()
}

pub(crate) fn forbid_core_dumps() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // The limit alone is not enough: another process can raise it with `prlimit`, and a program behind `core_pattern` gets dumps of any size.
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
