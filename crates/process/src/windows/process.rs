//! Processes on Windows.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::{Command, ExitStatus};

use super::group::GroupWatcher;

/// Does nothing: Windows has no process groups.
pub(crate) fn set_group(_command: &mut tokio::process::Command, _watcher: Option<&GroupWatcher>) {}

/// Returns none: Windows has no signals.
pub(crate) fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

pub(crate) fn os_string(bytes: &[u8]) -> Option<OsString> {
    str::from_utf8(bytes).ok().map(Into::into)
}

/// Fails, so that no launcher works and sessions report that there is no sandbox.
pub(crate) fn start_session() -> io::Result<()> {
    Err(io::Error::new(ErrorKind::Unsupported, "not available on Windows; sandboxes need Linux"))
}

pub(crate) fn detach() -> io::Result<()> {
    Err(io::Error::new(ErrorKind::Unsupported, "not available on Windows"))
}

pub(crate) fn replace(_program: &mut Command) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, "Windows cannot replace a process by a program")
}

/// Does nothing: Windows writes dumps only if the administrator asks for them.
pub(crate) fn forbid_core_dumps() -> io::Result<()> {
    Ok(())
}
