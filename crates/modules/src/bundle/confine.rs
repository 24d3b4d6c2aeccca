//! What the program of a hook may do.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// What the program of a hook may do. `confine: {}` is the strictest: it writes nothing and has no network.
///
/// ```
/// use amplifier_modules::bundle::{Confine, MayWrite};
///
/// assert_eq!(Confine::default(), Confine { network: false, write: MayWrite::Nothing });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Confine {
    /// Whether it has a network.
    pub network: bool,
    /// What it may write to: `none`, `temporary`, `workspace` or `all`.
    pub write: MayWrite,
}

/// What a program may write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MayWrite {
    /// No file at all.
    #[default]
    #[serde(rename = "none")]
    Nothing,
    /// A folder of its own, `TMPDIR`, which is empty when it starts and gone when it has ended.
    Temporary,
    /// What is in the workspace.
    Workspace,
    /// Whatever its user can.
    All,
}

/// Reads `confine`, of which an empty value is a mistake: whoever writes the word means to confine.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Confine>, D::Error> {
    let given = Option::<Confine>::deserialize(deserializer)?;
    given.map(Some).ok_or_else(|| {
        serde::de::Error::custom("`confine` is empty; write `confine: {}` for no network and no writing")
    })
}

/// What the programs of a module may do, as its options have it: what `confine` of a hook says, or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Confinement {
    /// `false`: whatever their user can.
    Off(#[schemars(extend("const" = false))] bool),
    /// That and nothing else.
    To(Confine),
}

impl<'de> Deserialize<'de> for Confinement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        match given {
            Value::Bool(false) => Ok(Self::Off(false)),
            Value::Object(_) => Confine::deserialize(given).map(Self::To).map_err(serde::de::Error::custom),
            _ => Err(serde::de::Error::custom("write what it may do, such as `{ network: true }`, or `false`")),
        }
    }
}
