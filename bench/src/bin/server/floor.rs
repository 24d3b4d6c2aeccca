//! The floor: a server that only echoes, with as many clients, and messages as large and as frequent as those of the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use futures::future::join_all;
use futures::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::{Message as Sent, Utf8Bytes};

use crate::figures::Spread;
use crate::http::{Reach, Socket};
use crate::process::{Child, Memory, Usage};
use crate::watchers::Total;
use crate::{Load, Result};

/// How long it is measured, at the pace of the stream and as fast as it goes.
const PACED: Duration = Duration::from_secs(8);
const FAST: Duration = Duration::from_secs(4);

/// What it does.
pub(crate) struct Floor {
    pub(crate) seconds: f64,
    pub(crate) messages: f64,
    pub(crate) megabytes: f64,
    pub(crate) bytes_each: u64,
    pub(crate) usage: Usage,
    pub(crate) lag: Spread,
    pub(crate) http: Spread,
    /// Messages a second, as fast as it goes.
    pub(crate) most: f64,
    pub(crate) memory: Memory,
}

/// Echoes what is posted to `/`, and every message at `/socket`.
pub(crate) async fn echo(listener: TcpListener) -> std::io::Result<()> {
    async fn back(mut socket: WebSocket) {
        while let Some(Ok(Message::Text(text))) = socket.recv().await {
            if socket.send(Message::Text(text)).await.is_err() {
                return;
            }
        }
    }
    let routes = Router::new()
        .route("/", post(|body: String| async { body }))
        .route("/socket", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(back) }));
    axum::serve(listener, routes).await
}

pub(crate) async fn measure(load: Load, watched: &Total, seconds: f64, browsers: &Handle) -> Result<Floor> {
    let folder = tempfile::tempdir()?;
    let child = Child::floor(folder.path())?;
    let reach = child.reach().await?;
    let mut sockets = Vec::new();
    for _ in 0..load.watchers {
        let reach = reach.clone();
        sockets.push(browsers.spawn(async move { reach.socket("/socket").await }).await??);
    }
    let bytes_each = watched.bytes_each();
    let message: Utf8Bytes = "x".repeat(bytes_each as usize).into();
    let pause = Duration::from_secs_f64(seconds * load.watchers as f64 / watched.messages.max(1) as f64);
    let memory = child.watch_memory();
    let before = Usage::of(child.id())?;
    let begun = Instant::now();
    let paced = run(sockets, &message, Some(pause), PACED, browsers);
    let (paced, http) = tokio::join!(paced, posts(&reach));
    let (sockets, lags) = paced?;
    let seconds = begun.elapsed().as_secs_f64();
    let usage = Usage::of(child.id())?.since(before);
    let messages = lags.len() as f64 / seconds;
    let begun = Instant::now();
    let (_, fast) = run(sockets, &message, None, FAST, browsers).await?;
    let most = fast.len() as f64 / begun.elapsed().as_secs_f64();
    let memory = memory.end();
    child.end();
    let megabytes = messages * bytes_each as f64 / 1e6;
    Ok(Floor { seconds, messages, megabytes, bytes_each, usage, lag: Spread::of(lags), http: http?, most, memory })
}

/// Every client sends a message and waits for it, again and again.
async fn run(
    sockets: Vec<Socket>,
    message: &Utf8Bytes,
    pause: Option<Duration>,
    time: Duration,
    browsers: &Handle,
) -> Result<(Vec<Socket>, Vec<Duration>)> {
    let count = sockets.len().max(1);
    let clients = sockets.into_iter().enumerate().map(|(number, socket)| {
        let offset = pause.unwrap_or_default().mul_f64(number as f64 / count as f64);
        browsers.spawn(client(socket, message.clone(), offset, pause, time))
    });
    let (mut sockets, mut lags) = (Vec::new(), Vec::new());
    for client in join_all(clients).await {
        let (socket, took) = client??;
        sockets.push(socket);
        lags.extend(took);
    }
    Ok((sockets, lags))
}

async fn client(
    mut socket: Socket,
    message: Utf8Bytes,
    offset: Duration,
    pause: Option<Duration>,
    time: Duration,
) -> Result<(Socket, Vec<Duration>)> {
    sleep(offset).await;
    let mut ticks = interval(pause.unwrap_or(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        if pause.is_some() {
            ticks.tick().await;
        }
        let sent = Instant::now();
        socket.send(Sent::Text(message.clone())).await?;
        timeout(time, socket.next()).await?.ok_or("the floor is gone")??;
        took.push(sent.elapsed());
    }
    Ok((socket, took))
}

/// Posts now and then, and says how long that takes.
async fn posts(reach: &Reach) -> Result<Spread> {
    let body = Arc::new("x".repeat(64));
    let mut took = Vec::new();
    for _ in 0..500 {
        let asked = Instant::now();
        reach.post("/", &body).await?;
        took.push(asked.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    Ok(Spread::of(took))
}
