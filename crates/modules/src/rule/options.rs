//! Options of a rule.

use amplifier_core::{DefaultDecision, FlatOption, Level, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A rule in configuration: a condition, and at most one of `deny`, `ask`, `modify` and `inject`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleOptions {
    /// The condition, in CEL; without one the rule always applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Blocks the operation; the template is the reason that the agent reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// Requests approval from the user; the template is the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Answers offered to the user (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<FlatOption>>,
    /// Seconds to wait for the answer (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub timeout: Option<f64>,
    /// Decision after the timeout (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultDecision>,
    /// Changes the event's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modify: Option<ModifyOptions>,
    /// Adds text to the agent's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject: Option<String>,
    /// Role of the injected text (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// `true` if the injected text is part of the next call to the model only (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// `true` if the injected text is appended to the last tool's result, for the next call only (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_to_last_tool_result: Option<bool>,
    /// Shows a message to the user, alone or with any other action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Urgency of the message (`message`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Reason for the approval request, change or injection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Changes to the event's data. Positions are JSON Pointers, such as `/tool_input/timeout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModifyOptions {
    /// New values by position; texts are templates.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Positions to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Positions in which markers replace secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redact: Option<Pointers>,
}

/// One JSON Pointer, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a JSON Pointer or a list of them")]
pub enum Pointers {
    /// One pointer.
    One(String),
    /// Several pointers.
    Several(Vec<String>),
}

impl Pointers {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(pointer) => std::slice::from_ref(pointer),
            Self::Several(pointers) => pointers,
        }
    }
}
