//! The conversation of a session, as hooks add to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{ContextManager, Conversation, InjectedMessage, Message, PortError};

/// A conversation that can say what was injected at one event, and lead it elsewhere. A handle: clones share it.
#[derive(Clone, Default)]
pub(crate) struct SessionContext {
    pub(crate) conversation: Conversation,
    // A std lock: nothing awaits while it is held.
    captured: Arc<Mutex<Option<CapturedInjections>>>,
}

struct CapturedInjections {
    /// The event at which they are said. What is said elsewhere meanwhile is not meant.
    event: &'static str,
    injected: Vec<InjectedMessage>,
    /// Whether they are kept out of the conversation, because they are meant for another one.
    diverted: bool,
}

impl SessionContext {
    /// From now on, injections of the event are remembered; diverted ones do not reach the conversation.
    pub(crate) fn capture_injections(&self, event: &'static str, diverted: bool) {
        *self.lock() = Some(CapturedInjections { event, injected: Vec::new(), diverted });
    }

    /// What was injected since.
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

/// Where a conversation can be cut without parting a tool call from its result: not at a result.
pub(crate) fn is_cut_point(messages: &[Message], at: usize) -> bool {
    messages.get(at).is_none_or(|message| message.tool_call_id.is_none())
}

/// Gives every call that has no result one, where it belongs: a crash came before the result, or the turn was given up.
pub(crate) fn with_all_results(history: Vec<Message>) -> Vec<Message> {
    let missing_result = |id: String| Message::tool_result(id, "The session ended before this was done.");
    let mut complete = Vec::with_capacity(history.len());
    let mut open: Vec<String> = Vec::new();
    for message in history {
        match &message.tool_call_id {
            // A result whose call is gone would be refused by every model.
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
