//! Messages from hooks and the kernel.

use amplifier_core::{Display, DisplayMessage, PortError};

use super::screen::Screen;

/// Shows messages on the terminal.
#[derive(Clone)]
pub struct TerminalDisplay {
    screen: Screen,
}

impl TerminalDisplay {
    /// Creates a display on `screen`.
    pub fn new(screen: Screen) -> Self {
        Self { screen }
    }
}

impl Display for TerminalDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(self.screen.try_message(message.level, &message.source, &message.text)?)
    }
}
