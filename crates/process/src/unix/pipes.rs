//! Pipes between a program and its parent.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::retry_on_intr;
use tokio::net::unix::pipe;

/// The writing end of a pipe.
pub type Sender = pipe::Sender;
/// The reading end of a pipe.
pub type Receiver = pipe::Receiver;

pub(crate) struct Pipes {
    /// The standard streams of the program.
    pub(crate) child_ends: [OwnedFd; 3],
    pub(crate) stdin: Option<pipe::Sender>,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: Option<pipe::Receiver>,
}

impl Pipes {
    /// Opens the pipes. Without input, the program reads nothing; if merged, errors go to the output.
    pub(crate) fn open(has_input: bool, is_merged: bool) -> io::Result<Self> {
        let (their_stdin, stdin) = if has_input {
            let (reader, writer) = io::pipe()?;
            (reader.into(), Some(pipe::Sender::from_owned_fd(writer.into())?))
        } else {
            (File::open("/dev/null")?.into(), None)
        };
        let (stdout, their_stdout) = output()?;
        let (stderr, their_stderr) = if is_merged {
            (None, their_stdout.try_clone()?)
        } else {
            let (stderr, child_ends) = output()?;
            (Some(stderr), child_ends)
        };
        Ok(Self { child_ends: [their_stdin, their_stdout, their_stderr], stdin, stdout, stderr })
    }
}

fn output() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// Reads the available content of a pipe without waiting. `try_read` would miss what was written since the last poll of the runtime.
pub(crate) fn read_now(pipe: &Receiver, bytes: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::read(pipe, &mut *bytes))?)
}
