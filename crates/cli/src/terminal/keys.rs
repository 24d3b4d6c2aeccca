//! Keys, one by one, without waiting for Enter.

use std::io::{self, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::key_filter::{Key, KeyFilter};

/// The keyboard while a question is open: raw mode, until it is dropped.
pub(super) struct Keys {
    // A std lock: nobody else holds it while a question is open.
    filter: Arc<Mutex<KeyFilter>>,
}

impl Keys {
    /// Takes the keyboard. The filter stays the same from question to question, because an escape sequence may go on from one to the next.
    pub(super) fn take(filter: Arc<Mutex<KeyFilter>>) -> io::Result<Self> {
        enable_raw_mode()?;
        let keys = Self { filter };
        // Pasted text is marked as such then.
        execute!(stderr(), EnableBracketedPaste)?;
        Ok(keys)
    }

    /// Throws away what was typed so far, and waits for silence again.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        while self.next(Duration::ZERO)?.is_some() || arrived(Duration::ZERO)? {}
        self.filter().restart(Instant::now());
        Ok(())
    }

    /// `true` if a key would be considered now.
    pub(super) fn are_ready(&self) -> bool {
        self.filter().is_ready()
    }

    /// `true` if keys came that did not count.
    pub(super) fn have_ignored(&self) -> bool {
        self.filter().has_ignored()
    }

    /// The next key that counts, if there is one within that time.
    pub(super) fn next(&mut self, within: Duration) -> io::Result<Option<Key>> {
        if !arrived(within)? {
            return Ok(self.filter().silent(Instant::now()));
        }
        let mut bytes = [0; 256];
        let count = rustix::io::read(io::stdin(), &mut bytes)?;
        let now = Instant::now();
        let mut filter = self.filter();
        Ok(bytes[..count].iter().filter_map(|byte| filter.byte(*byte, now)).last())
    }

    fn filter(&self) -> MutexGuard<'_, KeyFilter> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Both are tried, whatever becomes of the other.
        let _ = execute!(stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

/// `true` if bytes arrive at the terminal within that time.
///
/// # Errors
/// If the terminal is gone.
fn arrived(within: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut stdin = [PollFd::new(&stdin, PollFlags::IN)];
    match rustix::event::poll(&mut stdin, Some(&Timespec::try_from(within).map_err(io::Error::other)?)) {
        // What interrupted it says nothing about what has arrived.
        Err(Errno::INTR) => return arrived(Duration::ZERO),
        result => result?,
    };
    if stdin[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the terminal is gone"));
    }
    Ok(stdin[0].revents().contains(PollFlags::IN))
}
