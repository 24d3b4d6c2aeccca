//! Anchors: second locations that store checkpoints, out of reach of an attacker who can rewrite the log.
//!
//! Each kind of anchor has its own file; [`AnchorWorkers`] hands them the checkpoints.

mod command;
mod file;
mod http;
mod workers;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

pub use command::CommandAnchor;
pub use file::FileAnchor;
pub use http::HttpAnchor;
pub(crate) use workers::AnchorWorkers;

/// The default time limit of an anchor for one checkpoint.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Ends a note with an empty line, which separates it from the next one in a file.
fn with_empty_line(note: &str) -> String {
    format!("{}\n\n", note.trim_end_matches('\n'))
}

/// A second location for checkpoints.
///
/// ```
/// use amplifier_audit::{Anchor, AnchorError};
///
/// /// Shows every checkpoint on a printer.
/// struct Printer(std::fs::File);
///
/// impl Anchor for Printer {
///     fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
///         use std::io::Write;
///         self.0.write_all(note.as_bytes()).map_err(AnchorError::other)
///     }
///
///     fn name(&self) -> String {
///         "printer".into()
///     }
/// }
/// ```
pub trait Anchor: Send + 'static {
    /// Stores a checkpoint in the second location. It runs on its own thread and may be slow, but should have a time limit.
    ///
    /// The same note may arrive twice: after a failure, and after an unnoticed success.
    ///
    /// # Errors
    /// If the note is not, or not certainly, stored. The log tries again later.
    fn keep(&mut self, note: &str) -> Result<(), AnchorError>;

    /// Returns the name for messages, without secrets.
    fn name(&self) -> String;
}

/// A checkpoint could not be stored in the second location.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorError {
    /// The file cannot be created or written.
    #[error("cannot append to `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The program cannot be started or awaited.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The program failed.
    #[error("`{program}` ended with {status}{}", after_colon(stderr))]
    Exit {
        /// The program.
        program: String,
        /// The exit code, or the signal that ended it.
        status: ExitStatus,
        /// The beginning of its stderr.
        stderr: String,
    },
    /// The killed program of an earlier attempt has not ended: perhaps it waits for a disk, or runs as another user.
    #[error("an earlier run of `{program}` was killed and has not ended yet")]
    Unended {
        /// The program.
        program: String,
    },
    /// The time limit has passed.
    #[error("no answer within {limit:?}{}", after_colon(stderr))]
    TimedOut {
        /// The time limit.
        limit: Duration,
        /// The beginning of the program's stderr.
        stderr: String,
    },
    /// The server's response was not a success.
    #[error("the server answered with status {}{}", .0, redirect(*.0))]
    Status(u16),
    /// The server did not respond.
    #[error("no answer from the server: {0}")]
    Server(String),
    /// The configuration of the anchor is invalid.
    #[error("invalid anchor settings: {0}")]
    Setup(String),
    /// The failure of another kind of anchor.
    #[error("{0}")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

impl AnchorError {
    /// Creates the failure of another kind of anchor from a message or an error.
    pub fn other(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(why.into())
    }
}

/// The state of an anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnchorState {
    /// The name of the anchor.
    pub name: String,
    /// The size of the newest stored checkpoint.
    pub kept: Option<u64>,
    /// The failure of the newest attempt, if it failed.
    pub failure: Option<String>,
}

/// A running time limit. Not a point in time, which would overflow for a very long limit.
#[derive(Clone, Copy)]
struct TimeLimit {
    began: Instant,
    length: Duration,
}

impl TimeLimit {
    fn starting_now(length: Duration) -> Self {
        Self { began: Instant::now(), length }
    }

    fn left(&self) -> Duration {
        self.length.saturating_sub(self.began.elapsed())
    }
}

fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn redirect(status: u16) -> &'static str {
    if (300..400).contains(&status) { "; redirects are not followed" } else { "" }
}
