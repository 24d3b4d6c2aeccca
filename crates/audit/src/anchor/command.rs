//! The anchor that runs a program.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::time::Duration;

use amplifier_core::text::visible_line;
use amplifier_process::{Command, Environment, LingeringProcess};

use super::{Anchor, AnchorError, TIME_LIMIT, with_empty_line};

/// The stored part of a program's stderr. The rest is read and dropped, because a full pipe would block the program.
const MOST_OUTPUT: usize = 4096;

/// Runs a program for every checkpoint, with the note on its stdin.
///
/// Exit code 0 means that the note is stored. The program runs without a shell, in the folder of this process, and with the environment of hooks: without
/// variables that look like secrets or that make another program run first. **Its background processes are killed when it ends**, so that they do not pile up.
///
/// ```
/// use amplifier_audit::{Anchor, CommandAnchor};
/// use std::time::Duration;
///
/// CommandAnchor::new("grep", ["-q", "note"]).time_limit(Duration::from_secs(60)).keep("a note\n")?;
/// # Ok::<(), amplifier_audit::AnchorError>(())
/// ```
pub struct CommandAnchor {
    program: OsString,
    command: Command,
    time_limit: Duration,
    /// A killed process that is still there. No other is started meanwhile, so that they do not pile up.
    lingering: Option<LingeringProcess>,
}

impl CommandAnchor {
    /// Creates an anchor that runs this program with these arguments.
    pub fn new(program: impl Into<OsString>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let program = program.into();
        let command = Command::new(&program, Environment::Hooks).args(args);
        let command = command.with_truncated_output().kill_with_parent();
        Self { program, command, time_limit: TIME_LIMIT, lingering: None }
    }

    /// Sets the time limit of the program, 10 s by default; then it is killed, with all that it started.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }
}

impl Anchor for CommandAnchor {
    fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
        let program = || self.program.display().to_string();
        let cannot_run = |source| AnchorError::Run { program: program(), source };
        if let Some(earlier) = &mut self.lingering
            && !earlier.has_ended()
        {
            return Err(AnchorError::Unended { program: program() });
        }
        let completed = self.command.run_blocking(with_empty_line(note).as_bytes(), self.time_limit, MOST_OUTPUT);
        let completed = completed.map_err(cannot_run)?;
        self.lingering = completed.lingering;
        let stderr = || visible_line(&String::from_utf8_lossy(&completed.stderr.bytes));
        if !completed.in_time {
            return Err(AnchorError::TimedOut { limit: self.time_limit, stderr: stderr() });
        }
        match completed.status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(AnchorError::Exit { program: program(), status, stderr: stderr() }),
            None => Err(cannot_run(io::Error::other("unknown exit code"))),
        }
    }

    fn name(&self) -> String {
        format!("command {}", self.program.display())
    }
}

// Written by hand, because arguments may be secrets.
impl fmt::Debug for CommandAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandAnchor").field("program", &self.program).finish_non_exhaustive()
    }
}
