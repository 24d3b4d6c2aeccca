//! The flat form of hook results, used in JSON, Python, commands and servers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    Action, Approval, ApprovalOption, DefaultDecision, HookError, HookResult, Injection, Level, Placement, Role,
    UserMessage,
};
use crate::event::{Data, DataChange, EventData, Map};
use crate::text::{EscapeMode, truncate_chars, visible};
use crate::words::words;

/// A hook result with all its fields side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "HookResult")]
pub struct FlatResult<T = Map> {
    /// The action.
    pub action: FlatAction,
    /// The changed event data (`modify`), or a response for `emit_and_collect` (`continue`).
    pub data: Option<T>,
    /// The reason of the action; the agent reads it when the operation is denied.
    pub reason: Option<String>,
    /// Text for the agent's conversation (`inject_context`).
    pub context_injection: Option<String>,
    /// The role of the injected text.
    pub context_injection_role: Role,
    /// `true` if the injected text is part of the next call to the model only.
    pub ephemeral: bool,
    /// `true` if an ephemeral injection is appended to the last tool's result.
    pub append_to_last_tool_result: bool,
    /// The prompt of the approval request (`ask_user`).
    pub approval_prompt: Option<String>,
    /// The options of the approver; "Allow" and "Deny" if not given.
    pub approval_options: Option<Vec<FlatOption>>,
    /// The time limit of the request in seconds.
    #[schemars(range(min = 0.0))]
    pub approval_timeout: f64,
    /// The decision after the time limit.
    pub approval_default: DefaultDecision,
    /// `true` if the approval is requested only when no other hook of the emission requests one.
    pub approval_fallback: bool,
    /// `true` if the hook's own output is left out of the transcript.
    pub suppress_output: bool,
    /// A message for the user.
    pub user_message: Option<String>,
    /// The urgency of the message.
    pub user_message_level: Level,
    /// The name to show with the message instead of the hook's.
    pub user_message_source: Option<String>,
}

words! {
    /// The action of the flat form.
    #[derive(Default, JsonSchema)]
    pub enum FlatAction("action") {
        /// Proceed.
        #[default]
        Continue = "continue",
        /// Deny the operation.
        Deny = "deny",
        /// Proceed with changed data.
        Modify = "modify",
        /// Add text to the conversation.
        InjectContext = "inject_context",
        /// Request an approval.
        AskUser = "ask_user",
    }
}

/// An option of the flat form: a well-known label, or a label with its effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an option is a label, or an object with `label` and `effect`; in YAML, yes and no need quotes to be labels: \"Yes\", \"No\""
)]
pub enum FlatOption {
    /// A label alone.
    Label(String),
    /// A label with its effect.
    Stated(ApprovalOption),
}

impl<T> Default for FlatResult<T> {
    fn default() -> Self {
        Self {
            action: FlatAction::default(),
            data: None,
            reason: None,
            context_injection: None,
            context_injection_role: Role::default(),
            ephemeral: false,
            append_to_last_tool_result: false,
            approval_prompt: None,
            approval_options: None,
            approval_timeout: Approval::TIMEOUT.as_secs_f64(),
            approval_default: DefaultDecision::default(),
            approval_fallback: false,
            suppress_output: false,
            user_message: None,
            user_message_level: Level::default(),
            user_message_source: None,
        }
    }
}

impl From<ApprovalOption> for FlatOption {
    fn from(option: ApprovalOption) -> Self {
        let plain = ApprovalOption::from(option.label.as_str());
        if plain == option { Self::Label(option.label) } else { Self::Stated(option) }
    }
}

impl From<FlatOption> for ApprovalOption {
    fn from(option: FlatOption) -> Self {
        match option {
            FlatOption::Label(label) => label.into(),
            FlatOption::Stated(option) => option,
        }
    }
}

impl<T> FlatResult<T> {
    /// Converts the data to another type.
    ///
    /// # Errors
    /// If the data cannot be converted.
    pub fn try_map_data<U, E>(self, convert: impl FnOnce(T) -> Result<U, E>) -> Result<FlatResult<U>, E> {
        Ok(FlatResult {
            action: self.action,
            data: self.data.map(convert).transpose()?,
            reason: self.reason,
            context_injection: self.context_injection,
            context_injection_role: self.context_injection_role,
            ephemeral: self.ephemeral,
            append_to_last_tool_result: self.append_to_last_tool_result,
            approval_prompt: self.approval_prompt,
            approval_options: self.approval_options,
            approval_timeout: self.approval_timeout,
            approval_default: self.approval_default,
            approval_fallback: self.approval_fallback,
            suppress_output: self.suppress_output,
            user_message: self.user_message,
            user_message_level: self.user_message_level,
            user_message_source: self.user_message_source,
        })
    }

    /// Returns the injection. The flat view of an emission may have one beside another action.
    pub fn injection(&self) -> Option<Injection> {
        let text = self.context_injection.clone()?;
        let placement = match (self.ephemeral, self.append_to_last_tool_result) {
            (false, _) => Placement::History,
            (true, false) => Placement::NextCall,
            (true, true) => Placement::LastToolResult,
        };
        Some(Injection { text, role: self.context_injection_role, placement })
    }

    pub(crate) fn set_injection(&mut self, injection: Injection) {
        self.context_injection = Some(injection.text);
        self.context_injection_role = injection.role;
        self.ephemeral = injection.placement.is_ephemeral();
        self.append_to_last_tool_result = injection.placement == Placement::LastToolResult;
    }

    pub(crate) fn set_approval(&mut self, approval: Approval) {
        self.approval_prompt = Some(approval.prompt);
        if !approval.options.is_empty() {
            self.approval_options = Some(approval.options.into_iter().map(Into::into).collect());
        }
        self.approval_timeout = approval.timeout.as_secs_f64();
        self.approval_default = approval.default;
        self.approval_fallback = approval.fallback;
    }

    pub(crate) fn set_message(&mut self, message: UserMessage) {
        self.user_message = Some(message.text);
        self.user_message_level = message.level;
        self.user_message_source = message.source;
    }
}

impl<O> HookResult<O> {
    /// Reads the flat form.
    ///
    /// # Errors
    /// [`HookError::InvalidAnswer`] if a required field is missing or the time limit is invalid; with the action `continue`
    /// [`HookError::Unreadable`].
    pub fn from_flat(flat: FlatResult<O>) -> Result<Self, HookError> {
        let is_continue = flat.action == FlatAction::Continue;
        let unreadable = |what: &str| {
            let what = format!("{CANNOT_READ}: {what}");
            if is_continue { HookError::Unreadable(what) } else { HookError::InvalidAnswer(what) }
        };
        // Checked for every action: a negative time is always a mistake.
        let seconds = flat.approval_timeout;
        if !(seconds.is_finite() && seconds >= 0.0) {
            return Err(unreadable(&format!("`approval_timeout` is {seconds}")));
        }
        // A time limit that is too long for any clock is a valid one.
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let action = match flat.action {
            FlatAction::Continue => flat.data.map_or(Action::Continue, Action::Respond),
            FlatAction::Deny => Action::Deny,
            FlatAction::Modify => {
                let data = flat.data.ok_or_else(|| unreadable("`modify` needs `data`"))?;
                Action::Modify(DataChange::Replace(data))
            }
            FlatAction::InjectContext => {
                let injection = flat.injection();
                let injection = injection.ok_or_else(|| unreadable("`inject_context` needs `context_injection`"))?;
                Action::InjectContext(Box::new(injection))
            }
            FlatAction::AskUser => Action::AskUser(Box::new(Approval {
                prompt: flat.approval_prompt.unwrap_or_else(|| Approval::PROMPT.to_owned()),
                options: flat.approval_options.into_iter().flatten().map(Into::into).collect(),
                timeout,
                default: flat.approval_default,
                fallback: flat.approval_fallback,
            })),
        };
        let (level, source) = (flat.user_message_level, flat.user_message_source);
        Ok(Self {
            action,
            reason: flat.reason,
            message: flat.user_message.map(|text| Box::new(UserMessage { text, level, source })),
            output: None,
            suppress_output: flat.suppress_output,
        })
    }

    /// Returns the flat form for an event with that data, without captured output.
    pub fn into_flat(self, data: &impl Data<Object = O>) -> FlatResult<O> {
        let mut flat =
            FlatResult { reason: self.reason, suppress_output: self.suppress_output, ..FlatResult::default() };
        match self.action {
            Action::Continue => {}
            Action::Respond(answer) => flat.data = Some(answer),
            Action::Deny => flat.action = FlatAction::Deny,
            Action::Modify(change) => {
                flat.action = FlatAction::Modify;
                flat.data = Some(data.changed(change));
            }
            Action::InjectContext(injection) => {
                flat.action = FlatAction::InjectContext;
                flat.set_injection(*injection);
            }
            Action::AskUser(approval) => {
                flat.action = FlatAction::AskUser;
                flat.set_approval(*approval);
            }
        }
        if let Some(message) = self.message {
            flat.set_message(*message);
        }
        flat
    }
}

pub(super) const CANNOT_READ: &str = "the answer cannot be read";

/// Describes the position of the error without the value: errors are logged, and results may contain secrets.
fn unreadable_json(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let (path, text) = (error.path().to_string(), error.inner().to_string());
    // The last match: an earlier one may be part of the value.
    let text = match text.rsplit_once(", expected ") {
        // `invalid type: string "…", expected a boolean`
        Some((found, expected)) if found.starts_with("invalid") => {
            let found = found.split(['"', '`']).next().unwrap_or_default().trim_end();
            format!("{found}, expected {expected}")
        }
        _ => text,
    };
    let place = if path == "." { String::new() } else { format!(" in `{}`", plain(&path, 60)) };
    format!("{CANNOT_READ}{place}: {}", plain(&text, 400))
}

fn plain(text: &str, longest: usize) -> String {
    truncate_chars(&visible(text, EscapeMode::Exact), longest).into_owned()
}

impl HookResult {
    /// Reads a result from JSON: `null` is `continue`, an object is the flat form.
    ///
    /// ```
    /// use amplifier_core::HookResult;
    /// use serde_json::json;
    ///
    /// let denied = HookResult::from_json(json!({ "action": "deny", "reason": "no rm" }));
    /// assert_eq!(denied, Ok(HookResult::deny("no rm")));
    ///
    /// let misspelt = HookResult::from_json(json!({ "acton": "deny" })).unwrap_err();
    /// assert!(misspelt.to_string().contains("unknown field `acton`"));
    /// ```
    ///
    /// # Errors
    /// [`HookError::InvalidAnswer`] for an invalid object that states an action other than `continue`, [`HookError::Unreadable`]
    /// for everything else.
    pub fn from_json(answer: Value) -> Result<Self, HookError> {
        match answer {
            Value::Null => Ok(Self::proceed()),
            Value::Object(_) => serde_path_to_error::deserialize(&answer)
                .map_err(|error| HookError::unreadable(&answer, unreadable_json(&error)))
                .and_then(Self::from_flat),
            other => {
                let kind = match other {
                    Value::Bool(_) => "a boolean",
                    Value::Number(_) => "a number",
                    Value::String(_) => "a text",
                    _ => "a list",
                };
                Err(HookError::Unreadable(format!("{CANNOT_READ}: expected an object, found {kind}")))
            }
        }
    }
}

/// Serializes the flat form. A single changed field has none: [`HookResult::into_flat`] converts it with the event's data.
impl Serialize for HookResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Action::Modify(DataChange::Set(..)) = self.action {
            return Err(serde::ser::Error::custom("setting one field needs the event's data: use `into_flat`"));
        }
        self.clone().into_flat(&EventData::new()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HookResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
