//! Confinement of programs: what they may write to, and whether they have a network.
//!
//! A program that hosts hooks starts others through itself: its launcher enters namespaces of its own, makes read-only what the program may not write
//! to, gives up every way to undo that, and becomes the program. Tools and hooks know of a list of words to put before a command, and of
//! nothing else.

mod policy;

#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespace;

#[cfg(not(target_os = "linux"))]
mod namespace {
    //! Where there are no namespaces.

    /// Says that it cannot be had.
    pub(super) fn enter(_policy: &super::Policy) -> Result<(), super::NotConfined> {
        Err(super::NotConfined(super::NO_NAMESPACES.to_owned()))
    }
}

pub use policy::Policy;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bundle::{Confine, MayWrite};

/// The exit code when a program cannot be confined; shells use 126 and 127 for one that cannot be started.
const NOT_CONFINED: u8 = 125;

/// What a launcher says that was asked whether it can confine. An exit code would not do: whatever is started in its place may end well.
const POSSIBLE: &str = "it can be confined\n";

/// What a launcher says if it cannot begins with this.
const IMPOSSIBLE: &str = "amplifier: it cannot be confined: ";

const NO_NAMESPACES: &str = "this system has no namespaces";

/// Why a program cannot be confined, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotConfined(String);

/// Says what it was that failed.
trait Context<T> {
    fn context(self, what: impl Display) -> Result<T, NotConfined>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, NotConfined> {
        self.map_err(|error| NotConfined(format!("{what}: {error}")))
    }
}

/// Is the launcher: becomes the program that the arguments name, confined by the [`Policy`] that they begin with. It returns if that cannot be done, says why
/// on standard error, and gives the code to exit with.
///
/// It has to be called before there are threads: namespaces are entered by a process with one.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let (code, problem) = match confined(arguments.into_iter()) {
        Ok(()) => return 0,
        Err(Failed::Confine(error)) => (NOT_CONFINED, format!("{IMPOSSIBLE}{error}")),
        Err(Failed::Start(program, error)) => {
            let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
            (code, format!("amplifier: `{}` cannot be started: {error}", program.display()))
        }
    };
    let _ = writeln!(std::io::stderr(), "{problem}");
    code
}

enum Failed {
    Confine(NotConfined),
    Start(OsString, std::io::Error),
}

fn confined(arguments: impl Iterator<Item = OsString>) -> Result<(), Failed> {
    let (policy, mut command) = Policy::read(arguments).map_err(Failed::Confine)?;
    namespace::enter(&policy).map_err(Failed::Confine)?;
    let Some(program) = command.next() else {
        // Without a program, it was asked whether all this is possible.
        let said = std::io::stdout().write_all(POSSIBLE.as_bytes());
        return said.context("standard output").map_err(Failed::Confine);
    };
    let variable = policy.temporary.map(|folder| ("TMPDIR", folder));
    let error = Command::new(&program).args(command).envs(variable).exec();
    Err(Failed::Start(program, error))
}

/// Folders that few keep anything in, one of which a program has as its own for temporary files.
const TEMPORARY: [&str; 2] = ["/dev/shm", "/mnt"];

impl Policy {
    /// That of a hook, in a workspace. It cannot read what is hidden: no hook needs the keys that sign for what happens.
    ///
    /// # Errors
    /// If there is no place for its temporary folder.
    pub fn of_hook(confine: &Confine, workspace: &Path, hidden: &[PathBuf]) -> Result<Self, NotConfined> {
        let temporary = match confine.write {
            MayWrite::Temporary => {
                let is_free = |folder: &&Path| folder.is_dir() && !workspace.starts_with(folder);
                let folder = TEMPORARY.iter().map(Path::new).find(is_free);
                let none = || NotConfined("there is no place for a temporary folder".to_owned());
                Some(folder.ok_or_else(none)?.to_owned())
            }
            MayWrite::Nothing | MayWrite::Workspace | MayWrite::All => None,
        };
        let writable = match confine.write {
            MayWrite::Nothing | MayWrite::Temporary => Some(Vec::new()),
            MayWrite::Workspace => Some(vec![workspace.to_owned()]),
            MayWrite::All => None,
        };
        Ok(Self { writable, temporary, network: confine.network, hidden: hidden.to_vec(), ..Self::default() })
    }

    /// The words to put before a command, so that it is confined by this policy. `starter` are those that start this program as a
    /// [launcher](launch).
    ///
    /// # Errors
    /// If this system cannot do it, which is tried.
    pub fn launcher(&self, starter: &[OsString]) -> Result<Vec<OsString>, NotConfined> {
        if !cfg!(target_os = "linux") {
            return Err(NotConfined(NO_NAMESPACES.to_owned()));
        }
        let launcher: Vec<OsString> = starter.iter().cloned().chain(self.arguments()).collect();
        let [program, arguments @ ..] = launcher.as_slice() else {
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
        Ok(launcher)
    }
}
