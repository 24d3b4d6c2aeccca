//! The floor of the daemon: a server that only echoes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Result, requests};

/// The argument with which this program is the server.
pub(crate) const ROLE: &str = "--be-the-echo-server";

/// The size of the records of one call in the audit log.
const RECORD: usize = 2_000;

/// A server in a process of its own. It ends with this.
pub(crate) struct EchoServer {
    process: Child,
    socket: PathBuf,
}

impl EchoServer {
    /// Starts a server, which writes and syncs a record before each answer if there is a file.
    pub(crate) fn start(folder: &Path, log: Option<&Path>) -> Result<Self> {
        let socket = folder.join(if log.is_some() { "log-socket" } else { "echo-socket" });
        _ = std::fs::remove_file(&socket);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ROLE).arg(&socket).args(log).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        // It says when it listens.
        let mut ready = [0];
        process.stdout.take().ok_or("no pipe")?.read_exact(&mut ready)?;
        Ok(Self { process, socket })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Is the server, until it is killed.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let listener = UnixListener::bind(arguments.first().ok_or("no socket")?)?;
    let mut log = arguments.get(1).map(File::create).transpose()?;
    let mut stdout = std::io::stdout();
    stdout.write_all(b".")?;
    stdout.flush()?;
    for stream in listener.incoming() {
        answer(stream?, log.as_mut())?;
    }
    Ok(())
}

fn answer(mut stream: UnixStream, log: Option<&mut File>) -> Result<()> {
    let nonce = requests::read(&mut stream)?;
    if let Some(log) = log {
        log.write_all(&[b'.'; RECORD])?;
        log.sync_data()?;
    }
    Ok(writeln!(stream, "amplifier-guard 1 {nonce} 0 0 0")?)
}
