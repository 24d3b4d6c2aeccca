//! The server's end of the link: accepts connections of sessions.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_link::{
    LineReader, MachineCall, MachineMessage, PipeConnector, SOCKET, ServerMessage, SessionHello, SessionMessage,
    VERSION, is_valid_id, write,
};
use amplifier_process::files::{OpenOptionsExt, create_private_folder, make_private};
use amplifier_process::sockets::{SocketConnection, SocketListener};
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, BufWriter};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::api_types::SessionHost;
use crate::hub::Hub;

/// Lock file of the link socket. The server itself has another one.
const LOCK: &str = "socket.lock";
/// Time limit for the hello message, and for sending a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit of connected sessions.
const SESSIONS: usize = 4096;
/// Limit of messages that wait for a session.
const QUEUE: usize = 1024;

/// Accepts sessions until it is dropped.
#[derive(Debug)]
pub struct LinkListener {
    socket: PathBuf,
    task: JoinHandle<()>,
    _lock: File,
}

/// The reason why sessions cannot connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkListenerError {
    /// A server is running.
    #[error("a server is already running with the socket `{}`; stop it, or open it with `amplifier serve link`", .0.display())]
    Running(PathBuf),
    /// The folder or the socket cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl LinkListener {
    /// Creates the folder if needed, and listens on the socket in it. Only the user can access either.
    ///
    /// The socket of a server that is gone is replaced; that of a living one stays.
    ///
    /// # Errors
    /// If a server is running, or the folder cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open(folder: &Path, hub: Hub) -> Result<Self, LinkListenerError> {
        let socket = folder.join(SOCKET);
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| LinkListenerError::Io { path, source }
        };
        create_private_folder(folder).and_then(|()| make_private(folder)).map_err(at(folder))?;
        let lock = folder.join(LOCK);
        let file = OpenOptions::new().create(true).truncate(false).write(true).owner_only().open(&lock);
        let file = file.map_err(at(&lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LinkListenerError::Running(socket)),
            Err(TryLockError::Error(source)) => return Err(at(&lock)(source)),
        }
        // While the lock is held, an existing socket is left over from another run.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&socket)(error)),
            _ => {}
        }
        let listener = SocketListener::bind(&socket).map_err(at(&socket))?;
        hub.presence().set_opened_at(Timestamp::now());
        let task = tokio::spawn(accept(listener, hub));
        Ok(Self { socket, task, _lock: file })
    }

    /// Path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for LinkListener {
    fn drop(&mut self) {
        self.task.abort();
        // A leftover socket is replaced by the next server.
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn accept(mut listener: SocketListener, hub: Hub) {
    let slots = Arc::new(Semaphore::new(SESSIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok(connection) => {
                let hub = hub.clone();
                connections.spawn(async move {
                    if let Err(error) = accept_session(connection, hub).await {
                        tracing::debug!(%error, "a session's connection was refused or lost");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Mostly the limit of open files, which passes.
                tracing::warn!(%error, "cannot accept a session's connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn accept_session(connection: SocketConnection, hub: Hub) -> io::Result<()> {
    let (from, to, peer) = connection.into_parts()?;
    serve_session(hub, from, to, SessionHost::Process, peer).await
}

impl Hub {
    /// Returns the connector for sessions in the server's own process.
    pub fn pipes(&self) -> PipeConnector {
        self.session_pipes(SessionHost::Server)
    }

    fn session_pipes(&self, place: SessionHost) -> PipeConnector {
        let hub = self.clone();
        PipeConnector::new(move || {
            let (own, theirs) = tokio::io::duplex(64 << 10);
            let hub = hub.clone();
            let (from, to) = tokio::io::split(own);
            tokio::spawn(async move {
                if let Err(error) = serve_session(hub, from, to, place, None).await {
                    tracing::debug!(%error, "a session in the server disconnected");
                }
            });
            theirs
        })
    }
}

impl Hub {
    /// Returns the connector for sessions on other machines. Only the server's process has it: a client of this
    /// connection names the machine of a session.
    pub fn remote_pipes(&self) -> PipeConnector {
        self.session_pipes(SessionHost::Machine)
    }

    /// Returns the connector for the server's own machine. Only the server's process has it: a client of this
    /// connection can start sessions and write approval rules.
    pub fn machine_pipes(&self) -> PipeConnector {
        let hub = self.clone();
        PipeConnector::new(move || {
            let (own, theirs) = tokio::io::duplex(64 << 10);
            let hub = hub.clone();
            tokio::spawn(async move {
                if let Err(error) = serve_machine(&hub, own).await {
                    tracing::debug!(%error, "the connection to the machine has ended");
                }
            });
            theirs
        })
    }
}

/// Handles the machine's messages until the connection ends.
async fn serve_machine(hub: &Hub, stream: tokio::io::DuplexStream) -> io::Result<()> {
    let (from, to) = tokio::io::split(stream);
    let (mut lines, mut to) = (LineReader::new(BufReader::new(from)), BufWriter::new(to));
    match tokio::time::timeout(PATIENCE, lines.next()).await?? {
        Some(MachineMessage::Hello { version: VERSION }) => {}
        _ => return Err(io::Error::other(format!("expected a hello message of version {VERSION} first"))),
    }
    let (link, mut calls) = mpsc::channel::<MachineCall>(QUEUE);
    let connection = hub.join_machine(link);
    let _leaving = LeaveGuard(|| hub.leave_machine(connection));
    loop {
        tokio::select! {
            message = lines.next() => match message? {
                Some(message) => hub.receive_machine(connection, message),
                None => return Ok(()),
            },
            Some(call) = calls.recv() => tokio::time::timeout(PATIENCE, write(&mut to, &call)).await??,
        }
    }
}

/// Handles a session's messages until the connection ends.
async fn serve_session(
    hub: Hub,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send + 'static,
    runs_in: SessionHost,
    peer: Option<i32>,
) -> io::Result<()> {
    let mut lines = LineReader::new(BufReader::with_capacity(64 << 10, from));
    let mut to = BufWriter::new(to);
    let first = tokio::time::timeout(PATIENCE, lines.next()).await?;
    let Some(SessionMessage::Hello(hello)) = first? else {
        return Err(io::Error::other("expected a hello message first"));
    };
    check(&hello)?;
    let (link, mut outgoing) = mpsc::channel::<ServerMessage>(QUEUE);
    let connection = hub.join(hello, runs_in, peer, link).map_err(io::Error::other)?;
    let _leaving = LeaveGuard(|| hub.leave(connection));
    let welcome = ServerMessage::Welcome { version: VERSION };
    tokio::time::timeout(PATIENCE, write(&mut to, &welcome)).await??;
    // A task of its own: a session that does not read delays nothing that it sends.
    let mut writer = tokio::task::JoinSet::new();
    writer.spawn(async move {
        while let Some(message) = outgoing.recv().await {
            match tokio::time::timeout(PATIENCE, write(&mut to, &message)).await {
                Ok(Ok(())) => {}
                _ => return,
            }
        }
    });
    loop {
        let message = tokio::select! {
            message = lines.next() => message?,
            _ = writer.join_next() => return Err(io::Error::other("the session does not read its messages")),
        };
        match message {
            None | Some(SessionMessage::Bye { .. }) => return Ok(()),
            Some(message) => hub.receive(connection, message).map_err(io::Error::other)?,
        }
    }
}

fn check(hello: &SessionHello) -> io::Result<()> {
    if hello.version != VERSION {
        return Err(io::Error::other(format!("unsupported protocol version {}; expected {VERSION}", hello.version)));
    }
    if !is_valid_id(&hello.session) || !is_valid_id(&hello.run) {
        return Err(io::Error::other(format!("invalid session id `{}` or run id `{}`", hello.session, hello.run)));
    }
    Ok(())
}

struct LeaveGuard<F: FnMut()>(F);

impl<F: FnMut()> Drop for LeaveGuard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
