//! What linters may do: they read what the agent wrote, and some run it.

use std::ffi::OsString;
use std::sync::Arc;

use super::Place;
use crate::bundle::{Confine, Confinement, MayWrite};

/// What they may do unless something else is said.
const USUAL: Confine = Confine { network: false, write: MayWrite::Temporary };

/// What stands before the command of a linter.
#[derive(Clone, Debug)]
pub(super) enum Launcher {
    /// Words that confine it.
    Confined(Arc<[OsString]>),
    /// Nothing, because that is what the user wants, or there is nothing here that confines.
    Free,
    /// What stands before the agent's commands, because the system cannot do more; this is why.
    Weaker { words: Arc<[OsString]>, why: Arc<str> },
}

impl Launcher {
    /// What the options say. Who asks for confinement gets it or an error; who asks for nothing gets it where it can be had.
    pub(super) fn new(options: Option<Confinement>, place: &Place<'_>) -> Result<Self, String> {
        let host = place.host;
        let confine = match options {
            Some(Confinement::Off(_)) if place.is_own => return Ok(Self::Free),
            Some(Confinement::Off(_)) => return Ok(Self::Confined(host.usual_launcher(&[])?.into())),
            Some(Confinement::To(confine)) => confine,
            None if !host.confines() => return Ok(Self::Free),
            None => USUAL,
        };
        match (host.launcher(&confine), options) {
            (Ok(words), _) => Ok(Self::Confined(words.into())),
            (Err(why), None) => Ok(Self::Weaker { words: host.usual_launcher(&[])?.into(), why: why.into() }),
            (Err(why), Some(_)) => Err(format!("`confine`: it cannot be confined: {why}")),
        }
    }

    pub(super) fn words(&self) -> &[OsString] {
        match self {
            Self::Confined(words) | Self::Weaker { words, .. } => words,
            Self::Free => &[],
        }
    }

    /// Why it is not confined though it should be.
    pub(super) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Weaker { why, .. } => Some(why),
            Self::Confined(_) | Self::Free => None,
        }
    }
}
