//! The HTTP server: listening, TLS, limits and shutdown.

mod connection_stream;
mod shares;
mod slots;
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
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::{Layer, Service};

use crate::App;
use crate::access::guard::{ClientConnection, RequestGuard, ServerOrigin, StreamSlots, guard};
use crate::access::{Access, AccessError, Role};
use crate::api;
use crate::client::Address;
use crate::push::{Notifier, NotifyError, Webhook};
use connection_stream::ConnectionStream;
pub(crate) use shares::{ConnectionShares, Holder, NoSlot, Share};
pub(crate) use slots::ConnectionSlot;
use slots::ConnectionSlots;
pub use tls::TlsFiles;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Listen address.
    pub listen: SocketAddr,
    /// Host names besides the address: `box.example`, `box.example:443`. Links use the first one.
    pub hosts: Vec<String>,
    /// Certificate and key; without them, traffic is not encrypted.
    pub tls: Option<TlsFiles>,
    /// `true` to listen on the network without TLS.
    pub insecure: bool,
    /// Limit of connections. One user may hold half of those for signed-in users; an eighth of them is reserved for the
    /// owner.
    pub connections: usize,
    /// Limit of connections that have not authenticated. A new one replaces the oldest.
    pub strangers: usize,
    /// Limit of WebSockets and line streams, shared in the same way.
    pub sockets: usize,
    /// Time limit for a request's headers and for the TLS handshake.
    pub header_time: Duration,
    /// Time limit for a request's body.
    pub body_time: Duration,
    /// Time limit without progress while a client receives a response.
    pub stall_time: Duration,
    /// Time limit for running requests at shutdown.
    pub stop_time: Duration,
    /// Webhooks that receive notifications about approval requests.
    pub webhooks: Vec<Webhook>,
    /// Origins of push services that may have a private address: `https://push.example`.
    pub push_services: Vec<String>,
}

impl ServerOptions {
    /// Returns options for this address, with limits for one machine and some dozens of users.
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
            webhooks: Vec::new(),
            push_services: Vec::new(),
        }
    }
}

/// The reason why the server cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on `{address}`: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Listening on the network requires TLS or consent.
    #[error(
        "listening on `{0}` requires TLS: others on the network could read and change the traffic; set --tls-cert and \
         --tls-key, or --insecure"
    )]
    Insecure(SocketAddr),
    /// Another server of this user is running.
    #[error("a server is already running; `amplifier serve link` prints a link to it")]
    Running,
    /// The certificate or the key is invalid.
    #[error("invalid TLS file `{file}`: {problem}")]
    Tls {
        /// The file.
        file: PathBuf,
        /// The cause.
        problem: String,
    },
    /// A file or folder cannot be used.
    #[error("`{file}`: {source}")]
    File {
        /// The path.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Notifications cannot be sent.
    #[error(transparent)]
    Notify(#[from] NotifyError),
}

/// The server.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Server {
    /// Starts the server. It runs until [`RunningServer::stop`].
    ///
    /// # Errors
    /// If the address cannot be bound, or is not allowed without TLS.
    pub async fn start(app: App, options: ServerOptions) -> Result<RunningServer, ServeError> {
        let access = app.access.clone();
        let notifier = Notifier::open(app.clone(), &options.webhooks, &options.push_services)?;
        let mut running = Self::with_routes(access, api::router(app, notifier.clone()).0, options).await?;
        running.notifying = notifier.start(&running.url);
        Ok(running)
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
        let (url, notifying) = (site.url.clone(), JoinSet::new());
        Ok(RunningServer { address, url, access, site, stopping, stop_time, task, notifying, file, _lock: lock })
    }
}

/// A running server. Dropping it stops the server at once.
#[derive(Debug)]
#[must_use]
pub struct RunningServer {
    /// Bound address.
    pub address: SocketAddr,
    /// URL for browsers.
    pub url: String,
    access: Access,
    site: Arc<ServerOrigin>,
    stopping: watch::Sender<ShutdownStage>,
    stop_time: Duration,
    task: JoinHandle<()>,
    /// Ends when it is dropped.
    notifying: JoinSet<()>,
    file: PathBuf,
    _lock: FileLock,
}

impl RunningServer {
    /// Returns a one-time link that signs one browser in.
    ///
    /// # Errors
    /// If the name is invalid.
    pub fn link(&self, name: &str, role: Role) -> Result<String, AccessError> {
        self.access.code(name, role).map(|code| self.site.link(&code))
    }

    /// Stops the server: closes the listener, ends streams, finishes running requests within
    /// [`ServerOptions::stop_time`], and closes WebSockets.
    pub async fn stop(mut self) {
        self.stopping.send_replace(ShutdownStage::Closing);
        if timeout(self.stop_time, &mut self.task).await.is_err() {
            tracing::warn!("some requests were unfinished at shutdown");
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ShutdownStage {
    Open,
    /// New connections are refused; running requests are finished.
    Closing,
    Closed,
}

/// Signal that the server is shutting down.
#[derive(Clone, Debug)]
pub(crate) struct ShutdownSignal(watch::Receiver<ShutdownStage>);

impl ShutdownSignal {
    pub(crate) async fn requested(&mut self) {
        wait_for_stage(&mut self.0, ShutdownStage::Closing).await;
    }

    #[cfg(test)]
    fn never() -> (watch::Sender<ShutdownStage>, Self) {
        let (stopping, stopped) = watch::channel(ShutdownStage::Open);
        (stopping, Self(stopped))
    }
}

/// Waits for a stage of the shutdown. A dropped sender counts as every stage.
async fn wait_for_stage(stopped: &mut watch::Receiver<ShutdownStage>, wanted: ShutdownStage) {
    let _ = stopped.wait_for(|stage| *stage >= wanted).await;
}

/// Locks the folder: a second server of the same user would take over the sessions of the first.
async fn lock(folder: &std::path::Path) -> Result<FileLock, ServeError> {
    let file = folder.join("lock");
    // A command that checks for a running server holds the lock for a moment.
    for _ in 0..10 {
        match FileLock::try_lock(&file) {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => sleep(Duration::from_millis(30)).await,
            Err(source) => return Err(ServeError::File { file, source }),
        }
    }
    Err(ServeError::Running)
}

/// Returns the address at which this machine reaches the server.
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
        // Nothing is sent: the channel closes when the last connection has ended.
        let (busy, mut idle) = mpsc::channel(1);
        loop {
            let accepted = tokio::select! {
                () = wait_for_stage(&mut self.stopped, ShutdownStage::Closing) => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, busy.clone()),
                Err(error) => {
                    // Mostly the limit of open files, which passes when a connection ends.
                    tracing::warn!(%error, "cannot accept connections");
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
                // A newer connection replaced this one. Authenticated connections are never replaced.
                Ok(()) = lost => {}
            }
        });
    }
}

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
            tracing::debug!(%error, "connection failed");
        }
    }
}

impl Address {
    fn write(&self, file: &std::path::Path) -> io::Result<()> {
        write_atomic(file, &serde_json::to_vec(self).map_err(io::Error::other)?, Durability::Synced)
    }
}
