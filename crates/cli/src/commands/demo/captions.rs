//! Captions of the demo, and the order in which they appear.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_agent::SessionObserver;
use amplifier_agent::provider::TokenUsage;
use amplifier_core::{AddedContext, Display, DisplayMessage, PortError, ReportedDecision, ToolCall};

use crate::session::TerminalObserver;
use crate::terminal::{Screen, TerminalDisplay};

/// Shows a session with captions. What hooks add to a result appears below the result. Cheap to clone; clones share state.
#[derive(Clone)]
pub(super) struct Captions {
    pub(super) observer: TerminalObserver,
    display: TerminalDisplay,
    screen: Screen,
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<PendingOutput>>,
}

/// Output that waits for the result of a running tool.
#[derive(Default)]
struct PendingOutput {
    is_tool_running: bool,
    captions: Vec<(&'static str, &'static str)>,
    messages: Vec<DisplayMessage>,
    added: Vec<AddedContext>,
}

impl Captions {
    pub(super) fn new(screen: &Screen) -> Self {
        let (observer, display) = (TerminalObserver::new(screen.clone()), TerminalDisplay::new(screen.clone()));
        Self { observer, display, screen: screen.clone(), state: Arc::default() }
    }

    /// Shows a caption at once: the hook acts before the call.
    pub(super) fn before(&self, label: &'static str, text: &'static str) {
        self.screen.heading(label, text);
    }

    /// Shows a caption below the result of the running tool.
    pub(super) fn after(&self, label: &'static str, text: &'static str) {
        self.state().captions.push((label, text));
    }

    fn state(&self) -> MutexGuard<'_, PendingOutput> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionObserver for Captions {
    fn thinking(&self) {
        self.observer.thinking();
    }

    fn text(&self, text: &str) {
        self.observer.text(text);
    }

    fn response_ended(&self, usage: &TokenUsage) {
        self.observer.response_ended(usage);
    }

    fn tool_started(&self, call: &ToolCall) {
        self.state().is_tool_running = true;
        self.observer.tool_started(call);
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        self.observer.tool_ended(call, success, output);
        let PendingOutput { captions, messages, added, .. } = std::mem::take(&mut *self.state());
        captions.into_iter().for_each(|(label, text)| self.screen.heading(label, text));
        for DisplayMessage { text, level, source } in messages {
            self.screen.message(level, &source, &text);
        }
        added.iter().for_each(|added| self.display.show_added(added));
    }

    fn note(&self, text: &str) {
        self.observer.note(text);
    }
}

impl Display for Captions {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        let is_deferred = {
            let mut state = self.state();
            if state.is_tool_running {
                state.messages.push(message.clone());
            }
            state.is_tool_running
        };
        if is_deferred { Ok(()) } else { self.display.show_message(message).await }
    }

    async fn show_context(&self, added: &AddedContext) -> Result<(), PortError> {
        let mut state = self.state();
        if state.is_tool_running {
            state.added.push(added.clone());
        } else {
            drop(state);
            self.display.show_added(added);
        }
        Ok(())
    }

    async fn show_decision(&self, decided: &ReportedDecision) -> Result<(), PortError> {
        self.display.show_decision(decided).await
    }
}
