//! The conversation of a session, to which hooks add messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{ContextManager, Conversation, InjectedMessage, Message, PortError};

/// A conversation that can capture the injections of one event, and divert them. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub(crate) struct SessionContext {
    pub(crate) conversation: Conversation,
    // A std lock: nothing awaits while it is held.
    captured: Arc<Mutex<Option<CapturedInjections>>>,
}

struct CapturedInjections {
    /// Injections of other events are not captured.
    event: &'static str,
    injected: Vec<InjectedMessage>,
    /// `true` if the injections do not enter this conversation, because they are for another one.
    diverted: bool,
}

impl SessionContext {
    /// Captures the injections of the event from now on; diverted ones do not enter the conversation.
    pub(crate) fn capture_injections(&self, event: &'static str, diverted: bool) {
        *self.lock() = Some(CapturedInjections { event, injected: Vec::new(), diverted });
    }

    pub(crate) fn take_injections(&self) -> Vec<InjectedMessage> {
        self.lock().take().map_or_else(Vec::new, |captured| captured.injected)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CapturedInjections>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContextManager for SessionContext {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        let diverted = match &mut *self.lock() {
            Some(captured) if message.event.as_str() == captured.event => {
                captured.injected.push(message.clone());
                captured.diverted
            }
            _ => false,
        };
        if diverted { Ok(()) } else { self.conversation.add_message(message).await }
    }
}

/// Returns `true` if the conversation can be split before this message without separating a tool call from its result.
pub(crate) fn is_cut_point(messages: &[Message], at: usize) -> bool {
    messages.get(at).is_none_or(|message| message.tool_call_id.is_none())
}

/// Adds a result after each call that has none, because of a crash or an abandoned turn.
pub(crate) fn with_all_results(history: Vec<Message>) -> Vec<Message> {
    let missing_result = |id: String| Message::tool_result(id, "The session ended before this was done.");
    let mut complete = Vec::with_capacity(history.len());
    let mut open: Vec<String> = Vec::new();
    for message in history {
        match &message.tool_call_id {
            // Models reject a result without its call.
            Some(id) if !open.contains(id) => continue,
            Some(id) => open.retain(|call| call != id),
            None => complete.extend(open.drain(..).map(missing_result)),
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
        complete.push(message);
    }
    complete.extend(open.into_iter().map(missing_result));
    complete
}
