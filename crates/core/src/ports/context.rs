//! The port for the agent's conversation.

use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;

use super::{BoxFuture, PortError};
use crate::event::{EventName, Map, rfc3339};
use crate::result::{Placement, Role};

/// The agent's conversation, as far as hooks add to it.
pub trait ContextManager: Send + Sync + 'static {
    /// Adds a message. The manager chooses the position: never between a tool call and its result, and an ephemeral one in the
    /// next call only. [`Conversation`](crate::Conversation) follows these rules.
    ///
    /// # Errors
    /// If the message cannot be added; the failure is logged, recorded and shown, and the agent continues.
    fn add_message(&self, message: InjectedMessage) -> impl Future<Output = Result<(), PortError>> + Send;
}

impl<T: ContextManager> ContextManager for Arc<T> {
    fn add_message(&self, message: InjectedMessage) -> impl Future<Output = Result<(), PortError>> + Send {
        T::add_message(self, message)
    }
}

/// A message that hooks add to the conversation, with its source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InjectedMessage {
    /// The role of the message.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The position and lifetime in the conversation.
    pub placement: Placement,
    /// The hooks that added it.
    pub hooks: Vec<Arc<str>>,
    /// The event.
    pub event: EventName,
    /// The tool call of the event, if it has one.
    pub tool_call_id: Option<String>,
    /// The time.
    pub at: SystemTime,
}

impl InjectedMessage {
    /// Returns the source of the message, as stored with the message.
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
