//! Sandboxes: limits on the files, network and processes that a program can access.
//!
//! A program that hosts hooks starts others through itself, as a launcher. The launcher starts a session, enters namespaces, makes protected files
//! read-only, hides secret ones, drops the rights to undo that, and starts the program. Without namespaces, it uses Landlock. Tools and hooks only
//! see a [`Sandbox`].

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

/// The exit code if the sandbox fails; shells use 126 and 127 for a program that cannot be started.
const SANDBOX_FAILED: u8 = 125;

/// The exit code of a launcher that found a changed [pinned file](SandboxPolicy::pinned). Its standard error then begins with [`PIN_MISMATCH_TEXT`].
pub const PIN_MISMATCH: u8 = 123;

/// The text that a launcher writes to standard error before it exits with [`PIN_MISMATCH`].
pub const PIN_MISMATCH_TEXT: &str = "amplifier: a pinned file has changed: ";

/// The reply of a launcher that can confine. An exit code would not do: another program in its place may succeed.
const POSSIBLE: &str = "it can be confined\n";

/// The start of the reply of a launcher that cannot confine.
const IMPOSSIBLE: &str = "amplifier: cannot confine the program: ";

/// The reason why a program cannot be confined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

impl SandboxError {
    /// An error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Adds the failed operation to an error.
trait ErrorContext<T> {
    fn context(self, what: impl Display) -> Result<T, SandboxError>;
}

impl<T, E: Display> ErrorContext<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError(format!("{what}: {error}")))
    }
}

enum LaunchError {
    Sandbox(SandboxError),
    PinMismatch(PathBuf),
    NotStarted(OsString, io::Error),
    /// The process that prepared the sandbox has ended.
    Unused,
}

impl From<SandboxError> for LaunchError {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error)
    }
}

/// Runs the launcher: starts the program that the arguments name, confined by the leading [`SandboxPolicy`], and returns the exit code. On failure,
/// writes the reason to standard error.
///
/// Call this before starting threads: only a process with a single thread can enter namespaces.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run(arguments.into_iter()).unwrap_or_else(|error| error.report())
}

impl LaunchError {
    /// Writes the error to standard error, and returns the exit code.
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
    // Without a program, the caller only checks that the sandbox works.
    let program = command.next().map(|program| {
        let mut started = Command::new(program);
        started.args(command).envs(temporary(&policy));
        started
    });
    system::run(&policy, method, program)
}

fn temporary(policy: &SandboxPolicy) -> Option<(&'static str, &PathBuf)> {
    policy.temporary.as_ref().map(|folder| ("TMPDIR", folder))
}

fn replace(mut program: Command) -> Result<u8, LaunchError> {
    let error = crate::system::process::replace(&mut program);
    Err(LaunchError::NotStarted(program.get_program().to_owned(), error))
}

fn report_possible() -> Result<u8, LaunchError> {
    io::stdout().write_all(POSSIBLE.as_bytes()).context("standard output")?;
    Ok(0)
}
