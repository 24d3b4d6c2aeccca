//! Console events, the signals of Windows.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown,
};

/// A stream of Ctrl-C presses.
#[derive(Debug)]
pub struct Interrupts(CtrlC);

impl Interrupts {
    /// Starts to listen. Ctrl-C no longer ends this process. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn listen() -> io::Result<Self> {
        ctrl_c().map(Self)
    }

    /// Waits for Ctrl-C; none if it can no longer be pressed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// Requests of the system to end: a closed console, the end of the user session, Ctrl-Break.
#[derive(Debug)]
pub struct Termination {
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Termination {
    /// Starts to listen. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { ctrl_break: ctrl_break()?, close: ctrl_close()?, logoff: ctrl_logoff()?, shutdown: ctrl_shutdown()? })
    }

    /// Waits for a request to end. Windows grants some seconds after it.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) {
        tokio::select! {
            _ = self.ctrl_break.recv() => {}
            _ = self.close.recv() => {}
            _ = self.logoff.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
