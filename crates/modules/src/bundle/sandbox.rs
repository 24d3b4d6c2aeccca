//! What the program of a hook may do.

use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_process::sandbox::{SandboxError, SandboxPolicy};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// What the program of a hook may do. `confine: {}` is the strictest: it writes nothing and has no network.
///
/// ```
/// use amplifier_modules::bundle::{SandboxConfig, WriteAccess};
///
/// assert_eq!(SandboxConfig::default(), SandboxConfig { network: false, write: WriteAccess::Nothing });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Whether it has a network.
    pub network: bool,
    /// What it may write to: `none`, `temporary`, `workspace` or `all`.
    pub write: WriteAccess,
}

/// Folders that few keep anything in, one of which a program has as its own for temporary files.
const TEMPORARY: [&str; 2] = ["/dev/shm", "/mnt"];

impl SandboxConfig {
    /// The policy of a hook in a workspace. It cannot read what is hidden: no hook needs the keys that sign for what happens.
    ///
    /// # Errors
    /// If there is no place for its temporary folder.
    pub fn policy(&self, workspace: &Path, hidden: &[PathBuf]) -> Result<SandboxPolicy, SandboxError> {
        let temporary = match self.write {
            WriteAccess::Temporary => {
                let is_free = |folder: &&Path| folder.is_dir() && !workspace.starts_with(folder);
                let folder = TEMPORARY.iter().map(Path::new).find(is_free);
                let none = || SandboxError::new("there is no place for a temporary folder");
                Some(folder.ok_or_else(none)?.to_owned())
            }
            WriteAccess::Nothing | WriteAccess::Workspace | WriteAccess::All => None,
        };
        let writable = match self.write {
            WriteAccess::Nothing | WriteAccess::Temporary => Some(Vec::new()),
            WriteAccess::Workspace => Some(vec![workspace.to_owned()]),
            WriteAccess::All => None,
        };
        Ok(SandboxPolicy {
            writable,
            temporary,
            network: self.network,
            hidden: hidden.to_vec(),
            ..SandboxPolicy::default()
        })
    }
}

/// What a program may write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteAccess {
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
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Confinement>, D::Error> {
    let given = Option::<Confinement>::deserialize(deserializer)?;
    given
        .map(Some)
        .ok_or_else(|| D::Error::custom("`confine` is empty; write `confine: {}` for no network and no writing"))
}

/// What the programs of a hook may do, if its bundle says so. Without it, they run in the sandbox of the agent's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum Confinement {
    /// `false`: no sandbox, whatever the user can. It counts in the user's own bundles only; in a project's, it is as if nothing was said.
    Off(#[schemars(extend("const" = false))] bool),
    /// That and nothing else.
    To(SandboxConfig),
}

impl<'de> Deserialize<'de> for Confinement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ConfinementVisitor;

        impl<'de> Visitor<'de> for ConfinementVisitor {
            type Value = Confinement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("what it may do, such as `{ network: true }`, or `false`")
            }

            fn visit_bool<E: Error>(self, given: bool) -> Result<Confinement, E> {
                match given {
                    false => Ok(Confinement::Off(false)),
                    true => Err(E::custom("write what it may do, such as `{ network: true }`, or `false`")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Confinement, A::Error> {
                SandboxConfig::deserialize(MapAccessDeserializer::new(map)).map(Confinement::To)
            }
        }

        deserializer.deserialize_any(ConfinementVisitor)
    }
}
