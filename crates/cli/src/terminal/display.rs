//! Messages from hooks and the kernel.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::text::counted;
use amplifier_core::{AddedContext, Display, DisplayMessage, Placement, PortError, ReportedDecision};

use super::decision::decision_line;
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

    /// Shows the hook that added context, and the size.
    pub(crate) fn show_added(&self, added: &AddedContext) {
        let AddedContext { hook, tokens, placement, .. } = added;
        let is_once = *placement == Placement::NextCall;
        if is_once && !self.ephemeral.lock().unwrap_or_else(PoisonError::into_inner).insert(hook.clone()) {
            return;
        }
        let (hook, tokens) = (hook.trim_start_matches("./"), counted(tokens, "token"));
        let times = if is_once { "; not shown again" } else { "" };
        self.screen.note(&format!("↳ {hook} added context ({tokens}{times})"));
    }
}

impl Display for TerminalDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(self.screen.try_message(message.level, &message.source, &message.text)?)
    }

    async fn show_context(&self, added: &AddedContext) -> Result<(), PortError> {
        self.show_added(added);
        Ok(())
    }

    async fn show_decision(&self, decided: &ReportedDecision) -> Result<(), PortError> {
        if let Some((head, text)) = decision_line(decided, self.screen.can_ask()) {
            self.screen.remark(head, &text);
        }
        Ok(())
    }
}
