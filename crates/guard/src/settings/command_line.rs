//! The configured command line of a hook.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;

/// The last word of each line, by which the guard finds its own.
const MARKER: &str = "' amplifier-guard";
/// The time between the exit of the hook program and the time limit of the client.
const RESERVE: Duration = Duration::from_secs(5);

/// A path that would need quoting which not every shell of a client has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path `{0}` cannot be in a command line: it has a quote, `$`, a backslash or a line break; move the program"
)]
pub struct UnusablePath(String);

/// The program that hooks call, with its first words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProgram {
    path: PathBuf,
    words: &'static str,
}

impl HookProgram {
    /// The program `amplifier-hook`.
    pub fn small(path: PathBuf) -> Self {
        Self { path, words: "" }
    }

    /// The command `amplifier guard hook`, which takes longer to start.
    pub fn command(path: PathBuf) -> Self {
        Self { path, words: " guard hook" }
    }

    /// Returns the line for an event.
    ///
    /// A shell around the program denies where it cannot: if it is missing, crashes, or is ended by a signal. At an event without a gate, nothing denies.
    pub(super) fn line(
        &self,
        client: Client,
        event: &str,
        is_gate: bool,
        limit: Duration,
        folder: &Path,
    ) -> Result<String, UnusablePath> {
        let (program, folder) = (quotable(&self.path)?, quotable(folder)?);
        let deadline = limit.saturating_sub(RESERVE).max(limit / 2).as_millis();
        let call = format!(
            "\"{program}\"{} --client {client} --event {event} --deadline {deadline} --folder \"{folder}\"",
            self.words
        );
        let rest = match is_gate {
            // Some clients take exit code 2 for a denial only if there is text.
            true => "; [ $? = 0 ] || { echo \"amplifier guard: this call is denied\" >&2; exit 2; }",
            false => " --observe; exit 0",
        };
        Ok(format!("/bin/sh -c '{call}{rest}{MARKER}"))
    }
}

/// Returns `true` for a line of the guard.
pub(super) fn is_ours(line: &str) -> bool {
    line.starts_with("/bin/sh -c '") && line.ends_with(MARKER)
}

fn quotable(path: &Path) -> Result<&str, UnusablePath> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '"', '$', '`', '\\', '\n', '\r', '!']));
    text.filter(|_| path.is_absolute()).ok_or_else(|| UnusablePath(path.display().to_string()))
}
