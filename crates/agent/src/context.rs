//! The conversation of a session, as hooks add to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{ContextManager, Conversation, InjectedMessage, Message, PortError};

/// A conversation that can say what was injected at one event, and lead it elsewhere. A handle: clones share it.
#[derive(Clone, Default)]
pub(crate) struct Context {
    pub(crate) conversation: Conversation,
    // A std lock: nothing awaits while it is held.
    caught: Arc<Mutex<Option<Caught>>>,
}

struct Caught {
    /// The event at which they are said. What is said elsewhere meanwhile is not meant.
    event: &'static str,
    injected: Vec<InjectedMessage>,
    /// Whether they are kept out of the conversation, because they are meant for another one.
    diverted: bool,
}

impl Context {
    /// From now on, injections of the event are remembered; diverted ones do not reach the conversation.
    pub(crate) fn catch(&self, event: &'static str, diverted: bool) {
        *self.lock() = Some(Caught { event, injected: Vec::new(), diverted });
    }

    /// What was injected since.
    pub(crate) fn caught(&self) -> Vec<InjectedMessage> {
        self.lock().take().map_or_else(Vec::new, |caught| caught.injected)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Caught>> {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContextManager for Context {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        let diverted = match &mut *self.lock() {
            Some(caught) if message.event.as_str() == caught.event => {
                caught.injected.push(message.clone());
                caught.diverted
            }
            _ => false,
        };
        if diverted { Ok(()) } else { self.conversation.add_message(message).await }
    }
}

/// Where a conversation can be cut without parting a tool call from its result: not at a result.
pub(crate) fn is_cut(messages: &[Message], at: usize) -> bool {
    messages.get(at).is_none_or(|message| message.tool_call_id.is_none())
}

/// Gives every call that has no result one, where it belongs: a crash came before the result, or the turn was given up.
pub(crate) fn with_all_results(history: Vec<Message>) -> Vec<Message> {
    let unfinished = |id: String| Message::tool_result(id, "The session ended before this was done.");
    let mut whole = Vec::with_capacity(history.len());
    let mut open: Vec<String> = Vec::new();
    for message in history {
        match &message.tool_call_id {
            // A result whose call is gone would be refused by every model.
            Some(id) if !open.contains(id) => continue,
            Some(id) => open.retain(|call| call != id),
            None => whole.extend(open.drain(..).map(unfinished)),
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
        whole.push(message);
    }
    whole.extend(open.into_iter().map(unfinished));
    whole
}
