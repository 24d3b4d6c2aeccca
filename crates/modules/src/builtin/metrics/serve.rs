//! An HTTP server for scrapes by Prometheus.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::prometheus;
use super::store::Store;
use crate::builtin::shared::settings::lock;

const CONNECTIONS: usize = 8;

const CONNECTION: Duration = Duration::from_secs(5);

/// State of the server, which starts at the first event because a runtime is required.
pub(super) enum ServerState {
    /// Disabled, or failed to start.
    None,
    Waiting(SocketAddr),
    Running {
        _server: Arc<MetricsServer>,
    },
}

/// A running server; stops when dropped.
pub(super) struct MetricsServer {
    wanted: SocketAddr,
    task: JoinHandle<()>,
}

impl ServerState {
    /// Reuses a running server if it has the same address.
    pub(super) fn new(wanted: Option<SocketAddr>, running: &Weak<MetricsServer>) -> Self {
        let Some(wanted) = wanted else { return Self::None };
        match running.upgrade().filter(|server| server.wanted == wanted && !server.task.is_finished()) {
            Some(server) => Self::Running { _server: server },
            None => Self::Waiting(wanted),
        }
    }

    /// Starts the server once. Returns its address, or the reason for a failure.
    pub(super) fn start(
        &mut self,
        store: &Arc<Mutex<Store>>,
        running: &Mutex<Weak<MetricsServer>>,
    ) -> Option<Result<SocketAddr, String>> {
        let Self::Waiting(wanted) = *self else { return None };
        // Another session may already use the port; that must not fail this one.
        *self = Self::None;
        let listener = std::net::TcpListener::bind(wanted)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .and_then(TcpListener::from_std);
        let began = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        Some(match began {
            Ok((address, listener)) => {
                let server = Arc::new(MetricsServer { wanted, task: tokio::spawn(serve(listener, store.clone())) });
                *lock(running) = Arc::downgrade(&server);
                *self = Self::Running { _server: server };
                Ok(address)
            }
            Err(error) => Err(format!("the metrics cannot be served at `{wanted}`: {error}")),
        })
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, store: Arc<Mutex<Store>>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropping the set closes all connections.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // A possible cause is too many open files: wait until others are closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let store = store.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| std::future::ready(answer(&request, &store)));
            let connection = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), answer);
            let _ = timeout(CONNECTION, connection).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

fn answer(request: &Request<Incoming>, store: &Mutex<Store>) -> Result<Response<String>, Infallible> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, prometheus::text(&lock(store))),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(amplifier_audit::prometheus::CONTENT_TYPE));
    Ok(response)
}
