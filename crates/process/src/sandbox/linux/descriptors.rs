//! The files that a process has open when it starts.

use std::fs;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::OwnedFd;

use super::{ErrorContext, SandboxError};

/// Closes all files but standard input, output and error, and refuses those if they are a terminal.
///
/// A folder that whoever started the agent left open leads around mounts that are made later, and a terminal is one that others write to and read from.
pub(super) fn close_inherited() -> Result<(), SandboxError> {
    let listing = fs::read_dir("/proc/self/fd").context("the open files")?;
    let numbers: Vec<i32> = listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The listing itself is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
    if stdin().is_terminal() || stdout().is_terminal() || stderr().is_terminal() {
        let text = "standard input, output or error is a terminal; use pipes or files";
        return Err(SandboxError(text.to_owned()));
    }
    Ok(())
}

/// Moves a socket that is standard input to another number, which programs do not inherit, so that standard input can become that of the program.
pub(super) fn take_stdin() -> Result<OwnedFd, SandboxError> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).context("standard input")?;
    release_standard()?;
    Ok(socket)
}

/// Keeps no end of the pipes of the program open, so that others see when it closes them.
pub(super) fn release_standard() -> Result<(), SandboxError> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null").context("`/dev/null`")?;
    let released = rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null));
    released.context("standard input and output")
}
