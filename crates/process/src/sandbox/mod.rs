//! Confinement of programs: what they may read, write and reach.
//!
//! A program that hosts hooks starts others through itself, as a launcher. The launcher starts a session of its own, enters namespaces, makes read-only what the
//! program may not write to, hides what it may not read, gives up every way to undo that, and starts the program. Where there are no namespaces, it uses Landlock.
//! Tools and hooks know a [`Sandbox`], and nothing else.

mod handle;
mod level;
mod pins;
mod policy;

#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod system;

pub use handle::Sandbox;
pub use level::{ConfinementLevel, SandboxChoice};
pub use policy::{PinnedFile, SandboxPolicy};
pub(crate) use system::ReportedExit;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

use self::policy::Arguments;

/// The exit code when a program cannot be confined; shells use 126 and 127 for one that cannot be started.
const SANDBOX_FAILED: u8 = 125;

/// The exit code of a launcher that found other bytes in a [pinned file](SandboxPolicy::pinned). Its standard error then begins with [`PIN_MISMATCH_TEXT`].
pub const PIN_MISMATCH: u8 = 123;

/// What a launcher writes to standard error before it ends with [`PIN_MISMATCH`].
pub const PIN_MISMATCH_TEXT: &str = "amplifier: a pinned file has changed: ";

/// What a launcher says that was asked whether it can confine. An exit code would not do: whatever is started in its place may end well.
const POSSIBLE: &str = "it can be confined\n";

/// What a launcher says if it cannot begins with this.
const IMPOSSIBLE: &str = "amplifier: it cannot be confined: ";

/// Why a program cannot be confined, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

impl SandboxError {
    /// For this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Says what it was that failed.
trait ErrorContext<T> {
    fn context(self, what: impl Display) -> Result<T, SandboxError>;
}

impl<T, E: Display> ErrorContext<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError(format!("{what}: {error}")))
    }
}

/// Why a launcher did not start its program.
enum LaunchError {
    Sandbox(SandboxError),
    PinMismatch(PathBuf),
    NotStarted(OsString, io::Error),
    /// It waited for a program, and nobody is left who could send one.
    Unused,
}

impl From<SandboxError> for LaunchError {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error)
    }
}

/// Runs the launcher: starts the program that the arguments name, confined by the [`SandboxPolicy`] that they begin with, and returns the code to exit with. If that cannot
/// be done, it says why on standard error.
///
/// It has to be called before there are threads: namespaces are entered by a process with one.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run(arguments.into_iter()).unwrap_or_else(|error| error.report())
}

impl LaunchError {
    /// Says on standard error what it is, and gives the code to exit with.
    fn report(self) -> u8 {
        let (code, problem) = match self {
            Self::Sandbox(error) => (SANDBOX_FAILED, format!("{IMPOSSIBLE}{error}")),
            Self::PinMismatch(file) => (PIN_MISMATCH, format!("{PIN_MISMATCH_TEXT}`{}`", file.display())),
            Self::NotStarted(program, error) => {
                let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
                (code, format!("amplifier: `{}` cannot be started: {error}", program.display()))
            }
            Self::Unused => return 0,
        };
        let _ = writeln!(io::stderr(), "{problem}");
        code
    }
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, LaunchError> {
    let Arguments { policy, method, waits, mut command } = SandboxPolicy::read(arguments)?;
    if let Some(code) = system::start_session()? {
        return Ok(code);
    }
    if waits {
        return system::wait(&policy, method);
    }
    // Without one, it was asked whether all this is possible.
    let program = command.next().map(|program| {
        let mut started = Command::new(program);
        started.args(command).envs(temporary(&policy));
        started
    });
    system::run(&policy, method, program)
}

/// The variable that names the temporary folder.
fn temporary(policy: &SandboxPolicy) -> Option<(&'static str, &PathBuf)> {
    policy.temporary.as_ref().map(|folder| ("TMPDIR", folder))
}

/// Becomes the program.
fn replace(mut program: Command) -> Result<u8, LaunchError> {
    let error = crate::system::process::replace(&mut program);
    Err(LaunchError::NotStarted(program.get_program().to_owned(), error))
}

fn report_possible() -> Result<u8, LaunchError> {
    io::stdout().write_all(POSSIBLE.as_bytes()).context("standard output")?;
    Ok(0)
}
