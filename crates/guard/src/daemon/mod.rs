//! The daemon: decides about the calls of all guarded clients of one user.

mod call_limit;
mod collect;
mod folder;
mod installation;
mod limits;
mod once;
mod programs;
mod protect;
mod request;
mod running_calls;
mod session;
mod session_facts;
mod sessions;
mod tool_calls;
mod waiting_texts;
mod workspace;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_host::{Config, Home};
use amplifier_process::files::FileStatus;
use amplifier_process::locks::FileLock;
use amplifier_process::sockets::{SocketConnection, SocketListener, is_open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::folder::GuardFolder;
use self::request::{OTHER_VERSION, Request};
use self::session_facts::FactStore;
use self::sessions::Sessions;
use crate::answer::HookOutput;

/// The time for the arrival of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The time for another daemon to begin or to end.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Loads the configuration of a workspace.
pub type LoadConfig = Box<dyn Fn(&Path) -> amplifier_host::Result<Config> + Send + Sync>;

/// Options of a [`Daemon`].
pub struct DaemonOptions {
    /// The folder with the socket.
    pub folder: GuardFolder,
    /// The user's folders.
    pub home: Home,
    /// Loads the configuration of a workspace.
    pub load: LoadConfig,
    /// The time without a call after which the daemon ends.
    pub idle: Duration,
    /// The program of the daemon. If its file changes, the daemon ends, and the next call starts the new one.
    pub program: Option<PathBuf>,
}

/// A daemon that listens.
#[derive(Debug)]
pub struct Daemon {
    listener: SocketListener,
    state: Arc<DaemonState>,
    folder: GuardFolder,
    idle: Duration,
    /// The program and the start file, as they were at the start.
    origin: Vec<(PathBuf, FileStatus)>,
    _lock: FileLock,
}

struct DaemonState {
    sessions: Sessions,
    calls: AtomicUsize,
    activity: Notify,
}

impl std::fmt::Debug for DaemonState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonState").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Listens on the socket; none if another daemon does. The socket of a daemon that is gone is replaced.
    ///
    /// # Errors
    /// If the folder or the socket cannot be used.
    pub async fn open(options: DaemonOptions) -> io::Result<Option<Self>> {
        let DaemonOptions { folder, home, load, idle, program } = options;
        folder.create()?;
        let started = Instant::now();
        let lock = loop {
            match FileLock::try_lock(&folder.lock())? {
                Some(lock) => break lock,
                None if is_open(&folder.socket()) || started.elapsed() > LOCK_LIMIT => return Ok(None),
                // The other daemon is about to begin or to end.
                None => tokio::time::sleep(LOCK_INTERVAL).await,
            }
        };
        // While the lock is held, an existing socket is left over from another run.
        match std::fs::remove_file(folder.socket()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = SocketListener::bind(&folder.socket())?;
        let programs = programs::find(program.as_deref(), &home);
        let origin = program.into_iter().chain([folder.start()]);
        let origin = origin.filter_map(|file| FileStatus::from_path(&file).ok().map(|status| (file, status))).collect();
        let facts = FactStore::open(folder.path())?;
        let sessions = Sessions::new(home, load, programs, folder.clone(), facts);
        let state = Arc::new(DaemonState { sessions, calls: AtomicUsize::new(0), activity: Notify::new() });
        Ok(Some(Self { listener, state, folder, idle, origin, _lock: lock }))
    }

    /// Decides about calls until none has come for the idle time, the program or the start file has changed, or the log has failed. Ends the
    /// sessions then.
    ///
    /// # Cancel safety
    /// Dropping the future ends the calls without an answer, so they are denied.
    pub async fn run(self) {
        let Self { mut listener, state, folder, idle, origin, _lock } = self;
        let mut calls = JoinSet::new();
        let mut last = Instant::now();
        let is_idle = loop {
            while calls.try_join_next().is_some() {}
            tokio::select! {
                accepted = listener.accept() => {
                    last = Instant::now();
                    match accepted {
                        Ok(connection) => _ = calls.spawn(serve(connection, state.clone())),
                        Err(error) => {
                            // Mostly the limit of open files, which passes.
                            tracing::warn!(%error, "cannot accept a call");
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    }
                }
                () = state.activity.notified() => last = Instant::now(),
                () = tokio::time::sleep(idle.saturating_sub(last.elapsed())) => {
                    if state.calls.load(Ordering::SeqCst) == 0 && last.elapsed() >= idle {
                        break true;
                    }
                    last = Instant::now();
                }
            }
            let is_replaced =
                |(file, status): &(PathBuf, FileStatus)| FileStatus::from_path(file).is_ok_and(|now| now != *status);
            // A log that has failed takes no more records, so nothing could be allowed until the next daemon.
            if origin.iter().any(is_replaced) || state.sessions.has_failed() {
                break false;
            }
        };
        // A call from now on finds no socket, and starts the next daemon, which waits for the lock.
        _ = std::fs::remove_file(folder.socket());
        // Calls that had found it are answered.
        while let Ok(Ok(connection)) = timeout(LOCK_INTERVAL, listener.accept()).await {
            calls.spawn(serve(connection, state.clone()));
        }
        drop((listener, _lock));
        while calls.join_next().await.is_some() {}
        state.sessions.end(is_idle).await;
    }
}

/// A call that is counted, until its end or a panic.
struct CountedCall(Arc<DaemonState>);

impl CountedCall {
    fn new(state: Arc<DaemonState>) -> Self {
        state.calls.fetch_add(1, Ordering::SeqCst);
        Self(state)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        self.0.activity.notify_one();
    }
}

async fn serve(connection: SocketConnection, state: Arc<DaemonState>) {
    let call = CountedCall::new(state);
    let served = answer_call(connection, &call.0).await;
    drop(call);
    if let Err(error) = served {
        tracing::debug!(%error, "a call has no answer");
    }
}

/// Answers one call. Without an answer, the hook program denies.
async fn answer_call(connection: SocketConnection, state: &DaemonState) -> io::Result<()> {
    let (mut from, mut to, _) = connection.into_parts()?;
    let request = match timeout(REQUEST_LIMIT, Request::read(&mut from)).await? {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            to.write_all(OTHER_VERSION).await?;
            return to.shutdown().await;
        }
        request => request?,
    };
    let decide = async {
        match timeout(request.deadline, state.sessions.answer(&request)).await {
            Ok(output) => output,
            Err(_) => HookOutput::failure("amplifier guard: no decision within the time limit of this hook"),
        }
    };
    let output = tokio::select! {
        output = decide => output,
        // The client gave up: an open approval request is withdrawn.
        () = closed(&mut from) => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    to.write_all(&request.frame(&output)).await?;
    to.shutdown().await
}

/// Waits until the other end is closed. A request has nothing after its payload.
async fn closed(from: &mut (impl AsyncRead + Unpin)) {
    let mut byte = [0];
    while !matches!(from.read(&mut byte).await, Ok(0) | Err(_)) {}
}
