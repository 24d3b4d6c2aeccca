//! What linters may do: they read what the agent wrote, and some run it.

use std::sync::Arc;

use amplifier_process::sandbox::Sandbox;

use super::ModuleContext;
use crate::bundle::{Confine, Confinement, MayWrite};

/// What they may do unless something else is said.
const USUAL: Confine = Confine { network: false, write: MayWrite::Temporary };

/// The sandbox of a linter.
#[derive(Clone, Debug)]
pub(super) enum LinterLauncher {
    /// One that confines it.
    Confined(Sandbox),
    /// Nothing, because that is what the user wants, or there is nothing here that confines.
    Unconfined,
    /// That of the agent's commands, because the system cannot do more; this is why.
    Limited { sandbox: Sandbox, why: Arc<str> },
}

impl LinterLauncher {
    /// What the options say. Who asks for confinement gets it or an error; who asks for nothing gets it where it can be had.
    pub(super) fn new(options: Option<Confinement>, context: &ModuleContext<'_>) -> Result<Self, String> {
        let host = context.host;
        let confine = match options {
            Some(Confinement::Off(_)) if context.is_own => return Ok(Self::Unconfined),
            Some(Confinement::Off(_)) => return Ok(Self::Confined(host.usual_sandbox(&[])?)),
            Some(Confinement::To(confine)) => confine,
            None if !host.confines() => return Ok(Self::Unconfined),
            None => USUAL,
        };
        match (host.sandbox_for(&confine), options) {
            (Ok(sandbox), _) => Ok(Self::Confined(sandbox)),
            (Err(why), None) => Ok(Self::Limited { sandbox: host.usual_sandbox(&[])?, why: why.into() }),
            (Err(why), Some(_)) => Err(format!("`confine`: it cannot be confined: {why}")),
        }
    }

    pub(super) fn sandbox(&self) -> Sandbox {
        match self {
            Self::Confined(sandbox) | Self::Limited { sandbox, .. } => sandbox.clone(),
            Self::Unconfined => Sandbox::default(),
        }
    }

    /// Why it is not confined though it should be.
    pub(super) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Limited { why, .. } => Some(why),
            Self::Confined(_) | Self::Unconfined => None,
        }
    }
}
