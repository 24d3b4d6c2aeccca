//! How much a program is confined, and the launcher that does it.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::policy::Method;
use super::{Context, IMPOSSIBLE, NotConfined, POSSIBLE, Policy, Sandbox};

/// How programs are kept from what is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// By namespaces: all that a policy says holds, and other processes and terminals are out of reach.
    Namespaces,
    /// By Landlock: files are protected, and less holds beside that.
    Landlock {
        /// The reason why there are no namespaces.
        no_namespaces: NotConfined,
    },
    /// Not at all.
    None {
        /// The reason why there are no namespaces.
        no_namespaces: NotConfined,
        /// The reason why there is no Landlock.
        no_landlock: NotConfined,
    },
}

/// A sandbox, and how much it confines.
#[derive(Clone, Debug, PartialEq)]
pub struct Launcher {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// How much it confines.
    pub level: Level,
}

impl Policy {
    /// The sandbox with this policy, in namespaces. `starter` are the words that start this program as a [launcher](super::launch).
    ///
    /// # Errors
    /// If this system cannot do it, which is tried.
    pub fn launcher(&self, starter: &[OsString]) -> Result<Sandbox, NotConfined> {
        self.tried(starter, Method::Namespaces)
    }

    /// The strongest launcher that works here, which is tried. Whatever its level, it starts programs in a session of their own.
    ///
    /// There is no sandbox if nothing can be started through `starter`, as in a program that is not the launcher.
    pub fn strongest_launcher(&self, starter: &[OsString]) -> Launcher {
        let no_namespaces = match self.tried(starter, Method::Namespaces) {
            Ok(sandbox) => return Launcher { sandbox, level: Level::Namespaces },
            Err(reason) => reason,
        };
        match self.tried(starter, Method::Landlock) {
            Ok(sandbox) => Launcher { sandbox, level: Level::Landlock { no_namespaces } },
            Err(no_landlock) => {
                let session = Self { pinned: self.pinned.clone(), ..Self::default() };
                let sandbox = session.tried(starter, Method::Session).unwrap_or_default();
                Launcher { sandbox, level: Level::None { no_namespaces, no_landlock } }
            }
        }
    }

    /// What gives a program a session of its own, and does not confine it; none if nothing can be started through `starter`.
    pub fn session_launcher(starter: &[OsString]) -> Sandbox {
        Self::default().tried(starter, Method::Session).unwrap_or_default()
    }

    fn words(&self, starter: &[OsString], method: Method) -> Vec<OsString> {
        starter.iter().cloned().chain(self.arguments(method)).collect()
    }

    /// Starts the launcher without a program, which tries all but that.
    fn tried(&self, starter: &[OsString], method: Method) -> Result<Sandbox, NotConfined> {
        let words = self.words(starter, method);
        let [program, arguments @ ..] = words.as_slice() else {
            return Err(NotConfined("there is no launcher".to_owned()));
        };
        let mut check = Command::new(program);
        check.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = check.output().context("this program cannot start itself")?;
        if !ended.status.success() || ended.stdout != POSSIBLE.as_bytes() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.trim().trim_start_matches(IMPOSSIBLE);
            return Err(NotConfined(if said.is_empty() { "it ended and did not say why" } else { said }.to_owned()));
        }
        Ok(Sandbox::of_launcher(words, starter.len()))
    }
}
