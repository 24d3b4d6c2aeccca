//! Pipes between a program and its parent.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::windows::io::OwnedHandle;
use std::process::Stdio;

/// The writing end of a pipe.
pub type Sender = tokio::fs::File;
/// The reading end of a pipe.
pub type Receiver = tokio::fs::File;

pub(crate) struct Pipes {
    /// The standard streams of the program.
    pub(crate) child_ends: [Stdio; 3],
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Option<Receiver>,
}

impl Pipes {
    /// Opens the pipes. Without input, the program reads nothing; if merged, errors go to the output.
    pub(crate) fn open(has_input: bool, is_merged: bool) -> io::Result<Self> {
        let (their_stdin, stdin) = if has_input {
            let (reader, writer) = io::pipe()?;
            (reader.into(), Some(Sender::from_std(File::from(OwnedHandle::from(writer)))))
        } else {
            (Stdio::null(), None)
        };
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = if is_merged {
            (None, their_stdout.try_clone()?)
        } else {
            let (stderr, child_ends) = io::pipe()?;
            (Some(receiver(stderr)), child_ends)
        };
        let child_ends = [their_stdin, their_stdout.into(), their_stderr.into()];
        Ok(Self { child_ends, stdin, stdout: receiver(stdout), stderr })
    }
}

fn receiver(reader: PipeReader) -> Receiver {
    Receiver::from_std(File::from(OwnedHandle::from(reader)))
}

/// Returns nothing: a read would block here, so the last output of a killed program may be missing.
pub(crate) fn read_now(_pipe: &Receiver, _bytes: &mut [u8]) -> io::Result<usize> {
    Ok(0)
}
