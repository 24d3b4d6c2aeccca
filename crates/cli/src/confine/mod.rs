//! Confinement of programs: what they may write to, and whether they have a network.
//!
//! This program starts others through itself: `amplifier confined OPTIONS -- PROGRAM ARGUMENTS` enters namespaces of its own, makes
//! read-only what the program may not write to, gives up every way to undo that, and becomes the program. Tools and hooks know of a list of
//! words to put before a command, and of nothing else.

mod policy;
mod protection;

#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespace;

#[cfg(not(target_os = "linux"))]
mod namespace {
    //! Where there are no namespaces.

    use anyhow::{Result, bail};

    /// Says that it cannot be had.
    pub(super) fn enter(_policy: &super::Policy) -> Result<()> {
        bail!("this system has no namespaces")
    }
}

pub use policy::Policy;
pub use protection::Protection;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use amplifier_modules::bundle::{Confine, MayWrite};
use anyhow::{Context, Result, bail};

/// The word that makes this program a launcher. It is not for people, so no help names it.
const CONFINED: &str = "confined";

/// This very program, also when its file has been replaced or removed since it was started.
#[cfg(target_os = "linux")]
const THIS: &str = "/proc/self/exe";

/// The exit code when a program cannot be confined; shells use 126 and 127 for one that cannot be started.
const NOT_CONFINED: u8 = 125;

/// Becomes a confined program, if the arguments ask for that. It has to be called first of all: namespaces are entered by a process with one
/// thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    arguments.next_if(|word| word == CONFINED)?;
    let (code, problem) = match confined(arguments) {
        Ok(code) => return Some(code),
        Err(Failed::Confine(error)) => (NOT_CONFINED, format!("it cannot be confined: {error:#}")),
        Err(Failed::Start(program, error)) => {
            let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
            (code, format!("`{}` cannot be started: {error}", program.display()))
        }
    };
    let _ = writeln!(std::io::stderr(), "amplifier: {problem}");
    Some(ExitCode::from(code))
}

enum Failed {
    Confine(anyhow::Error),
    Start(OsString, std::io::Error),
}

fn confined(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, Failed> {
    let (policy, mut command) = Policy::read(arguments).map_err(Failed::Confine)?;
    namespace::enter(&policy).map_err(Failed::Confine)?;
    // Without a program, it was asked whether all this is possible.
    let Some(program) = command.next() else { return Ok(ExitCode::SUCCESS) };
    let variable = policy.temporary.map(|folder| ("TMPDIR", folder));
    let error = Command::new(&program).args(command).envs(variable).exec();
    Err(Failed::Start(program, error))
}

impl Policy {
    /// The words to put before a command, so that it is confined by this policy.
    ///
    /// # Errors
    /// If this system cannot do it.
    pub fn launcher(&self) -> Result<Vec<OsString>> {
        let mut launcher = vec![this()?];
        launcher.push(CONFINED.into());
        launcher.extend(self.arguments());
        let [program, arguments @ ..] = launcher.as_slice() else { bail!("there is no launcher") };
        let mut check = Command::new(program);
        check.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let ended = check.output().context("this program cannot start itself")?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.trim().trim_start_matches("amplifier: it cannot be confined: ");
            bail!("{}", if said.is_empty() { "it ended and did not say why" } else { said });
        }
        Ok(launcher)
    }
}

#[cfg(target_os = "linux")]
fn this() -> Result<OsString> {
    Ok(THIS.into())
}

#[cfg(not(target_os = "linux"))]
fn this() -> Result<OsString> {
    bail!("this system has no namespaces")
}

/// Folders that few keep anything in, one of which a program has as its own for temporary files.
const TEMPORARY: [&str; 2] = ["/dev/shm", "/mnt"];

/// The words to put before the command of a hook that is to be confined. No hook needs the keys that sign for what happens.
///
/// # Errors
/// In words, if this system cannot do it.
pub fn for_hook(confine: &Confine, workspace: &Path, keys: &[PathBuf]) -> Result<Vec<OsString>, String> {
    let temporary = match confine.write {
        MayWrite::Temporary => {
            let is_free = |folder: &&Path| folder.is_dir() && !workspace.starts_with(folder);
            let folder = TEMPORARY.iter().map(Path::new).find(is_free);
            Some(folder.ok_or("there is no place for a temporary folder")?.to_owned())
        }
        MayWrite::Nothing | MayWrite::Workspace | MayWrite::All => None,
    };
    let writable = match confine.write {
        MayWrite::Nothing | MayWrite::Temporary => Some(Vec::new()),
        MayWrite::Workspace => Some(vec![workspace.to_owned()]),
        MayWrite::All => None,
    };
    let (network, hidden) = (confine.network, keys.to_vec());
    let policy = Policy { writable, temporary, network, hidden, ..Policy::default() };
    policy.launcher().map_err(|error| format!("{error:#}"))
}
