//! Sandboxes of linters: linters read files that the agent wrote, and some run code from them.

use std::sync::Arc;

use amplifier_process::sandbox::Sandbox;

use super::ModuleContext;
use crate::bundle::{Confinement, SandboxConfig, WriteAccess};

const USUAL: SandboxConfig = SandboxConfig { network: false, write: WriteAccess::Temporary };

#[derive(Clone, Debug)]
pub(super) enum LinterLauncher {
    /// The configured or the default sandbox.
    Confined(Sandbox),
    /// No sandbox: disabled by the user, or not available in this program.
    Unconfined,
    /// The sandbox of the agent's commands, because the system does not support a stricter one; with the reason.
    Limited { sandbox: Sandbox, why: Arc<str> },
}

impl LinterLauncher {
    /// Creates the launcher from the options. An explicit sandbox is required; the default sandbox is used if available.
    pub(super) fn new(options: Option<Confinement>, context: &ModuleContext<'_>) -> Result<Self, String> {
        let host = context.host;
        let confine = match options {
            Some(Confinement::Off(_)) if context.is_own => return Ok(Self::Unconfined),
            Some(Confinement::Off(_)) => return Ok(Self::Confined(host.default_sandbox(&[])?)),
            Some(Confinement::To(confine)) => confine,
            None if !host.can_confine() => return Ok(Self::Unconfined),
            None => USUAL,
        };
        match (host.sandbox_for(&confine), options) {
            (Ok(sandbox), _) => Ok(Self::Confined(sandbox)),
            (Err(why), None) => Ok(Self::Limited { sandbox: host.default_sandbox(&[])?, why: why.into() }),
            (Err(why), Some(_)) => Err(format!("`confine`: the sandbox cannot be created: {why}")),
        }
    }

    pub(super) fn sandbox(&self) -> Sandbox {
        match self {
            Self::Confined(sandbox) | Self::Limited { sandbox, .. } => sandbox.clone(),
            Self::Unconfined => Sandbox::default(),
        }
    }

    /// Returns the reason for a weaker sandbox than intended.
    pub(super) fn limitation(&self) -> Option<&str> {
        match self {
            Self::Limited { why, .. } => Some(why),
            Self::Confined(_) | Self::Unconfined => None,
        }
    }
}
