//! How much a program is confined, and the launcher that does it.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::policy::Method;
use super::{ErrorContext, IMPOSSIBLE, POSSIBLE, Sandbox, SandboxError, SandboxPolicy};

/// How programs are kept from what is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfinementLevel {
    /// By namespaces: all that a policy says holds, and other processes and terminals are out of reach.
    Namespaces,
    /// By Landlock: files are protected, and less holds beside that.
    Landlock {
        /// The reason why there are no namespaces.
        no_namespaces: SandboxError,
    },
    /// Not at all.
    None {
        /// The reason why there are no namespaces.
        no_namespaces: SandboxError,
        /// The reason why there is no Landlock.
        no_landlock: SandboxError,
    },
}

/// A sandbox, and how much it confines.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxChoice {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// How much it confines.
    pub level: ConfinementLevel,
}

impl SandboxPolicy {
    /// The sandbox with this policy, in namespaces. `starter` are the words that start this program as a [launcher](super::launch).
    ///
    /// # Errors
    /// If this system cannot do it, which is tried.
    pub fn namespace_sandbox(&self, starter: &[OsString]) -> Result<Sandbox, SandboxError> {
        self.try_method(starter, Method::Namespaces)
    }

    /// The strongest launcher that works here, which is tried. Whatever its level, it starts programs in a session of their own.
    ///
    /// There is no sandbox if nothing can be started through `starter`, as in a program that is not the launcher.
    pub fn strongest_sandbox(&self, starter: &[OsString]) -> SandboxChoice {
        let no_namespaces = match self.try_method(starter, Method::Namespaces) {
            Ok(sandbox) => return SandboxChoice { sandbox, level: ConfinementLevel::Namespaces },
            Err(reason) => reason,
        };
        match self.try_method(starter, Method::Landlock) {
            Ok(sandbox) => SandboxChoice { sandbox, level: ConfinementLevel::Landlock { no_namespaces } },
            Err(no_landlock) => {
                let session = Self { pinned: self.pinned.clone(), ..Self::default() };
                let sandbox = session.try_method(starter, Method::Session).unwrap_or_default();
                SandboxChoice { sandbox, level: ConfinementLevel::None { no_namespaces, no_landlock } }
            }
        }
    }

    /// What gives a program a session of its own, and does not confine it; none if nothing can be started through `starter`.
    pub fn session_sandbox(starter: &[OsString]) -> Sandbox {
        Self::default().try_method(starter, Method::Session).unwrap_or_default()
    }

    fn words(&self, starter: &[OsString], method: Method) -> Vec<OsString> {
        starter.iter().cloned().chain(self.arguments(method)).collect()
    }

    /// Starts the launcher without a program, which tries all but that.
    fn try_method(&self, starter: &[OsString], method: Method) -> Result<Sandbox, SandboxError> {
        let words = self.words(starter, method);
        let [program, arguments @ ..] = words.as_slice() else {
            return Err(SandboxError("there is no launcher".to_owned()));
        };
        let mut check = Command::new(program);
        check.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = check.output().context("this program cannot start itself")?;
        if !ended.status.success() || ended.stdout != POSSIBLE.as_bytes() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.trim().trim_start_matches(IMPOSSIBLE);
            return Err(SandboxError(if said.is_empty() { "it ended and did not say why" } else { said }.to_owned()));
        }
        Ok(Sandbox::from_launcher(words, starter.len()))
    }
}
