//! Signals on Unix.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, each time that it is pressed.
#[derive(Debug)]
pub struct Interrupts(Signal);

impl Interrupts {
    /// Listens from now on: Ctrl-C does not end this process any more. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Returns when Ctrl-C was pressed; none if it cannot be pressed any more.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// The system tells this process to end, or takes its terminal away. On Windows, the end of the session of the user counts as well.
#[derive(Debug)]
pub struct Termination {
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Termination {
    /// Listens from now on. Needs a tokio runtime.
    ///
    /// On Linux, a process that was started with `nohup` goes on without its terminal. Elsewhere this cannot be told.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self { terminate, hangup })
    }

    /// Returns when this process is told to end, or is told again.
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

/// `true` if whoever started this process wants it to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}
