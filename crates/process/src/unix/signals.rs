//! Signals on Unix.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A stream of Ctrl-C presses.
#[derive(Debug)]
pub struct Interrupts(Signal);

impl Interrupts {
    /// Starts to listen. Ctrl-C no longer ends this process. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Waits for Ctrl-C; none if it can no longer be pressed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// Requests of the system to end: a signal, or the loss of the terminal. On Windows, also the end of the user session.
#[derive(Debug)]
pub struct Termination {
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Termination {
    /// Starts to listen. Needs a tokio runtime.
    ///
    /// On Linux, a process that was started with `nohup` survives its terminal. Elsewhere this is unknown.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self { terminate, hangup })
    }

    /// Waits for a request to end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            () = hung_up => {}
        }
    }
}

/// Returns `true` if the process was started to survive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}
