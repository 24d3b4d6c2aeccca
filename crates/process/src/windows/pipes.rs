//! The pipes between a program and the process that starts it, on Windows.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::windows::io::OwnedHandle;
use std::process::Stdio;

/// The end of a pipe that is written to.
pub type Sender = tokio::fs::File;
/// The end of a pipe that is read from.
pub type Receiver = tokio::fs::File;

/// The pipes of a program that is about to start: the ends that it gets, and those that are kept.
pub(crate) struct Pipes {
    /// The standard input, output and error of the program.
    pub(crate) child_ends: [Stdio; 3],
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Option<Receiver>,
}

impl Pipes {
    /// Opens them. Without input, the program reads nothing; merged, it writes errors to its output.
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

/// Nothing: a read here would wait, so what was written in the last moment before a program was ended may be missing.
pub(crate) fn read_now(_pipe: &Receiver, _bytes: &mut [u8]) -> io::Result<usize> {
    Ok(0)
}
