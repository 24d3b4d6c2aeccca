//! Writing to the standard output, for people and for programs, and saying what went wrong.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use serde_json::json;

use crate::errors::{is_usage, reasons};
use crate::terminal::{Reading, visible};

/// The standard output, buffered.
pub(crate) type Out = BufWriter<AutoStream<StdoutLock<'static>>>;

/// The standard output. Colours are taken out unless it is a terminal that wants them.
pub(crate) fn stdout() -> Out {
    BufWriter::new(AutoStream::auto(io::stdout().lock()))
}

/// The same for a command whose exit code is a verdict, or that has more to do than to print: whether or not anybody reads it to its end.
pub(crate) fn pipe_stdout() -> PipeWriter<Out> {
    PipeWriter { out: stdout(), is_closed: false }
}

/// Writes as long as somebody reads. What comes later is thrown away, and that is no error.
pub(crate) struct PipeWriter<W> {
    out: W,
    is_closed: bool,
}

impl<W: Write> PipeWriter<W> {
    fn attempt<T>(&mut self, unread: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.is_closed {
            return Ok(unread);
        }
        match write(&mut self.out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(unread)
            }
            written => written,
        }
    }
}

impl<W: Write> Write for PipeWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), W::flush)
    }
}

/// How many columns the terminal has; none if the output goes elsewhere.
pub(crate) fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal())?;
    Some(width.0.into())
}

/// Prints a text as it is.
pub(crate) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_ref()).and_then(|()| out.flush());
    ignore_closed_pipe(written.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    print(format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Whoever reads may have seen enough, as `head` does: that is no error.
pub(crate) fn ignore_closed_pipe(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match done {
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

/// Whether that failed because nobody reads any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Says on the standard error what went wrong.
pub(crate) fn print_error(error: &anyhow::Error) -> io::Result<()> {
    writeln!(io::stderr().lock(), "amplifier: {}", visible(&reasons(error), Reading::Exact))
}

/// Ends a command that has failed: says what went wrong on the standard error and, to a program that wants JSON, on the standard output.
pub fn fail(error: &anyhow::Error, as_json: bool) -> ExitCode {
    let coded = error.downcast_ref::<ExitCodeError>();
    if as_json {
        let line = json!({ "result": "error", "text": reasons(error) });
        // Whether anybody reads it or not, the exit code tells.
        let _ = writeln!(io::stdout().lock(), "{line}");
    }
    // What a log says may come from anywhere; other errors have lines of their own.
    let reading = if coded.is_some() { Reading::Exact } else { Reading::Stream };
    let _ = writeln!(io::stderr().lock(), "amplifier: {}", visible(&reasons(error), reading));
    match coded {
        Some(coded) => ExitCode::from(coded.code),
        None if is_usage(error) => ExitCode::from(2),
        None => ExitCode::from(1),
    }
}

/// A failure with an exit code of its own, of a command whose other codes are verdicts.
#[derive(Debug)]
pub(crate) struct ExitCodeError {
    code: u8,
    error: anyhow::Error,
}

impl ExitCodeError {
    pub(crate) fn new(code: u8, error: anyhow::Error) -> Self {
        Self { code, error }
    }
}

impl fmt::Display for ExitCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&reasons(&self.error))
    }
}

impl std::error::Error for ExitCodeError {}
