//! Open files that a process inherits.

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::OwnedFd;

use super::{ErrorContext, SandboxError};
use crate::system::process;

/// Closes all files but the standard streams, and rejects those if they are terminals.
///
/// An inherited open folder would lead around later mounts, and other processes write to and read from a terminal.
pub(super) fn close_inherited() -> Result<(), SandboxError> {
    process::close_inherited().context("the open files")?;
    if stdin().is_terminal() || stdout().is_terminal() || stderr().is_terminal() {
        let text = "standard input, output or error is a terminal; use pipes or files";
        return Err(SandboxError(text.to_owned()));
    }
    Ok(())
}

/// Moves the socket on standard input to another number, which programs do not inherit, to free standard input for the program.
pub(super) fn take_stdin() -> Result<OwnedFd, SandboxError> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).context("standard input")?;
    release_standard()?;
    Ok(socket)
}

/// Closes the pipes of the program in this process, so that others notice when the program closes them.
pub(super) fn release_standard() -> Result<(), SandboxError> {
    process::release_standard().context("standard input and output")
}
