//! Writing to the standard output, for people and for programs.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use anstream::AutoStream;

use crate::terminal::{Reading, visible};
use crate::words::reasons;

/// The standard output, buffered.
pub(crate) type Out = BufWriter<AutoStream<StdoutLock<'static>>>;

/// The standard output. Colours are taken out unless it is a terminal that wants them.
pub(crate) fn stdout() -> Out {
    BufWriter::new(AutoStream::auto(io::stdout().lock()))
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
    unless_closed(written.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    print(format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Whoever reads may have seen enough, as `head` does: that is no error.
pub(crate) fn unless_closed(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
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
pub(crate) fn complain(error: &anyhow::Error) -> io::Result<()> {
    writeln!(io::stderr().lock(), "amplifier: {}", visible(&reasons(error), Reading::Exact))
}
