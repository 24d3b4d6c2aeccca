//! The environment of sessions, read once by the program and passed on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The variables and folders of a process, and its sandbox launcher.
///
/// No other code in this crate reads the process, so a program can have several workspaces, and a test none.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    current_dir: PathBuf,
    temporary: PathBuf,
    program: Option<PathBuf>,
    launcher: Vec<OsString>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn from_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            home: std::env::home_dir(),
            // A deleted current folder contains nothing.
            current_dir: std::env::current_dir().unwrap_or_default(),
            temporary: std::env::temp_dir(),
            program: std::env::current_exe().ok(),
            launcher: Vec::new(),
        }
    }

    /// Sets the words of the sandbox launcher. Without them, programs are not confined.
    #[must_use]
    pub fn launcher(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.launcher = words.into_iter().map(Into::into).collect();
        self
    }

    /// Returns a variable, unless it is missing or empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns a variable that is an absolute path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Returns the home folder of the user: that of the environment, else that of the user database.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref().filter(|home| home.is_absolute() && home.parent().is_some())
    }

    /// Returns the current folder of the process.
    pub fn current_dir(&self) -> &Path {
        &self.current_dir
    }

    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    pub(crate) fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    pub(crate) fn launcher_words(&self) -> &[OsString] {
        &self.launcher
    }
}

/// Omits the values of variables, which may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("current_dir", &self.current_dir).finish_non_exhaustive()
    }
}
