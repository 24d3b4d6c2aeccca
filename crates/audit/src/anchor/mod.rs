//! Anchors: second places for checkpoints, out of reach of whoever could rewrite the log.
//!
//! There is one file for each kind of anchor, and [`AnchorWorkers`] hands them the checkpoints.

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

/// How long an anchor may take for a checkpoint, unless its user says otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A note as files of them have it: ended by an empty line, so that those that are kept one after another can be told apart.
fn with_empty_line(note: &str) -> String {
    format!("{}\n\n", note.trim_end_matches('\n'))
}

/// A second place for checkpoints.
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
    /// Keeps a checkpoint in the second place. It runs on a thread of its own and may take its time, but should have a limit.
    ///
    /// The same note may come twice: after a failure, and after a success that was not noticed.
    ///
    /// # Errors
    /// If the note is not, or not for certain, in the second place. It is tried again later.
    fn keep(&mut self, note: &str) -> Result<(), AnchorError>;

    /// For messages: no secrets.
    fn name(&self) -> String;
}

/// Why a checkpoint is not in the second place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorError {
    /// The file cannot be made or written.
    #[error("cannot append to `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program cannot be started, or not be waited for.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The program said that it failed.
    #[error("`{program}` ended with {status}{}", after_colon(stderr))]
    Exit {
        /// The program.
        program: String,
        /// The exit code, or the signal that ended it.
        status: ExitStatus,
        /// The beginning of what it wrote to stderr.
        stderr: String,
    },
    /// The program of an earlier try was killed and is still there: perhaps it waits for a disk, or runs as another user.
    #[error("`{program}` of an earlier try has not ended yet, although it was killed")]
    Unended {
        /// The program.
        program: String,
    },
    /// No answer in time.
    #[error("no answer within {limit:?}{}", after_colon(stderr))]
    TimedOut {
        /// The time limit.
        limit: Duration,
        /// The beginning of what a program wrote to stderr until then.
        stderr: String,
    },
    /// The server's answer was no success.
    #[error("the server answered with status {}{}", .0, redirect(*.0))]
    Status(u16),
    /// There was no answer from the server.
    #[error("no answer from the server: {0}")]
    Server(String),
    /// The anchor cannot work the way it is set up.
    #[error("the anchor is not set up well: {0}")]
    Setup(String),
    /// The failure of another kind of anchor.
    #[error("{0}")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

impl AnchorError {
    /// The failure of another kind of anchor: a message or an error.
    pub fn other(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(why.into())
    }
}

/// How it stands with an anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorState {
    /// The anchor's name.
    pub name: String,
    /// The size of the newest checkpoint that is there.
    pub kept: Option<u64>,
    /// Why the newest try failed, if it did.
    pub failure: Option<String>,
}

/// A length of time that is running. Not a point in time, because that overflows for a very long one.
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
