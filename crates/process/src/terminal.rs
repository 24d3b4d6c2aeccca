//! The terminal of this process: keyboard input, and output that bypasses standard output.

use std::fs::{File, OpenOptions};
use std::io;
use std::time::Duration;

use crate::system::terminal as system;

/// Waits for keyboard input up to a time limit. Returns `true` if there is input.
///
/// # Errors
/// If the terminal is closed.
pub fn wait_for_input(limit: Duration) -> io::Result<bool> {
    system::wait_for_input(limit)
}

/// Reads the available input as terminal bytes, and returns their number. The terminal must be in raw mode.
///
/// # Errors
/// If the terminal is closed.
pub fn read_input(bytes: &mut [u8]) -> io::Result<usize> {
    system::read_input(bytes)
}

/// Opens the terminal of this process for writing, even if standard output is redirected.
///
/// # Errors
/// If this process has no terminal.
pub fn open() -> io::Result<File> {
    OpenOptions::new().write(true).open(system::PATH)
}
