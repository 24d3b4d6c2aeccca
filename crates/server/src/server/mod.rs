//! Listens, and lets the routes answer.

mod shares;
mod slots;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_process::files::{Durability, write_atomic};
use amplifier_process::locks::FileLock;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::{Layer, Service};

use crate::App;
use crate::access::guard::{ClientConnection, RequestGuard, ServerOrigin, StreamSlots, guard};
use crate::access::{Access, AccessError, Role};
use crate::api;
use crate::client::Address;
pub(crate) use shares::{ConnectionShares, Holder, NoSlot, Share};
pub(crate) use slots::ConnectionSlot;
use slots::ConnectionSlots;
use stream::ConnectionStream;
pub use tls::TlsFiles;

/// What can be set.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Names that the server is known under beside its address: `box.example`, `box.example:443`. People are sent to the first one.
    pub hosts: Vec<String>,
    /// The certificate and its key; without them, what is said can be read on the way.
    pub tls: Option<TlsFiles>,
    /// Whether others on the network may reach a server without TLS.
    pub insecure: bool,
    /// How many connections there may be. One person may hold half of those for people who are known; an eighth of them is kept for the owner.
    pub connections: usize,
    /// How many of them may be of people who have not said yet who they are. Who comes then takes the place of the one that came first.
    pub strangers: usize,
    /// How many of them may watch, over a WebSocket or a stream of lines; shared in the same way.
    pub sockets: usize,
    /// How long a client may take to say what it wants, or to agree on TLS.
    pub header_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a client may take nothing of what it is sent.
    pub stall_time: Duration,
    /// How long requests that run may go on when the server stops.
    pub stop_time: Duration,
}

impl ServerOptions {
    /// A server at that address, with limits for one machine and some dozens of people.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            hosts: Vec::new(),
            tls: None,
            insecure: false,
            connections: 1024,
            strangers: 128,
            sockets: 512,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(30),
            stop_time: Duration::from_secs(5),
        }
    }
}

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("`{address}` cannot be listened on: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Others would read everything.
    #[error(
        "`{0}` can be reached from the network, and without TLS others can read and change what is said: give a certificate with --tls-cert and \
         --tls-key, or say --insecure"
    )]
    Insecure(SocketAddr),
    /// One runs already.
    #[error("a server runs already; `amplifier serve link` gives a link to it")]
    Running,
    /// The certificate or the key.
    #[error("`{file}` cannot be used for TLS: {problem}")]
    Tls {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file or folder.
    #[error("`{file}`: {source}")]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
}

/// The server.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Server {
    /// Starts it. It runs until [`RunningServer::stop`].
    ///
    /// # Errors
    /// If it cannot listen there, or should not.
    pub async fn start(app: App, options: ServerOptions) -> Result<RunningServer, ServeError> {
        let access = app.access.clone();
        Self::with_routes(access, api::router(app).0, options).await
    }

    async fn with_routes(access: Access, router: Router, options: ServerOptions) -> Result<RunningServer, ServeError> {
        if !options.listen.ip().is_loopback() && options.tls.is_none() && !options.insecure {
            return Err(ServeError::Insecure(options.listen));
        }
        let lock = lock(access.folder()).await?;
        let tls = options.tls.as_ref().map(TlsFiles::read).transpose()?;
        let problem = |source| ServeError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(problem)?;
        let address = listener.local_addr().map_err(problem)?;

        let site = Arc::new(ServerOrigin::new(address, &options.hosts, tls.is_some()));
        let file = access.folder().join("address");
        let found = Address {
            url: site.url.clone(),
            reach: reachable(address),
            owner: access.owner().to_owned(),
            pid: std::process::id(),
            certificate: tls.as_ref().map(|tls| tls.fingerprint.clone()),
        };
        found.write(&file).map_err(|source| ServeError::File { file: file.clone(), source })?;

        let (stopping, stopped) = watch::channel(ShutdownStage::Open);
        let guarding = RequestGuard {
            access: access.clone(),
            site: site.clone(),
            stream_slots: StreamSlots(ConnectionShares::new(options.sockets)),
            body_time: options.body_time,
        };
        let stop_time = options.stop_time;
        let accept_loop = AcceptLoop {
            listener,
            tls: tls.map(|tls| tls.acceptor),
            routes: from_fn_with_state(Arc::new(guarding), guard as fn(_, _, _) -> _).layer(router),
            slots: ConnectionSlots::new(options.connections, options.strangers),
            options,
            stopped,
        };
        let task = tokio::spawn(accept_loop.run());
        Ok(RunningServer { address, url: site.url.clone(), access, site, stopping, stop_time, task, file, _lock: lock })
    }
}

/// A server that runs. Dropping it stops it at once.
#[derive(Debug)]
#[must_use]
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where browsers find it.
    pub url: String,
    access: Access,
    site: Arc<ServerOrigin>,
    stopping: watch::Sender<ShutdownStage>,
    stop_time: Duration,
    task: JoinHandle<()>,
    file: PathBuf,
    /// Given back when the server has ended.
    _lock: FileLock,
}

impl RunningServer {
    /// A link that lets one browser in, once.
    ///
    /// # Errors
    /// If the name cannot be used.
    pub fn link(&self, name: &str, role: Role) -> Result<String, AccessError> {
        self.access.code(name, role).map(|code| self.site.link(&code))
    }

    /// Stops: nobody new comes in, streams end, what is being answered is answered, within [`ServerOptions::stop_time`], and WebSockets are closed.
    pub async fn stop(mut self) {
        self.stopping.send_replace(ShutdownStage::Closing);
        if timeout(self.stop_time, &mut self.task).await.is_err() {
            tracing::warn!("some requests were not answered");
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stopping.send_replace(ShutdownStage::Closed);
        self.task.abort();
        let _ = fs::remove_file(&self.file);
    }
}

/// How far the server is with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ShutdownStage {
    Open,
    /// Nobody new comes in; what runs is finished.
    Closing,
    /// Every connection ends.
    Closed,
}

/// Says when the server stops.
#[derive(Clone, Debug)]
pub(crate) struct ShutdownSignal(watch::Receiver<ShutdownStage>);

impl ShutdownSignal {
    /// Returns when it begins to stop.
    pub(crate) async fn requested(&mut self) {
        wait_for_stage(&mut self.0, ShutdownStage::Closing).await;
    }

    /// Of a server that never stops.
    #[cfg(test)]
    fn never() -> (watch::Sender<ShutdownStage>, Self) {
        let (stopping, stopped) = watch::channel(ShutdownStage::Open);
        (stopping, Self(stopped))
    }
}

/// Waits until the server is as far. One that is gone is.
async fn wait_for_stage(stopped: &mut watch::Receiver<ShutdownStage>, wanted: ShutdownStage) {
    let _ = stopped.wait_for(|stage| *stage >= wanted).await;
}

/// Keeps a second server of the same person from running: it would take the sessions of the first.
async fn lock(folder: &std::path::Path) -> Result<FileLock, ServeError> {
    let file = folder.join("lock");
    // Whoever only looks whether a server runs holds it for a moment.
    for _ in 0..10 {
        match FileLock::try_lock(&file) {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => sleep(Duration::from_millis(30)).await,
            Err(source) => return Err(ServeError::File { file, source }),
        }
    }
    Err(ServeError::Running)
}

/// Where this machine reaches a server that listens there.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    address
}

struct AcceptLoop<R> {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: R,
    slots: Arc<ConnectionSlots>,
    options: ServerOptions,
    stopped: watch::Receiver<ShutdownStage>,
}

impl<R> AcceptLoop<R>
where
    R: Service<Request<Body>, Response = axum::response::Response, Error = Infallible> + Clone + Send + Sync + 'static,
    R::Future: Send,
{
    async fn run(mut self) {
        // Nothing is sent: it is closed when the last connection has let go of it.
        let (busy, mut idle) = mpsc::channel(1);
        loop {
            let accepted = tokio::select! {
                () = wait_for_stage(&mut self.stopped, ShutdownStage::Closing) => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, busy.clone()),
                Err(error) => {
                    // No more files, mostly: that passes when somebody leaves.
                    tracing::warn!(%error, "nobody can connect");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop((self.listener, busy));
        idle.recv().await;
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr, busy: mpsc::Sender<Infallible>) {
        let (slot, lost) = self.slots.admit();
        let _ = stream.set_nodelay(true);
        let (routes, tls, options, stopped) =
            (self.routes.clone(), self.tls.clone(), self.options.clone(), self.stopped.clone());
        let (socket, stopping) = (Arc::new(Mutex::new(None)), ShutdownSignal(stopped.clone()));
        let connection = ClientConnection { peer: peer.ip(), slot: Arc::new(slot), socket, stopping };
        tokio::spawn(async move {
            let serving = HttpConnection { routes, connection, options, stopped, busy };
            let served = async move {
                match tls {
                    None => serving.run(stream).await,
                    Some(tls) => {
                        let agreed = timeout(serving.options.header_time, tls.accept(stream)).await;
                        if let Ok(Ok(stream)) = agreed {
                            serving.run(stream).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                // Somebody else has its place now. For those who are known, this never comes.
                Ok(()) = lost => {}
            }
        });
    }
}

/// One connection.
struct HttpConnection<R> {
    routes: R,
    connection: ClientConnection,
    options: ServerOptions,
    stopped: watch::Receiver<ShutdownStage>,
    busy: mpsc::Sender<Infallible>,
}

impl<R> HttpConnection<R>
where
    R: Service<Request<Body>, Response = axum::response::Response, Error = Infallible> + Clone + Send + Sync + 'static,
    R::Future: Send,
{
    async fn run<T>(self, stream: T)
    where
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let Self { routes, connection, options, mut stopped, busy: _busy } = self;
        let mut ended = stopped.clone();
        let closed = async move { wait_for_stage(&mut ended, ShutdownStage::Closed).await };
        let open = ConnectionStream::new(stream, connection.clone(), closed, options.stall_time);
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(connection.clone());
            routes.clone().call(request)
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_time)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(open), service)
            .with_upgrades();
        let mut serving = pin!(serving);
        let served = tokio::select! {
            served = serving.as_mut() => served,
            () = wait_for_stage(&mut stopped, ShutdownStage::Closing) => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

impl Address {
    fn write(&self, file: &std::path::Path) -> io::Result<()> {
        write_atomic(file, &serde_json::to_vec(self).map_err(io::Error::other)?, Durability::Synced)
    }
}
