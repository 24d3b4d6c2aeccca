//! The exit codes of all commands.

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::errors::{is_usage, reasons};

/// The meaning of an exit code. Each has the same meaning in all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command has done its work; a check found nothing.
    Done = 0,
    /// The command failed; a check found something.
    Failed = 1,
    /// A flag, an argument, a variable or a setting is invalid.
    Usage = 2,
    /// A hook or a user denied the work.
    Denied = 3,
    /// A check could not be made.
    Unchecked = 4,
    /// Ctrl-C or a signal stopped the command.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns the exit code for an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<CommandError>() {
        Some(error) => error.exit,
        None if is_usage(error) => Exit::Usage,
        None => Exit::Failed,
    }
}

/// Gives the errors of a check an exit code that differs from the code for its findings. A usage error keeps its own.
///
/// # Errors
/// Those of the check.
pub fn checked(result: Result<ExitCode>) -> Result<ExitCode> {
    result.map_err(|error| CommandError::new(error, Some(Exit::Unchecked)).into())
}

/// Marks the errors of a command as text from a log, which is untrusted. The exit codes stay.
pub(crate) fn untrusted(result: Result<ExitCode>) -> Result<ExitCode> {
    result.map_err(|error| CommandError { is_untrusted: true, ..CommandError::new(error, None) }.into())
}

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct CommandError {
    exit: Exit,
    /// `true` if the text may come from a log.
    is_untrusted: bool,
    error: anyhow::Error,
}

impl CommandError {
    fn new(error: anyhow::Error, exit: Option<Exit>) -> Self {
        error.downcast::<Self>().unwrap_or_else(|error| {
            let exit = exit.filter(|_| !is_usage(&error)).unwrap_or_else(|| exit_of(&error));
            Self { exit, is_untrusted: false, error }
        })
    }
}

/// Returns `true` if the text of the error may come from a log.
pub(crate) fn is_untrusted(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CommandError>().is_some_and(|error| error.is_untrusted)
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&reasons(&self.error))
    }
}

impl std::error::Error for CommandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.error.as_ref())
    }
}
