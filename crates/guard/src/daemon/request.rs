//! The request of a hook program, and the frame of its answer.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use amplifier_process::os_string;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::answer::HookOutput;

/// The first words of a request and of an answer, with the version of their form.
const PROTOCOL: &str = "amplifier-guard 1";
/// The first words in every version.
const ANY_PROTOCOL: &str = "amplifier-guard ";
/// The answer to a request of another version, which that version understands.
pub(super) const OTHER_VERSION: &[u8] = b"amplifier-guard 1 version\n";
const MAX_HEADER: usize = 64 << 10;
const MAX_PAYLOAD: usize = 64 << 20;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// The client that the command line names.
    pub(super) client: String,
    /// The event that the command line names.
    pub(super) event: Option<String>,
    /// The time for the answer.
    pub(super) deadline: Duration,
    /// The current folder of the hook program.
    pub(super) folder: Option<PathBuf>,
    /// The version of the client, if its environment names it.
    pub(super) version: Option<String>,
    /// Variables of the hook program that run other code in each hook.
    pub(super) code_variables: Vec<(String, OsString)>,
    /// The payload of the client.
    pub(super) payload: Vec<u8>,
    nonce: String,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// If it is not a request; of the kind `Unsupported`, if it is one of another version.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(4096);
        let end = loop {
            if let Some(end) = bytes.windows(2).position(|pair| pair == b"\n\n") {
                break end;
            }
            if bytes.len() > MAX_HEADER {
                return Err(invalid("its header is too long"));
            }
            if from.read_buf(&mut bytes).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        let header = std::str::from_utf8(&bytes[..end]).map_err(|_| invalid("its header is not text"))?;
        let mut lines = header.lines();
        match lines.next() {
            Some(PROTOCOL) => {}
            Some(other) if other.starts_with(ANY_PROTOCOL) => {
                return Err(io::Error::new(ErrorKind::Unsupported, "a request has another version"));
            }
            _ => return Err(invalid("it has another form")),
        }
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
        let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
        let (Some(client), Some(nonce), Some(deadline), Some(length)) =
            (field("client"), field("nonce"), number("deadline"), number("length"))
        else {
            return Err(invalid("its header is incomplete"));
        };
        let variables = fields.iter().filter(|(known, _)| *known == "variable").map(|(_, value)| {
            let (name, value) = value.split_once('=')?;
            Some((name.to_owned(), unhex(value).and_then(|value| os_string(&value))?))
        });
        let code_variables: Option<Vec<_>> = variables.collect();
        let code_variables = code_variables.ok_or_else(|| invalid("a variable in its header is broken"))?;
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_PAYLOAD);
        let length = length.ok_or_else(|| invalid("its payload is too long"))?;
        let mut request = Self {
            client: client.to_owned(),
            event: field("event").filter(|event| !event.is_empty()).map(str::to_owned),
            deadline: Duration::from_millis(deadline),
            folder: field("folder").and_then(unhex).and_then(|path| os_string(&path)).map(PathBuf::from),
            version: field("version").and_then(unhex).and_then(|bytes| version_in(std::str::from_utf8(&bytes).ok()?)),
            code_variables,
            nonce: nonce.to_owned(),
            payload: Vec::new(),
        };
        request.payload = bytes.split_off(end + 2);
        if request.payload.len() > length {
            return Err(invalid("it has more bytes than it says"));
        }
        let have = request.payload.len();
        request.payload.resize(length, 0);
        from.read_exact(&mut request.payload[have..]).await?;
        Ok(request)
    }

    /// Returns the bytes of an answer.
    pub(super) fn frame(&self, output: &HookOutput) -> Vec<u8> {
        let HookOutput { stdout, stderr, code } = output;
        let line = format!("{PROTOCOL} {} {code} {} {}\n", self.nonce, stdout.len(), stderr.len());
        [line.as_bytes(), stdout.as_bytes(), stderr.as_bytes()].concat()
    }
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("a request cannot be read: {problem}"))
}

/// Returns the version in a variable of a client: `1.0.102`, `claude-code_2-1-325_harness`.
fn version_in(text: &str) -> Option<String> {
    let is_version = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c))
    };
    let version = text.split('_').find(is_version)?;
    Some(if version.contains('.') { version.to_owned() } else { version.replace('-', ".") })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(byte).collect()
}
