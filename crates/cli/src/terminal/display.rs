//! Messages from hooks and the kernel.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::text::counted;
use amplifier_core::{AddedContext, Display, DisplayMessage, Placement, PortError};

use super::screen::Screen;

/// Shows messages on the terminal.
#[derive(Clone)]
pub struct TerminalDisplay {
    screen: Screen,
    /// Hooks whose context for a single call was shown: many add it to each call. A std lock: nothing awaits while it is held.
    ephemeral: Arc<Mutex<HashSet<Arc<str>>>>,
}

impl TerminalDisplay {
    /// Creates a display on `screen`.
    pub fn new(screen: Screen) -> Self {
        Self { screen, ephemeral: Arc::default() }
    }
}

impl Display for TerminalDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(self.screen.try_message(message.level, &message.source, &message.text)?)
    }

    async fn show_context(&self, added: &AddedContext) -> Result<(), PortError> {
        let AddedContext { hook, tokens, placement, .. } = added;
        let is_once = *placement == Placement::NextCall;
        if is_once && !self.ephemeral.lock().unwrap_or_else(PoisonError::into_inner).insert(hook.clone()) {
            return Ok(());
        }
        let (hook, tokens) = (hook.trim_start_matches("./"), counted(tokens, "token"));
        let times = if is_once { "; not shown again" } else { "" };
        self.screen.note(&format!("↳ {hook} added context ({tokens}{times})"));
        Ok(())
    }
}
