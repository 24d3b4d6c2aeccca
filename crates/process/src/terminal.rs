//! The terminal of this process: the keys that arrive, and what goes past standard output.

use std::fs::{File, OpenOptions};
use std::io;
use std::time::Duration;

use crate::system::terminal as system;

/// Waits for input from the keyboard, at most for that long; `true` if there is some.
///
/// # Errors
/// If the terminal is gone.
pub fn wait_for_input(limit: Duration) -> io::Result<bool> {
    system::wait_for_input(limit)
}

/// Reads the input that has arrived, as the bytes that a terminal sends for it, and returns their number. The terminal has to be in raw mode.
///
/// # Errors
/// If the terminal is gone.
pub fn read_input(bytes: &mut [u8]) -> io::Result<usize> {
    system::read_input(bytes)
}

/// Opens the terminal of this process to write to it, wherever standard output leads.
///
/// # Errors
/// If there is none.
pub fn open() -> io::Result<File> {
    OpenOptions::new().write(true).open(system::PATH)
}
