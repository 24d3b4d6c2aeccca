//! Hook results, in a form without invalid combinations.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde_json::Value;

use super::{Approval, Injection};
use crate::event::{DataChange, Map};
use crate::words::words;

/// The result of a hook: one action, with a reason and a message.
///
/// The type parameter is the object type of the event's [`Data`](crate::Data): JSON, unless another language uses its own.
///
/// ```
/// use amplifier_core::{Approval, HookResult, Injection};
///
/// HookResult::proceed();
/// HookResult::deny("no rm");
/// HookResult::set("tool_input", serde_json::json!({ "command": "ls" }));
/// HookResult::inject("ruff: line 42 is too long").warning("linter found an issue");
/// HookResult::inject(Injection::new("3 todos left").ephemeral()).suppress_output();
/// HookResult::ask(Approval::new("Write to production?").options(["Allow once", "Deny"]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HookResult<O = Map> {
    /// The action.
    pub action: Action<O>,
    /// The reason; the agent reads it when the operation is denied.
    pub reason: Option<String>,
    /// A message for the user.
    pub message: Option<Box<UserMessage>>,
    /// The output of the hook, if it is captured.
    pub output: Option<Box<str>>,
    /// `true` if `output` is left out of the transcript.
    pub suppress_output: bool,
}

/// The action of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<O = Map> {
    /// Proceed.
    Continue,
    /// Proceed, and return an object to callers of `emit_and_collect`.
    Respond(O),
    /// Deny the operation.
    Deny,
    /// Proceed with changed data.
    Modify(DataChange<O>),
    /// Proceed, and add text to the conversation.
    InjectContext(Box<Injection>),
    /// Proceed if an approver agrees.
    AskUser(Box<Approval>),
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The urgency.
    pub level: Level,
    /// The name to show instead of the hook's. Records have the hook's name.
    pub source: Option<String>,
}

words! {
    /// The urgency of a message.
    #[derive(Default, PartialOrd, Ord, JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageLevel))]
    pub enum Level("level") {
        /// Information.
        #[default]
        Info = "info",
        /// Warning.
        Warning = "warning",
        /// Failure.
        Error = "error",
    }
}

impl<O> Action<O> {
    /// Returns the action without its payload; a response is a `continue`.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Continue | Self::Respond(_) => ActionKind::Continue,
            Self::Deny => ActionKind::Deny,
            Self::Modify(_) => ActionKind::Modify,
            Self::InjectContext(_) => ActionKind::InjectContext,
            Self::AskUser(_) => ActionKind::AskUser,
        }
    }
}

words! {
    /// The action of a hook without its payload, or the kind of its failure.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum ActionKind("action") {
        /// Proceed.
        Continue = "continue",
        /// Proceed, and return an object to callers of `emit_and_collect`.
        Respond = "respond",
        /// Deny the operation.
        Deny = "deny",
        /// Change the data.
        Modify = "modify",
        /// Add text to the conversation.
        InjectContext = "inject_context",
        /// Request an approval.
        AskUser = "ask_user",
        /// Returned an error.
        Failed = "failed",
        /// Panicked.
        Panicked = "panicked",
        /// Exceeded its time limit.
        TimedOut = "timed_out",
        /// Returned an invalid result, or could not read the event.
        Unreadable = "unreadable",
    }
}

impl ActionKind {
    /// Returns `true` if the hook failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Panicked | Self::TimedOut | Self::Unreadable)
    }
}

words! {
    /// The decision of an emission without its denial.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DecisionKind("decision") {
        /// The operation proceeds.
        Continue = "continue",
        /// The operation proceeds with changed data.
        Modify = "modify",
        /// The operation proceeds, and text is added to the conversation.
        InjectContext = "inject_context",
        /// The operation proceeds if an approver agrees.
        AskUser = "ask_user",
        /// The operation is denied.
        Deny = "deny",
        /// The emission was cancelled.
        Cancelled = "cancelled",
    }
}

impl DecisionKind {
    pub(crate) fn from_action<O>(action: &Action<O>) -> Self {
        match action {
            Action::Continue | Action::Respond(_) => Self::Continue,
            Action::Deny => Self::Deny,
            Action::Modify(_) => Self::Modify,
            Action::InjectContext(_) => Self::InjectContext,
            Action::AskUser(_) => Self::AskUser,
        }
    }
}

impl<O> From<Action<O>> for HookResult<O> {
    fn from(action: Action<O>) -> Self {
        Self { action, reason: None, message: None, output: None, suppress_output: false }
    }
}

impl<O> Default for HookResult<O> {
    fn default() -> Self {
        Action::Continue.into()
    }
}

// For JSON only: the type parameter of `HookResult::deny("no")` could not be inferred.
impl HookResult {
    /// Proceeds without any effect.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Proceeds, with a response for `emit_and_collect`. The event does not change.
    pub fn respond(answer: impl Into<Map>) -> Self {
        Action::Respond(answer.into()).into()
    }

    /// Denies the operation. The agent reads the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Action::Deny.into() }
    }

    /// Replaces the data of the event, for later hooks and for the operation.
    ///
    /// All other data is lost, apart from reserved fields and the timestamp: begin with a clone of the data, or
    /// use [`set`](Self::set) to change one field.
    pub fn modify(change: impl Into<DataChange>) -> Self {
        Action::Modify(change.into()).into()
    }

    /// Changes one field of the data, in place. The others stay.
    pub fn set(field: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        Action::Modify(DataChange::Set(field.into(), value.into())).into()
    }

    /// Adds text to the agent's conversation.
    pub fn inject(injection: impl Into<Injection>) -> Self {
        Action::InjectContext(Box::new(injection.into())).into()
    }

    /// Requests an approval.
    pub fn ask(approval: impl Into<Approval>) -> Self {
        Action::AskUser(Box::new(approval.into())).into()
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Shows a message to the user.
    #[must_use]
    pub fn message(mut self, level: Level, text: impl Into<String>) -> Self {
        self.message = Some(Box::new(UserMessage { text: text.into(), level, source: None }));
        self
    }

    /// Shows a message of level `info`.
    #[must_use]
    pub fn info(self, text: impl Into<String>) -> Self {
        self.message(Level::Info, text)
    }

    /// Shows a message of level `warning`.
    #[must_use]
    pub fn warning(self, text: impl Into<String>) -> Self {
        self.message(Level::Warning, text)
    }

    /// Shows a message of level `error`.
    #[must_use]
    pub fn error(self, text: impl Into<String>) -> Self {
        self.message(Level::Error, text)
    }

    /// Sets the output of the hook, for the transcript.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Box<str>>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Leaves the output of the hook out of the transcript. Tools and messages cannot be hidden.
    #[must_use]
    pub fn suppress_output(mut self) -> Self {
        self.suppress_output = true;
        self
    }
}
