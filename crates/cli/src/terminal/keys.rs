//! Keys, one by one, without waiting for Enter.

use std::io::{self, stderr};
use std::time::{Duration, Instant};

use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// How long the keyboard has to be quiet before a key counts.
///
/// Who types on while a question appears means something else by it, and nobody reads a question faster than this. A
/// held key repeats within that time, so it never answers.
const QUIET: Duration = Duration::from_millis(300);

/// What the person pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    /// Esc.
    Refuse,
    /// Ctrl-C.
    Interrupt,
}

/// The keyboard while a question is open: raw mode, until it is dropped.
pub(super) struct Keys {
    counts_from: Instant,
}

impl Keys {
    /// Takes the keyboard. What was typed before is thrown away.
    pub(super) fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let keys = Self { counts_from: Instant::now() + QUIET };
        // Pasted text arrives as one piece then, and not as keys that answer.
        execute!(stderr(), EnableBracketedPaste)?;
        Ok(keys)
    }

    /// Throws away what was typed so far, and waits for quiet again.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        while is_ready(Duration::ZERO)? {
            event::read()?;
        }
        self.counts_from = Instant::now() + QUIET;
        Ok(())
    }

    /// Whether a key would count now.
    pub(super) fn count(&self) -> bool {
        Instant::now() >= self.counts_from
    }

    /// The next key that counts, if one comes within that time.
    pub(super) fn next(&mut self, within: Duration) -> io::Result<Option<Key>> {
        if !is_ready(within)? {
            return Ok(None);
        }
        let Event::Key(event) = event::read()? else { return Ok(None) };
        // Ctrl-C is never meant for something else.
        if !self.count() && !is_interrupt(&event) {
            self.counts_from = Instant::now() + QUIET;
            return Ok(None);
        }
        Ok(meaning(event))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Both are tried, whatever becomes of the other.
        let _ = execute!(stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

/// Whether there is something to read within that time. It is an error if the terminal went away: `event::poll` would not return
/// then, so it is only asked while the terminal is there, and never left to wait.
fn is_ready(within: Duration) -> io::Result<bool> {
    arrived(Duration::ZERO)?;
    Ok(event::poll(Duration::ZERO)? || (arrived(within)? && event::poll(Duration::ZERO)?))
}

/// Whether bytes arrive at the terminal within that time.
fn arrived(within: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut stdin = [PollFd::new(&stdin, PollFlags::IN)];
    match rustix::event::poll(&mut stdin, Some(&Timespec::try_from(within).map_err(io::Error::other)?)) {
        Err(Errno::INTR) => return Ok(false),
        result => result?,
    };
    if stdin[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the terminal is gone"));
    }
    Ok(stdin[0].revents().contains(PollFlags::IN))
}

fn meaning(event: KeyEvent) -> Option<Key> {
    if event.kind != KeyEventKind::Press {
        return None;
    }
    match (event.code, event.modifiers) {
        _ if is_interrupt(&event) => Some(Key::Interrupt),
        (KeyCode::Esc, KeyModifiers::NONE) => Some(Key::Refuse),
        (KeyCode::Char(character), KeyModifiers::NONE | KeyModifiers::SHIFT) => Some(Key::Character(character)),
        _ => None,
    }
}

fn is_interrupt(event: &KeyEvent) -> bool {
    event.code == KeyCode::Char('c') && event.modifiers == KeyModifiers::CONTROL
}
