//! A rule as it is written in configuration.

use amplifier_core::{DefaultDecision, FlatOption, Level, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A rule as it is written: when it applies, and what it answers. At most one of `deny`, `ask`, `modify` and `inject`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleOptions {
    /// The condition, in CEL; without one the rule always applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Blocks the operation; the template is the reason that the agent reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// Lets a person decide; the template is the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// What the person can answer (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<FlatOption>>,
    /// Seconds to wait for the person (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub timeout: Option<f64>,
    /// What counts when nobody answered in time (`ask`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultDecision>,
    /// Changes the event's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modify: Option<ModifyOptions>,
    /// Tells the agent something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject: Option<String>,
    /// As whom the injected text speaks (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether the injected text is part of the next call to the model only (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// Whether the injected text is appended to the last tool's result, for the next call only (`inject`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_to_last_tool_result: Option<bool>,
    /// Shows a message to the person, alone or beside any of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How urgent the message is (`message`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Why the rule asks, changes or injects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a rule changes in the event's data. Places are JSON Pointers, such as `/tool_input/timeout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModifyOptions {
    /// What to put where; texts are templates.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// What to take away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Where to replace secrets by markers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redact: Option<Pointers>,
}

/// One JSON Pointer, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a JSON Pointer or a list of them")]
pub enum Pointers {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Pointers {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(pointer) => std::slice::from_ref(pointer),
            Self::Several(pointers) => pointers,
        }
    }
}
