//! Single key presses, without Enter.

use std::io::{self, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amplifier_process::terminal::{read_input, wait_for_input};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::key_filter::{Key, KeyFilter};

/// The keyboard in raw mode, until dropped.
pub(super) struct Keys {
    // A std lock: uncontended while a prompt is open.
    filter: Arc<Mutex<KeyFilter>>,
}

impl Keys {
    /// Takes the keyboard. All prompts share one filter, because an escape sequence may continue from one prompt to the next.
    pub(super) fn take(filter: Arc<Mutex<KeyFilter>>) -> io::Result<Self> {
        enable_raw_mode()?;
        let keys = Self { filter };
        // Marks pasted text.
        execute!(stderr(), EnableBracketedPaste)?;
        Ok(keys)
    }

    /// Discards pending input and requires silence again.
    pub(super) fn discard_pending(&mut self) -> io::Result<()> {
        while self.next(Duration::ZERO)?.is_some() || wait_for_input(Duration::ZERO)? {}
        self.filter().restart(Instant::now());
        Ok(())
    }

    pub(super) fn are_ready(&self) -> bool {
        self.filter().is_ready()
    }

    pub(super) fn have_ignored(&self) -> bool {
        self.filter().has_ignored()
    }

    /// Returns the next key that counts, if one arrives within the time limit.
    pub(super) fn next(&mut self, within: Duration) -> io::Result<Option<Key>> {
        if !wait_for_input(within)? {
            return Ok(self.filter().silent(Instant::now()));
        }
        let mut bytes = [0; 256];
        let count = read_input(&mut bytes)?;
        let now = Instant::now();
        let mut filter = self.filter();
        Ok(bytes[..count].iter().filter_map(|byte| filter.byte(*byte, now)).last())
    }

    /// Returns the bytes that arrive within the time limit, unfiltered: for text that cannot allow anything.
    pub(super) fn next_bytes(&mut self, within: Duration) -> io::Result<Vec<u8>> {
        if !wait_for_input(within)? {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 256];
        let count = read_input(&mut bytes)?;
        self.filter().restart(Instant::now());
        Ok(bytes[..count].to_vec())
    }

    fn filter(&self) -> MutexGuard<'_, KeyFilter> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Both are attempted even if one fails.
        let _ = execute!(stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}
