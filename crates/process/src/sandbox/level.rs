//! How much a program is confined, and the launcher that does it.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::policy::{END, Method};
use super::{Context, IMPOSSIBLE, NotConfined, POSSIBLE, PinnedFile, Policy};

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

/// The words to put before a command, and how much they confine it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The words.
    pub words: Vec<OsString>,
    /// What they do.
    pub level: Level,
}

impl Launcher {
    /// The words with more pinned files: for programs that differ in nothing else.
    pub fn pinning(&self, files: &[PinnedFile]) -> Vec<OsString> {
        pinning(&self.words, files)
    }
}

/// The words of a launcher with more pinned files.
pub fn pinning(words: &[OsString], files: &[PinnedFile]) -> Vec<OsString> {
    let mut words = words.to_vec();
    if !files.is_empty() && words.pop_if(|word| word == END).is_some() {
        words.extend(files.iter().flat_map(PinnedFile::arguments));
        words.push(END.into());
    }
    words
}

impl Policy {
    /// The words to put before a command, so that it is confined by this policy in namespaces. `starter` are those that start this program as a
    /// [launcher](super::launch).
    ///
    /// # Errors
    /// If this system cannot do it, which is tried.
    pub fn launcher(&self, starter: &[OsString]) -> Result<Vec<OsString>, NotConfined> {
        self.tried(starter, Method::Namespaces)
    }

    /// The strongest launcher that works here, which is tried. Whatever its level, it starts programs in a session of their own.
    ///
    /// It has no words if nothing can be started through `starter`, as in a program that is not the launcher.
    pub fn strongest_launcher(&self, starter: &[OsString]) -> Launcher {
        let no_namespaces = match self.tried(starter, Method::Namespaces) {
            Ok(words) => return Launcher { words, level: Level::Namespaces },
            Err(reason) => reason,
        };
        match self.tried(starter, Method::Landlock) {
            Ok(words) => Launcher { words, level: Level::Landlock { no_namespaces } },
            Err(no_landlock) => {
                let session = Self { pinned: self.pinned.clone(), ..Self::default() };
                let words = session.tried(starter, Method::Session).unwrap_or_default();
                Launcher { words, level: Level::None { no_namespaces, no_landlock } }
            }
        }
    }

    /// The words to put before a command, so that it has a session of its own and is not confined; none if nothing can be started through
    /// `starter`.
    pub fn session_launcher(starter: &[OsString]) -> Vec<OsString> {
        Self::default().tried(starter, Method::Session).unwrap_or_default()
    }

    fn words(&self, starter: &[OsString], method: Method) -> Vec<OsString> {
        starter.iter().cloned().chain(self.arguments(method)).collect()
    }

    /// Starts the launcher without a program, which tries all but that.
    fn tried(&self, starter: &[OsString], method: Method) -> Result<Vec<OsString>, NotConfined> {
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
        Ok(words)
    }
}
