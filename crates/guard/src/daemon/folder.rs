//! The private folder of the daemon.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use amplifier_process::files::{Durability, create_private_folder, make_private, write_atomic};

/// The folder with the socket, the lock and the start file of the daemon. Only the user can access it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardFolder(PathBuf);

impl GuardFolder {
    /// The folder at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder.
    ///
    /// # Errors
    /// If the folder cannot be created or made private.
    pub fn create(&self) -> io::Result<()> {
        create_private_folder(&self.0)?;
        make_private(&self.0)
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    /// Returns the path of the lock, which the running daemon holds.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Returns the path of the file that says how the daemon is started.
    pub(crate) fn start(&self) -> PathBuf {
        self.0.join("start")
    }

    /// Returns `true` if the guard was installed with this value of a variable.
    pub(crate) fn is_started_with(&self, name: &str, value: &str) -> bool {
        let file = fs::read_to_string(self.start()).unwrap_or_default();
        file.lines().any(|line| line.split_once('=') == Some((name, value)))
    }

    /// Writes the file that says how the daemon is started: its program, and its whole environment.
    ///
    /// The environment of an agent does not count, because a repository can set variables of it.
    ///
    /// # Errors
    /// If a value has a line break, or the file cannot be written.
    pub fn write_start(&self, program: &Path, variables: &[(String, String)]) -> io::Result<()> {
        let program = program.to_str().ok_or_else(|| io::Error::other("the path of the program is not text"))?;
        let lines = [("program", program)].into_iter();
        let lines = lines.chain(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut text = String::new();
        for (name, value) in lines {
            if value.contains('\n') || name.contains(['=', '\n']) {
                return Err(io::Error::other(format!("the value of `{name}` has a line break")));
            }
            text.extend([name, "=", value, "\n"]);
        }
        self.create()?;
        write_atomic(&self.start(), text.as_bytes(), Durability::Synced)
    }

    /// Leaves the reason why a daemon cannot start, for the hook program.
    pub fn leave_error(&self, reason: &str) {
        // Without it, the message is less exact.
        _ = write_atomic(&self.0.join("error"), reason.as_bytes(), Durability::Cached);
    }
}
