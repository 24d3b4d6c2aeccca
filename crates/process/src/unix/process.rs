//! Processes on Unix.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::process::{Resource, Rlimit, setrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

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

pub(crate) fn detach() -> io::Result<()> {
    match setsid() {
        // A process that leads a group cannot start a session, and a signal to the group of its parent does not reach it.
        Ok(_) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    release_standard()?;
    #[cfg(target_os = "linux")]
    close_inherited()?;
    Ok(())
}

/// Replaces standard input, output and error by `/dev/null`.
pub(crate) fn release_standard() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    Ok(dup2_stderr(&null)?)
}

/// Closes all files but the standard streams.
#[cfg(target_os = "linux")]
pub(crate) fn close_inherited() -> io::Result<()> {
    let listing = fs::read_dir("/proc/self/fd")?;
    let numbers: Vec<i32> = listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The list includes its own file, which is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
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
