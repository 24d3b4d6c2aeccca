//! Console events, which Windows has in the place of signals.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown,
};

/// Ctrl-C, each time that it is pressed.
#[derive(Debug)]
pub struct Interrupts(CtrlC);

impl Interrupts {
    /// Listens from now on: Ctrl-C does not end this process any more. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> io::Result<Self> {
        ctrl_c().map(Self)
    }

    /// Returns when Ctrl-C was pressed; none if it cannot be pressed any more.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// The system tells this process to end, closes its console, or ends the session of the user; or Ctrl-Break was pressed.
#[derive(Debug)]
pub struct Termination {
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Termination {
    /// Listens from now on. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { ctrl_break: ctrl_break()?, close: ctrl_close()?, logoff: ctrl_logoff()?, shutdown: ctrl_shutdown()? })
    }

    /// Returns when this process is told to end, or is told again. Windows gives it some seconds then.
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
