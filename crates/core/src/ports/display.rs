//! The port for displays.

use std::future::Future;
use std::sync::Arc;

use super::{BoxFuture, PortError};
use crate::approval::ApprovalDecision;
use crate::result::{Level, Placement};

/// Shows the messages of hooks.
pub trait Display: Send + Sync + 'static {
    /// Shows a message.
    ///
    /// # Errors
    /// If the message cannot be shown; the failure is logged and recorded, and the agent continues.
    fn show_message(&self, message: &DisplayMessage) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Shows the output of a hook in the transcript.
    ///
    /// # Errors
    /// As for messages.
    fn show_output(&self, source: &str, output: &str) -> impl Future<Output = Result<(), PortError>> + Send {
        let message = DisplayMessage { text: output.to_owned(), level: Level::Info, source: source.to_owned() };
        async move { self.show_message(&message).await }
    }

    /// Shows that a hook added to the conversation; nothing by default.
    ///
    /// # Errors
    /// As for messages.
    fn show_context(&self, added: &AddedContext) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = added;
        std::future::ready(Ok(()))
    }

    /// Shows the decision on an approval request, also if no user was asked; nothing by default.
    ///
    /// # Errors
    /// As for messages.
    fn show_decision(&self, decided: &ReportedDecision) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = decided;
        std::future::ready(Ok(()))
    }
}

/// The decision on an approval request, for a display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedDecision {
    /// The hook that requested approval.
    pub hook: Arc<str>,
    /// The prompt.
    pub prompt: String,
    /// The decision.
    pub decision: ApprovalDecision,
}

/// A text that a hook added to the conversation of the agent. A display shows that it was added, not its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddedContext {
    /// The hook.
    pub hook: Arc<str>,
    /// The size in tokens.
    pub tokens: usize,
    /// The position and lifetime in the conversation.
    pub placement: Placement,
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayMessage {
    /// The text.
    pub text: String,
    /// The urgency.
    pub level: Level,
    /// The source: `hook:<name>`, or `kernel`.
    pub source: String,
}

impl std::fmt::Display for DisplayMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}] {}", self.level.as_str(), self.source, self.text)
    }
}

impl<T: Display> Display for Arc<T> {
    fn show_message(&self, message: &DisplayMessage) -> impl Future<Output = Result<(), PortError>> + Send {
        T::show_message(self, message)
    }

    fn show_output(&self, source: &str, output: &str) -> impl Future<Output = Result<(), PortError>> + Send {
        T::show_output(self, source, output)
    }

    fn show_context(&self, added: &AddedContext) -> impl Future<Output = Result<(), PortError>> + Send {
        T::show_context(self, added)
    }

    fn show_decision(&self, decided: &ReportedDecision) -> impl Future<Output = Result<(), PortError>> + Send {
        T::show_decision(self, decided)
    }
}

pub(crate) struct DisplayFn<F>(pub(crate) F);

impl<F: Fn(&DisplayMessage) + Send + Sync + 'static> Display for DisplayFn<F> {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        (self.0)(message);
        Ok(())
    }
}

pub(crate) trait AnyDisplay: Send + Sync {
    fn message<'a>(&'a self, message: &'a DisplayMessage) -> BoxFuture<'a, Result<(), PortError>>;
    fn output<'a>(&'a self, source: &'a str, output: &'a str) -> BoxFuture<'a, Result<(), PortError>>;
    fn context<'a>(&'a self, added: &'a AddedContext) -> BoxFuture<'a, Result<(), PortError>>;
    fn decision<'a>(&'a self, decided: &'a ReportedDecision) -> BoxFuture<'a, Result<(), PortError>>;
}

impl<T: Display> AnyDisplay for T {
    fn message<'a>(&'a self, message: &'a DisplayMessage) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.show_message(message).await })
    }

    fn output<'a>(&'a self, source: &'a str, output: &'a str) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.show_output(source, output).await })
    }

    fn context<'a>(&'a self, added: &'a AddedContext) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.show_context(added).await })
    }

    fn decision<'a>(&'a self, decided: &'a ReportedDecision) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.show_decision(decided).await })
    }
}

/// A display for programs without a screen: messages become `tracing` events of the same level.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogDisplay;

impl Display for LogDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        let DisplayMessage { text, level, source } = message;
        match level {
            Level::Info => tracing::info!(%source, "{text}"),
            Level::Warning => tracing::warn!(%source, "{text}"),
            Level::Error => tracing::error!(%source, "{text}"),
        }
        Ok(())
    }
}
