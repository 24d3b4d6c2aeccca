//! The answer of a hook, in a form in which nonsense cannot be written.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde_json::Value;

use super::{Approval, Injection};
use crate::event::{DataChange, Map};
use crate::words::words;

/// What a hook answers: one action, and what it tells the person beside it.
///
/// The type parameter is the object of the [`Data`](crate::Data) that the hook answers to: JSON, unless another language
/// brings its own.
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
    /// What is to happen.
    pub action: Action<O>,
    /// Why; the agent reads it when it is blocked.
    pub reason: Option<String>,
    /// What to show to the person, apart from what the agent reads.
    pub message: Option<Box<UserMessage>>,
    /// What the hook printed while it ran, if it runs in a place where that is caught.
    pub output: Option<Box<str>>,
    /// Whether `output` is kept out of the transcript.
    pub suppress_output: bool,
}

/// What is to happen with the operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<O = Map> {
    /// Go on.
    Continue,
    /// Go on, and give this to whoever collects answers with `emit_and_collect`.
    Respond(O),
    /// Block the operation.
    Deny,
    /// Go on with changed data.
    Modify(DataChange<O>),
    /// Go on, and tell the agent something.
    InjectContext(Box<Injection>),
    /// Go on only if a person agrees.
    AskUser(Box<Approval>),
}

/// A message for the person in front of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// What to show.
    pub text: String,
    /// How urgent it is.
    pub level: Level,
}

words! {
    /// How urgent a message is.
    #[derive(Default, PartialOrd, Ord, JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageLevel))]
    pub enum Level("level") {
        /// For information.
        #[default]
        Info = "info",
        /// Something should be looked at.
        Warning = "warning",
        /// Something failed.
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
        /// Goes on.
        Continue = "continue",
        /// Goes on, and returns an object to those who collect them.
        Respond = "respond",
        /// Blocks the operation.
        Deny = "deny",
        /// Changes the data.
        Modify = "modify",
        /// Tells the agent something.
        InjectContext = "inject_context",
        /// Requests an approval.
        AskUser = "ask_user",
        /// Returned an error.
        Failed = "failed",
        /// Panicked.
        Panicked = "panicked",
        /// Did not answer within its time limit.
        TimedOut = "timed_out",
        /// Answered something that is no result, or could not read the event.
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
    /// The decision of an emission, in a word.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DecisionKind("decision") {
        /// The operation goes on.
        Continue = "continue",
        /// The operation goes on with changed data.
        Modify = "modify",
        /// The operation goes on, and the agent is told something.
        InjectContext = "inject_context",
        /// The operation goes on if an approver agrees.
        AskUser = "ask_user",
        /// The operation does not go on.
        Deny = "deny",
        /// The emission was given up.
        Cancelled = "cancelled",
    }
}

impl DecisionKind {
    /// Returns the decision of an emission in which one hook returned this action.
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

// For JSON only: with the type parameter open, `HookResult::deny("no")` alone would not tell which it is.
impl HookResult {
    /// Goes on: the hook has nothing to say.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Goes on, with an answer for `emit_and_collect`. It does not change the event.
    pub fn respond(answer: impl Into<Map>) -> Self {
        Action::Respond(answer.into()).into()
    }

    /// Blocks the operation. The agent reads the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Action::Deny.into() }
    }

    /// Replaces the data of the event, for the hooks that follow and for the operation.
    ///
    /// What is given is all that is left, apart from reserved fields and the timestamp: begin with a clone of the data, or
    /// use [`set`](Self::set) to change one field.
    pub fn modify(change: impl Into<DataChange>) -> Self {
        Action::Modify(change.into()).into()
    }

    /// Changes one field of the data, in place. The others stay.
    pub fn set(field: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        Action::Modify(DataChange::Set(field.into(), value.into())).into()
    }

    /// Adds to what the agent knows.
    pub fn inject(injection: impl Into<Injection>) -> Self {
        Action::InjectContext(Box::new(injection.into())).into()
    }

    /// Lets a person decide.
    pub fn ask(approval: impl Into<Approval>) -> Self {
        Action::AskUser(Box::new(approval.into())).into()
    }

    /// Says why.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Shows a message to the person.
    #[must_use]
    pub fn message(mut self, level: Level, text: impl Into<String>) -> Self {
        self.message = Some(Box::new(UserMessage { text: text.into(), level }));
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

    /// Hands over what the hook printed, for the transcript.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Box<str>>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Keeps what the hook printed out of the transcript. Tools and messages cannot be hidden.
    #[must_use]
    pub fn suppress_output(mut self) -> Self {
        self.suppress_output = true;
        self
    }
}
