//! The configured command line of a hook.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;

/// The beginning of each line. The shell of the client must not stay beside ours, and ours lives on after a signal to all of them: without an exit code, some
/// clients run the tool.
const BEGIN: &str = "exec /bin/sh -c 'trap : HUP INT PIPE QUIT TERM; ";
/// The beginning in earlier versions.
const EARLIER_BEGIN: &str = "/bin/sh -c '";
/// The last word of each line, by which the guard finds its own.
const MARKER: &str = "' amplifier-guard";
/// The words of the command that is the hook program, too.
const COMMAND_WORDS: &str = " guard hook";
/// The option with the time after which the hook program denies.
const DEADLINE: &str = "--deadline ";
/// The time between the exit of the hook program and the time limit of the client.
const RESERVE: Duration = Duration::from_secs(5);

/// A path that would need quoting which not every shell of a client has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path `{0}` cannot be in a command line: it has a quote, `$`, a backslash or a line break; move the program"
)]
pub struct UnusablePath(String);

/// The place of the daemon that a hook asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonPlace<'a> {
    /// The folder of one user's daemon.
    Folder(&'a Path),
    /// The program of the daemon, for hooks of all users: its folder is that of the calling user.
    CallingUser(&'a Path),
}

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
        Self { path, words: COMMAND_WORDS }
    }

    /// Returns the programs that a line for all users names: the hook program, and that of the daemon.
    pub fn from_system_line(line: &str) -> Option<(Self, PathBuf)> {
        let script = [BEGIN, EARLIER_BEGIN].iter().find_map(|begin| line.strip_prefix(begin))?;
        let (path, rest) = script.strip_prefix('"')?.split_once('"')?;
        let daemon = rest.split_once("--program \"")?.1.split_once('"')?.0;
        let program =
            if rest.starts_with(COMMAND_WORDS) { Self::command(path.into()) } else { Self::small(path.into()) };
        Some((program, daemon.into()))
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the line for an event, with an own deadline before the time limit of the client.
    pub(super) fn line(
        &self,
        client: Client,
        event: &str,
        is_gate: bool,
        limit: Duration,
        place: DaemonPlace<'_>,
    ) -> Result<String, UnusablePath> {
        self.line_with_deadline(client, event, is_gate, latest_deadline(limit).as_millis(), place)
    }

    /// Returns the line for an event.
    ///
    /// A shell around the program denies where it cannot: if it is missing, crashes, or is ended by a signal. At an event without a gate, nothing denies.
    pub(super) fn line_with_deadline(
        &self,
        client: Client,
        event: &str,
        is_gate: bool,
        deadline: u128,
        place: DaemonPlace<'_>,
    ) -> Result<String, UnusablePath> {
        let program = quotable(&self.path)?;
        let place = match place {
            DaemonPlace::Folder(folder) => format!("--folder \"{}\"", quotable(folder)?),
            DaemonPlace::CallingUser(daemon) => format!("--program \"{}\"", quotable(daemon)?),
        };
        let call =
            format!("\"{program}\"{} --client {client} --event {event} {DEADLINE}{deadline} {place}", self.words);
        let rest = match is_gate {
            // Some clients take exit code 2 for a denial only if there is text.
            true => "; [ $? = 0 ] || { echo \"amplifier guard: this call is denied\" >&2; exit 2; }",
            false => " --observe; exit 0",
        };
        Ok(format!("{BEGIN}{call}{rest}{MARKER}"))
    }
}

/// Returns the latest deadline of a hook with this time limit.
pub(super) fn latest_deadline(limit: Duration) -> Duration {
    limit.saturating_sub(RESERVE).max(limit / 2)
}

/// Returns the deadline of a line in milliseconds; none if it has none.
pub(super) fn deadline_of(line: &str) -> Option<u128> {
    line.split_once(DEADLINE)?.1.split(' ').next()?.parse().ok()
}

/// Returns the line as earlier versions wrote it.
pub(super) fn earlier(line: &str) -> String {
    line.replacen(BEGIN, EARLIER_BEGIN, 1)
}

/// Returns `true` for a line of the guard.
pub(super) fn is_ours(line: &str) -> bool {
    line.starts_with(BEGIN) && line.ends_with(MARKER) || is_earlier(line)
}

/// Returns `true` for a line of an earlier version of the guard.
pub(super) fn is_earlier(line: &str) -> bool {
    line.starts_with(EARLIER_BEGIN) && line.ends_with(MARKER)
}

fn quotable(path: &Path) -> Result<&str, UnusablePath> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '"', '$', '`', '\\', '\n', '\r', '!']));
    text.filter(|_| path.is_absolute()).ok_or_else(|| UnusablePath(path.display().to_string()))
}
