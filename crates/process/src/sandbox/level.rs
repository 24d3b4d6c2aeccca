//! Levels of confinement, and the launchers for them.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::policy::Method;
use super::{ErrorContext, IMPOSSIBLE, POSSIBLE, Sandbox, SandboxError, SandboxPolicy};

/// The level of confinement on this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfinementLevel {
    /// Namespaces: the whole policy applies, and other processes and terminals are unreachable.
    Namespaces,
    /// Landlock: files are protected, and little else.
    Landlock {
        /// The reason why there are no namespaces.
        no_namespaces: SandboxError,
    },
    /// No confinement.
    None {
        /// The reason why there are no namespaces.
        no_namespaces: SandboxError,
        /// The reason why there is no Landlock.
        no_landlock: SandboxError,
    },
}

/// A sandbox and its level.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxChoice {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// The level of the sandbox.
    pub level: ConfinementLevel,
}

impl SandboxPolicy {
    /// Returns a sandbox with this policy that uses namespaces. `starter` are the words that start this program as a [launcher](super::launch).
    ///
    /// # Errors
    /// If a trial fails on this system.
    pub fn namespace_sandbox(&self, starter: &[OsString]) -> Result<Sandbox, SandboxError> {
        self.try_method(starter, Method::Namespaces)
    }

    /// Returns the strongest sandbox that works in a trial. At every level, programs run in their own session.
    ///
    /// The sandbox is empty if `starter` cannot start anything, as in a program that is not the launcher.
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

    /// Returns a launcher that only starts a session; an empty one if `starter` cannot start anything.
    pub fn session_sandbox(starter: &[OsString]) -> Sandbox {
        Self::default().try_method(starter, Method::Session).unwrap_or_default()
    }

    fn words(&self, starter: &[OsString], method: Method) -> Vec<OsString> {
        starter.iter().cloned().chain(self.arguments(method)).collect()
    }

    /// Runs the launcher without a program, as a trial.
    fn try_method(&self, starter: &[OsString], method: Method) -> Result<Sandbox, SandboxError> {
        let words = self.words(starter, method);
        let [program, arguments @ ..] = words.as_slice() else {
            return Err(SandboxError("no launcher is configured".to_owned()));
        };
        let mut check = Command::new(program);
        check.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = check.output().context("this program cannot start itself")?;
        if !ended.status.success() || ended.stdout != POSSIBLE.as_bytes() {
            let reason = String::from_utf8_lossy(&ended.stderr);
            let reason = reason.trim().trim_start_matches(IMPOSSIBLE);
            return Err(SandboxError(
                if reason.is_empty() { "the launcher ended without a reason" } else { reason }.to_owned(),
            ));
        }
        Ok(Sandbox::from_launcher(words, starter.len()))
    }
}
