//! Processes that outlive the one that started them.

use std::io;

/// Separates this process from the one that started it: it begins a session of its own, `/dev/null` becomes its standard input, output and error, and
/// on Linux it closes all other inherited files. A program that waits for the end of an inherited output then does not wait for this process.
///
/// Call this before anything else opens a file.
///
/// # Errors
/// If a system call fails. On Windows, always.
pub fn detach() -> io::Result<()> {
    crate::system::process::detach()
}
