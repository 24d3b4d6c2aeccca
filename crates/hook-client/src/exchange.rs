//! One request to the daemon, and its answer.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write, stdin};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::Answer;
use crate::arguments::HookArguments;

/// The first word of a request and of an answer, with the version of their form.
const PROTOCOL: &str = "amplifier-guard 1";
/// The first word in every version.
const ANY_PROTOCOL: &str = "amplifier-guard ";
/// Variables that run other code in a program or shell which starts. The daemon knows those of the installation.
const CODE_VARIABLES: [&str; 4] = ["BASH_ENV", "DYLD_INSERT_LIBRARIES", "LD_AUDIT", "LD_PRELOAD"];
/// The most bytes of a payload.
const MAX_PAYLOAD: u64 = 64 << 20;
/// The most bytes of an answer.
const MAX_ANSWER: u64 = 96 << 20;
/// Room for most answers, which are then received at once.
const ANSWER_CAPACITY: usize = 4096;
/// The most bytes of a version.
const MAX_VERSION: usize = 200;
/// The time that this program keeps for itself.
const RESERVE: Duration = Duration::from_millis(200);

/// Reads the payload.
pub(crate) fn read_payload() -> Result<Vec<u8>, String> {
    let mut payload = Vec::new();
    let read = stdin().lock().take(MAX_PAYLOAD + 1).read_to_end(&mut payload);
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    match payload.len() as u64 > MAX_PAYLOAD {
        true => Err("the event is larger than 64 MiB".to_owned()),
        false => Ok(payload),
    }
}

/// The reason why there is no answer.
pub(crate) enum AskError {
    /// The daemon closed the connection without an answer: it has ended.
    Closed(String),
    /// No daemon can be reached, or its answer cannot be used.
    Failed(String),
}

impl AskError {
    /// Returns the text of the reason.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Closed(problem) | Self::Failed(problem) => problem,
        }
    }
}

/// Sends the payload, and waits for the answer.
pub(crate) fn ask(
    mut stream: UnixStream,
    arguments: &HookArguments,
    payload: &[u8],
    deadline: Instant,
) -> Result<Answer, AskError> {
    let nonce = nonce();
    let left = deadline.saturating_duration_since(Instant::now() + RESERVE).as_millis();
    let folder = std::env::current_dir().unwrap_or_default();
    let HookArguments { client, event, .. } = arguments;
    let header = format!(
        "{PROTOCOL}\nclient {client}\nevent {event}\ndeadline {left}\nnonce {nonce}\nfolder {}\nversion {}\n{}length {}\n\n",
        hex(folder.as_os_str()),
        hex(&version(client)),
        code_variables(),
        payload.len()
    );
    // In one piece, so that the daemon wakes up once.
    let sent = stream.write_all(&[header.as_bytes(), payload].concat());
    sent.map_err(|error| AskError::Closed(format!("the daemon cannot be reached: {error}")))?;
    let mut answer = Vec::with_capacity(ANSWER_CAPACITY);
    let received = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    received.map_err(|error| AskError::Closed(format!("the daemon gave no answer: {error}")))?;
    parse(&answer, &nonce).ok_or_else(|| match answer.as_slice() {
        [] => AskError::Closed("the daemon gave no answer".to_owned()),
        other if is_other_version(other) => AskError::Failed(
            "the daemon has another version than this program; run `amplifier guard install` again".to_owned(),
        ),
        _ => AskError::Failed("the answer of the daemon is broken".to_owned()),
    })
}

/// Returns the variable in which a client names its version; empty if there is none. Nothing depends on it but what users read.
fn version(client: &str) -> OsString {
    let name = match client {
        "claude" => "AI_AGENT",
        "copilot" => "COPILOT_CLI_BINARY_VERSION",
        _ => return OsString::new(),
    };
    std::env::var_os(name).filter(|value| value.len() < MAX_VERSION).unwrap_or_default()
}

fn is_other_version(answer: &[u8]) -> bool {
    let word = |prefix: &str| answer.strip_prefix(prefix.as_bytes());
    // `1` is also the beginning of `12`.
    word(ANY_PROTOCOL).is_some() && word(PROTOCOL).is_none_or(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

/// Returns a line for each variable that runs other code.
fn code_variables() -> String {
    let set = CODE_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let set = set.filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| format!("variable {name}={}\n", hex(&value))).collect()
}

/// Parses an answer: a line with the nonce, the exit code and two lengths, then both outputs. Anything else is no answer.
fn parse(answer: &[u8], nonce: &str) -> Option<Answer> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = (std::str::from_utf8(&answer[..end]).ok()?, &answer[end + 1..]);
    let line = line.strip_prefix(PROTOCOL)?.strip_prefix(' ')?.strip_prefix(nonce)?.strip_prefix(' ')?;
    let mut numbers = line.split(' ').map(|number| number.parse::<usize>().ok());
    let (code, stdout, stderr) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_whole = numbers.next().is_none() && stdout.checked_add(stderr) == Some(rest.len());
    let code = u8::try_from(code).ok().filter(|code| is_whole && [0, 2].contains(code))?;
    let (stdout, stderr) = rest.split_at(stdout);
    Some(Answer { stdout: stdout.to_vec(), stderr: stderr.to_vec(), code })
}

/// Returns a number that the answer must repeat, so that no other answer is taken for it.
fn nonce() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// Returns the bytes of a text in a form without line breaks.
fn hex(text: &OsStr) -> String {
    text.as_bytes().iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
