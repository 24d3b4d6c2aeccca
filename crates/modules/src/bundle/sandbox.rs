//! Sandbox limits of a hook's program.

use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_process::sandbox::{SandboxError, SandboxPolicy};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Sandbox limits of a hook's program. `confine: {}` is the strictest: no writing and no network.
///
/// ```
/// use amplifier_modules::bundle::{SandboxConfig, WriteAccess};
///
/// assert_eq!(SandboxConfig::default(), SandboxConfig { network: false, write: WriteAccess::Nothing });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// `true` for access to the network.
    pub network: bool,
    /// Writable files: `none`, `temporary`, `workspace` or `all`.
    pub write: WriteAccess,
}

/// Rarely used folders, one of which becomes a program's own folder for temporary files.
const TEMPORARY: [&str; 2] = ["/dev/shm", "/mnt"];

impl SandboxConfig {
    /// Returns the policy of a hook in a workspace. Hidden files are unreadable: no hook needs the keys that sign the audit log.
    ///
    /// # Errors
    /// If no folder is free for temporary files.
    pub fn policy(&self, workspace: &Path, hidden: &[PathBuf]) -> Result<SandboxPolicy, SandboxError> {
        let temporary = match self.write {
            WriteAccess::Temporary => {
                let is_free = |folder: &&Path| folder.is_dir() && !workspace.starts_with(folder);
                let folder = TEMPORARY.iter().map(Path::new).find(is_free);
                let none = || SandboxError::new("no free folder for temporary files");
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

/// Files that a program can write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteAccess {
    /// No files.
    #[default]
    #[serde(rename = "none")]
    Nothing,
    /// An own folder, `TMPDIR`, which is empty at the start and deleted at the end.
    Temporary,
    /// Files in the workspace.
    Workspace,
    /// All files that the user can write to.
    All,
}

/// Reads `confine`. An empty value is an error, because the author of the bundle meant to set limits.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Confinement>, D::Error> {
    let given = Option::<Confinement>::deserialize(deserializer)?;
    given
        .map(Some)
        .ok_or_else(|| D::Error::custom("`confine` is empty; write `confine: {}` for no network and no writing"))
}

/// The `confine` option of a hook. Without it, programs run in the sandbox of the agent's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum Confinement {
    /// `false`: no sandbox. Applies in the user's own bundles only; ignored in a project's bundle.
    Off(#[schemars(extend("const" = false))] bool),
    /// Exactly these rights.
    To(SandboxConfig),
}

impl<'de> Deserialize<'de> for Confinement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ConfinementVisitor;

        impl<'de> Visitor<'de> for ConfinementVisitor {
            type Value = Confinement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sandbox limits, such as `{ network: true }`, or `false`")
            }

            fn visit_bool<E: Error>(self, given: bool) -> Result<Confinement, E> {
                match given {
                    false => Ok(Confinement::Off(false)),
                    true => Err(E::custom("expected sandbox limits, such as `{ network: true }`, or `false`")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Confinement, A::Error> {
                SandboxConfig::deserialize(MapAccessDeserializer::new(map)).map(Confinement::To)
            }
        }

        deserializer.deserialize_any(ConfinementVisitor)
    }
}
