//! Messages of hooks and of the kernel.

use amplifier_core::{Display, DisplayMessage, PortError};

use super::screen::Screen;

/// Shows messages on the terminal.
#[derive(Clone)]
pub struct TerminalDisplay {
    screen: Screen,
}

impl TerminalDisplay {
    /// A display on that screen.
    pub fn new(screen: Screen) -> Self {
        Self { screen }
    }
}

impl Display for TerminalDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(self.screen.try_message(message.level, &message.source, &message.text)?)
    }
}
