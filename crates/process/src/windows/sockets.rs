//! Named pipes instead of sockets.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};

use crate::files::read_regular_text;

pub(crate) type AcceptedStream = NamedPipeServer;

const PREFIX: &str = r"\\.\pipe\amplifier-";
const MAX_NAME_BYTES: u64 = 256;
/// `ERROR_PIPE_BUSY`: the listener has not offered the next connection yet.
const PIPE_BUSY: i32 = 231;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const ATTEMPTS: usize = 250;
/// `GENERIC_WRITE | DELETE`.
const WRITE_AND_DELETE: u32 = 0x4000_0000 | 0x0001_0000;
/// `FILE_SHARE_READ | FILE_SHARE_DELETE`.
const SHARE_READ_AND_DELETE: u32 = 1 | 4;
/// `FILE_FLAG_DELETE_ON_CLOSE`.
const DELETE_ON_CLOSE: u32 = 0x0400_0000;

#[derive(Debug)]
pub(crate) struct SystemListener {
    name: String,
    next: NamedPipeServer,
    /// The system removes the file when it is closed, even if this process is killed, so that clients do not connect to a later pipe of that name.
    _file: File,
}

impl SystemListener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{PREFIX}{name}");
        let next = ServerOptions::new().first_pipe_instance(true).create(&name)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).access_mode(WRITE_AND_DELETE).share_mode(SHARE_READ_AND_DELETE);
        let mut file = options.custom_flags(DELETE_ON_CLOSE).open(path)?;
        file.write_all(name.as_bytes())?;
        Ok(Self { name, next, _file: file })
    }

    pub(crate) async fn accept(&mut self) -> io::Result<AcceptedStream> {
        self.next.connect().await?;
        let next = ServerOptions::new().create(&self.name)?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// Returns none: only this user can write to the pipe, and clients that do not write receive nothing.
pub(crate) fn check_peer(_pipe: &AcceptedStream) -> io::Result<Option<i32>> {
    Ok(None)
}

pub(crate) fn split(pipe: AcceptedStream) -> (ReadHalf<AcceptedStream>, WriteHalf<AcceptedStream>) {
    tokio::io::split(pipe)
}

pub(crate) async fn connect(path: &Path) -> io::Result<(ReadHalf<NamedPipeClient>, WriteHalf<NamedPipeClient>)> {
    let name = read_regular_text(path, MAX_NAME_BYTES)?;
    if !name.starts_with(PREFIX) {
        let text = format!("`{}` does not hold the name of a pipe", path.display());
        return Err(io::Error::new(ErrorKind::InvalidData, text));
    }
    for _ in 0..ATTEMPTS {
        match ClientOptions::new().open(&name) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => tokio::time::sleep(RETRY_INTERVAL).await,
            opened => return Ok(tokio::io::split(opened?)),
        }
    }
    Err(ErrorKind::TimedOut.into())
}

pub(crate) fn is_open(path: &Path) -> bool {
    path.is_file()
}
