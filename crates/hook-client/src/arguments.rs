//! The command line, which `amplifier guard install` writes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit without `--deadline`: less than the shortest default of a client.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(25);

/// The place of the daemon.
pub(crate) enum DaemonPlace {
    /// The folder with the socket.
    Folder(PathBuf),
    /// The program of the daemon, for hooks of all users: the folder is that of the calling user.
    CallingUser(PathBuf),
}

/// The arguments.
pub(crate) struct HookArguments {
    /// The client that calls.
    pub(crate) client: String,
    /// The event, for clients whose payload does not name it.
    pub(crate) event: String,
    /// The time from the start to the exit of this program.
    pub(crate) deadline: Duration,
    /// The place of the daemon.
    pub(crate) place: DaemonPlace,
    /// `true` if a failure must not deny, because nothing waits for a decision.
    pub(crate) is_observer: bool,
}

impl HookArguments {
    /// Parses the arguments.
    ///
    /// # Errors
    /// If an argument is unknown or unusable.
    pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let (mut client, mut event, mut place) = (None, String::new(), None);
        let (mut deadline, mut is_observer) = (DEFAULT_DEADLINE, false);
        while let Some(word) = words.next() {
            let word = word.into_string().map_err(|word| format!("invalid argument `{}`", word.to_string_lossy()))?;
            let mut value = || words.next().ok_or_else(|| format!("the argument `{word}` has no value"));
            let text = |value: OsString| {
                let is_word =
                    |text: &String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
                value.into_string().ok().filter(is_word).ok_or_else(|| format!("invalid value of `{word}`"))
            };
            match word.as_str() {
                "--client" => client = Some(text(value()?)?),
                "--event" => event = text(value()?)?,
                "--folder" => place = Some(DaemonPlace::Folder(PathBuf::from(value()?))),
                "--program" => place = Some(DaemonPlace::CallingUser(PathBuf::from(value()?))),
                "--observe" => is_observer = true,
                "--deadline" => {
                    let milliseconds = text(value()?)?.parse().ok().filter(|milliseconds| *milliseconds > 0);
                    let milliseconds = milliseconds.ok_or("invalid value of `--deadline`; expected milliseconds")?;
                    deadline = Duration::from_millis(milliseconds);
                }
                _ => return Err(format!("unknown argument `{word}`")),
            }
        }
        let client = client.ok_or("the argument `--client` is missing")?;
        let place = place.filter(|(DaemonPlace::Folder(path) | DaemonPlace::CallingUser(path))| path.is_absolute());
        let place = place.ok_or("the argument `--folder` or `--program` is missing; expected an absolute path")?;
        Ok(Self { client, event, deadline, place, is_observer })
    }
}
