//! The floor of the daemon: a server that only echoes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Result, requests};

/// The argument with which this program is the server.
pub(crate) const ROLE: &str = "--be-the-echo-server";

/// A server in a process of its own. It ends with this.
pub(crate) struct EchoServer {
    process: Child,
    socket: PathBuf,
}

impl EchoServer {
    /// Starts a server, which writes and syncs so many bytes before each answer, if they are given.
    pub(crate) fn start(folder: &Path, record: Option<u64>) -> Result<Self> {
        let socket = folder.join(if record.is_some() { "log-socket" } else { "echo-socket" });
        _ = std::fs::remove_file(&socket);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ROLE).arg(&socket).stdout(Stdio::piped());
        command.args(record.map(|size| size.to_string()));
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
    let socket = arguments.first().ok_or("no socket")?;
    let listener = UnixListener::bind(socket)?;
    let mut log = match arguments.get(1) {
        Some(size) => Some((File::create(format!("{socket}.log"))?, vec![b'.'; size.parse()?])),
        None => None,
    };
    let mut stdout = std::io::stdout();
    stdout.write_all(b".")?;
    stdout.flush()?;
    for stream in listener.incoming() {
        answer(stream?, log.as_mut())?;
    }
    Ok(())
}

fn answer(mut stream: UnixStream, log: Option<&mut (File, Vec<u8>)>) -> Result<()> {
    let nonce = requests::read(&mut stream)?;
    if let Some((log, record)) = log {
        log.write_all(record)?;
        log.sync_data()?;
    }
    Ok(writeln!(stream, "amplifier-guard 1 {nonce} 0 0 0")?)
}
