//! Standard output for people and programs, and error messages.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::exit::{Exit, exit_of, is_untrusted};
use crate::errors::reasons;
use crate::terminal::{EscapeMode, visible};

pub(crate) type Out = BufWriter<AutoStream<StdoutLock<'static>>>;

/// Returns the standard output. Colours are removed unless a terminal shows them.
pub(crate) fn stdout() -> Out {
    BufWriter::new(AutoStream::auto(io::stdout().lock()))
}

/// Returns the standard output for a command that must run to its end even if the reader closes the pipe, such as one whose exit code is
/// a result.
pub(crate) fn pipe_stdout() -> PipeWriter<Out> {
    PipeWriter { out: stdout(), is_closed: false }
}

/// A writer that discards output without an error after the reader has closed the pipe.
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

/// Returns the number of columns of the terminal; `None` if standard output is not a terminal.
pub(crate) fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal())?;
    Some(width.0.into())
}

pub(crate) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_ref()).and_then(|()| out.flush());
    ignore_closed_pipe(written.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}

/// Prints a text for people. On a terminal, lines break between words, and continue below their last column.
pub(crate) fn print_text(text: &str) -> anyhow::Result<ExitCode> {
    match columns() {
        Some(columns) => print(text.lines().map(|line| wrap(line, columns)).collect::<String>()),
        None => print(text),
    }
}

/// Returns a line as rows of at most `columns`, each with a line break.
fn wrap(line: &str, columns: usize) -> String {
    // The last column of a table begins after several spaces.
    let start = line.rfind("  ").map_or(0, |gap| gap + 2);
    let indent = Some(line[..start].width()).filter(|indent| indent * 2 < columns).unwrap_or(0);
    let mut rows = line[..start].to_owned();
    let mut used = rows.width();
    for (number, word) in line[start..].split(' ').enumerate() {
        if number > 0 && used + 1 + word.width() > columns {
            rows.push('\n');
            rows.push_str(&" ".repeat(indent));
            used = indent;
        } else if number > 0 {
            rows.push(' ');
            used += 1;
        }
        rows.push_str(word);
        used += word.width();
    }
    rows + "\n"
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    print_json_lines([value])
}

/// Prints values as JSON, one per line.
pub(crate) fn print_json_lines<T: serde::Serialize>(values: impl IntoIterator<Item = T>) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for value in values {
        text.push_str(&serde_json::to_string(&value)?);
        text.push('\n');
    }
    print(text)
}

/// Treats a closed pipe as success: the reader may stop early, as `head` does.
pub(crate) fn ignore_closed_pipe(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match done {
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

/// Returns `true` if the error is a closed pipe.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error to standard error: a line of text or, with `as_json`, of JSON. Returns its exit code.
pub fn fail(error: &anyhow::Error, as_json: bool) -> ExitCode {
    let exit = exit_of(error);
    let text = reasons(error);
    let line = if as_json {
        error_line(&text, exit)
    } else {
        // Text from a log is untrusted; other errors may have several lines.
        let mode = if is_untrusted(error) { EscapeMode::Exact } else { EscapeMode::Stream };
        format!("amplifier: {}", visible(&text, mode))
    };
    // Output may fail; the exit code is the result.
    let _ = writeln!(io::stderr().lock(), "{line}");
    exit.into()
}

/// Returns an error as a line of JSON.
pub fn error_line(text: &str, exit: Exit) -> String {
    json!({ "error": text, "exit_code": exit as u8 }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_table_continues_below_its_last_column() {
        let check = |line: &str, columns, expected: &str| assert_eq!(wrap(line, columns), expected);
        check("Bash  runs a command in a folder", 20, "Bash  runs a command\n      in a folder\n");
        check("no table, but a long text", 12, "no table,\nbut a long\ntext\n");
        check("", 20, "\n");
        // A column that begins far to the right is not worth the space.
        check("a very long name  of something", 20, "a very long name  of\nsomething\n");
    }
}
