//! Behavior of the server with any routes.

use std::time::Duration;

use axum::extract::WebSocketUpgrade;
use axum::routing::{get, post};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tower_http::catch_panic::CatchPanicLayer;

use super::*;
use crate::access::{AccessOptions, Public};
use crate::api::error::ApiError;

/// Test time limit, longer than any operation here.
const LIMIT: Duration = Duration::from_secs(90);

async fn start(router: Router, change: impl FnOnce(&mut ServerOptions)) -> (RunningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(folder.path(), AccessOptions::default()).unwrap();
    let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    change(&mut options);
    (Server::with_routes(access, router, options).await.unwrap(), folder)
}

async fn send(running: &RunningServer, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let request = request.replace("HOST", &running.address.to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn ask(running: &RunningServer, request: &str) -> String {
    let mut stream = send(running, request).await;
    let mut text = String::new();
    timeout(LIMIT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

/// Reads the status of the first response.
async fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    timeout(LIMIT, stream.read_exact(&mut head)).await.unwrap().unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

fn sockets() -> Router {
    let handler = async |_: Public, upgrade: WebSocketUpgrade| {
        upgrade.on_upgrade(async |mut socket| while let Some(Ok(_)) = socket.recv().await {})
    };
    Router::new().route("/socket", get(handler))
}

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

#[tokio::test]
async fn a_panic_is_told_without_what_it_said() {
    let panics = Router::new().route("/", get(async || -> &'static str { panic!("the secret is 7") }));
    let panics = panics.layer(CatchPanicLayer::custom(crate::api::panicked));
    let (running, _folder) = start(panics, |_| ()).await;
    let answer = ask(&running, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("\"code\":\"failed\""), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
    running.stop().await;
}

#[tokio::test]
async fn a_failure_of_the_server_in_plain_words_is_not_told() {
    let fails = Router::new().route("/", get(async || (axum::http::StatusCode::BAD_GATEWAY, "the secret is 7")));
    let (running, _folder) = start(fails, |_| ()).await;
    let answer = ask(&running, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("\"code\":\"failed\""), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
    running.stop().await;
}

#[tokio::test]
async fn only_so_many_sockets_are_open_and_each_gives_its_place_back() {
    // One user holds at most half of them.
    let (running, _folder) = start(sockets(), |options| options.sockets = 4).await;
    let mut first = send(&running, UPGRADE).await;
    assert_eq!(status(&mut first).await, 101);
    let mut second = send(&running, UPGRADE).await;
    assert_eq!(status(&mut second).await, 101);
    let refused = ask(&running, &UPGRADE.replace("Connection: Upgrade", "Connection: Upgrade, close")).await;
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("too_many_sockets"), "{refused}");
    drop(first);
    timeout(LIMIT, async {
        loop {
            if status(&mut send(&running, UPGRADE).await).await == 101 {
                break;
            }
        }
    })
    .await
    .unwrap();
    running.stop().await;
}

#[tokio::test]
async fn an_upgrade_that_fails_takes_no_place() {
    let (running, _folder) = start(sockets(), |options| options.sockets = 1).await;
    for _ in 0..3 {
        let bad = UPGRADE.replace("Version: 13", "Version: 7");
        assert_eq!(status(&mut send(&running, &bad).await).await, 400);
    }
    assert_eq!(status(&mut send(&running, UPGRADE).await).await, 101);
    running.stop().await;
}

#[tokio::test]
async fn stopping_answers_what_is_asked_closes_sockets_and_lets_nobody_in() {
    let (begun, mut has_begun) = mpsc::channel(1);
    let (go, may_go) = watch::channel(false);
    let slow = Router::new().route(
        "/slow",
        post(move || {
            let (begun, mut may_go) = (begun.clone(), may_go.clone());
            async move {
                begun.send(()).await.unwrap();
                may_go.wait_for(|go| *go).await.unwrap();
                Err::<(), _>(ApiError::conflict("done", "it was finished"))
            }
        }),
    );
    let (running, folder) = start(sockets().merge(slow), |options| options.stop_time = LIMIT).await;
    let address = running.address;
    let mut socket = send(&running, UPGRADE).await;
    assert_eq!(status(&mut socket).await, 101);
    let mut asked = send(&running, "POST /slow HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n").await;
    has_begun.recv().await.unwrap();
    assert!(Address::find(folder.path()).unwrap().is_some());

    let stopping = tokio::spawn(running.stop());
    // New connections are refused while a request is still running.
    timeout(LIMIT, async { while TcpStream::connect(address).await.is_ok() {} }).await.unwrap();
    go.send(true).unwrap();
    let mut answer = String::new();
    timeout(LIMIT, asked.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("it was finished"), "{answer}");
    stopping.await.unwrap();
    timeout(LIMIT, socket.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    assert!(Address::find(folder.path()).unwrap().is_none());
}
