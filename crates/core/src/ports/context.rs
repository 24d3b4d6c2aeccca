//! Adding to what the agent knows.

use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;

use super::{BoxFuture, PortError};
use crate::event::{EventName, Map, rfc3339};
use crate::result::{Placement, Role};

/// The agent's conversation, as far as hooks add to it.
pub trait ContextManager: Send + Sync + 'static {
    /// Adds a message. Where it lands is the manager's duty: never between a tool call and its result, and an
    /// ephemeral one in the next call only. [`Conversation`](crate::Conversation) does it right.
    ///
    /// # Errors
    /// If it cannot be added; this is logged, recorded and shown, and the agent goes on.
    fn add_message(&self, message: InjectedMessage) -> impl Future<Output = Result<(), PortError>> + Send;
}

impl<T: ContextManager> ContextManager for Arc<T> {
    fn add_message(&self, message: InjectedMessage) -> impl Future<Output = Result<(), PortError>> + Send {
        T::add_message(self, message)
    }
}

/// A message that hooks add to the conversation, with where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct InjectedMessage {
    /// As whom it speaks.
    pub role: Role,
    /// What it says.
    pub content: String,
    /// Where it lands, and how long it stays.
    pub placement: Placement,
    /// The hooks that said it.
    pub hooks: Vec<Arc<str>>,
    /// The event at which they said it.
    pub event: EventName,
    /// The tool call that the event is about, if it is about one.
    pub tool_call_id: Option<String>,
    /// When.
    pub at: SystemTime,
}

impl InjectedMessage {
    /// Where the message came from, as it is stored with the message.
    pub fn metadata(&self) -> Map {
        let fields = [
            ("source", json!("hook")),
            ("hook_name", json!(self.hooks.join(", "))),
            ("event", json!(self.event.as_str())),
            ("timestamp", json!(rfc3339(self.at))),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

pub(crate) trait AnyContextManager: Send + Sync {
    fn add(&self, message: InjectedMessage) -> BoxFuture<'_, Result<(), PortError>>;
}

impl<T: ContextManager> AnyContextManager for T {
    fn add(&self, message: InjectedMessage) -> BoxFuture<'_, Result<(), PortError>> {
        Box::pin(async move { self.add_message(message).await })
    }
}
