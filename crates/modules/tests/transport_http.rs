//! Hooks that are servers: good ones, and those that mean harm.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::transport::{answers, ask, call, eventually, failure, large, patiently};
use amplifier_core::{EventData, Hook, HookError, HookResult, data};
use amplifier_modules::transport::{HttpHook, HttpOptions};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request.
#[derive(Clone)]
enum Reply {
    /// Answers with these bytes, and keeps the connection.
    Bytes(Vec<u8>),
    /// Answers with these bytes, and closes the connection.
    Cut(Vec<u8>),
    /// Answers with these bytes, and then says nothing for ever.
    Stall(Vec<u8>),
    /// Answers with these bytes, again and again.
    Flood(Vec<u8>, Vec<u8>),
    /// Closes the connection before anything was sent.
    Close,
    /// Resets the connection before it has read the request.
    Reset,
    /// Answers with the number in the data as the reason.
    Number,
}

/// A request that came: over which connection, its head and its body.
#[derive(Clone)]
struct Came {
    connection: usize,
    head: String,
    body: Value,
}

struct Server {
    url: String,
    came: Arc<Mutex<Vec<Came>>>,
    connections: Arc<Mutex<usize>>,
}

impl Server {
    /// Answers the first request with the first reply and so on; the last one is repeated.
    async fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let server = Self { url, came: Arc::default(), connections: Arc::default() };
        let replies: Arc<Mutex<Vec<Reply>>> = Arc::new(Mutex::new(replies.into_iter().collect()));
        let (came, connections) = (Arc::clone(&server.came), Arc::clone(&server.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = {
                    let mut connections = connections.lock().unwrap();
                    *connections += 1;
                    *connections
                };
                tokio::spawn(serve(connection, stream, Arc::clone(&replies), Arc::clone(&came)));
            }
        });
        server
    }

    fn hook(&self) -> HttpHook {
        HttpHook::new(HttpOptions::new("test", &self.url)).unwrap()
    }

    fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }
}

async fn serve(connection: usize, stream: TcpStream, replies: Arc<Mutex<Vec<Reply>>>, came: Arc<Mutex<Vec<Came>>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let closes = matches!(replies.lock().unwrap()[0], Reply::Close);
        if !closes && !matches!(stream.get_ref().peek(&mut [0]).await, Ok(1..)) {
            return;
        }
        let reply = {
            let mut replies = replies.lock().unwrap();
            if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() }
        };
        if matches!(reply, Reply::Reset | Reply::Close) {
            // What was sent and is not read makes the system reset the connection.
            return;
        }
        let Some(request) = read_request(connection, &mut stream).await else { return };
        let number = request.body["data"]["number"].to_string();
        came.lock().unwrap().push(request);
        let (bytes, then) = match reply {
            Reply::Number => (response("200 OK", &json!({ "action": "deny", "reason": number }).to_string()), None),
            Reply::Bytes(bytes) => (bytes, None),
            Reply::Cut(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Reply::Stall(bytes) => (bytes, Some(Vec::new())),
            Reply::Flood(bytes, again) => (bytes, Some(again)),
            Reply::Reset | Reply::Close => return,
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        match then {
            None => {}
            Some(again) if again.is_empty() => {
                let _ = stream.read(&mut [0]).await;
                return;
            }
            Some(again) => while stream.write_all(&again).await.is_ok() {},
        }
    }
}

async fn read_request(connection: usize, stream: &mut BufReader<TcpStream>) -> Option<Came> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Came { connection, head, body: serde_json::from_slice(&body).unwrap() })
}

fn response(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn ok(body: &str) -> Reply {
    Reply::Bytes(response("200 OK", body))
}

#[tokio::test]
async fn every_action_can_be_answered_over_one_connection() {
    let answers = answers();
    let server = Server::new(answers.iter().map(|(answer, _)| ok(&answer.to_string()))).await;
    let hook = server.hook();
    for (answer, expected) in answers {
        assert_eq!(ask(&hook).await, Ok(expected), "{answer}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn no_content_and_an_empty_body_go_on() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_vec();
    let none = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let server = Server::new([Reply::Bytes(none), ok(""), ok(" \n"), Reply::Bytes(chunked)]).await;
    let hook = server.hook();
    for _ in 0..4 {
        assert_eq!(ask(&hook).await, Ok(HookResult::proceed()));
    }
}

#[tokio::test]
async fn the_request_is_posted_as_json_with_the_headers() {
    let server = Server::new([ok("")]).await;
    let options = HttpOptions::new("test", &server.url).header("Authorization", "Bearer ${CARGO_PKG_NAME}");
    let hook = HttpHook::new(options).unwrap();
    assert_eq!(ask(&hook).await, Ok(HookResult::proceed()));
    let came = server.came().remove(0);
    assert_eq!(came.connection, 1);
    assert_eq!(came.body, json!({ "protocol": 1, "hook": "test", "event": "tool:pre", "data": Value::from(call()) }));
    for line in ["POST /hook HTTP/1.1", "content-type: application/json", "authorization: Bearer amplifier-modules"] {
        assert!(came.head.lines().any(|found| found == line), "{line} is not in {}", came.head);
    }
    let shown = format!("{hook:?}");
    assert!(shown.contains("Authorization") && !shown.contains("Bearer"), "{shown}");
}

#[test]
fn a_hook_that_could_never_ask_cannot_be_made() {
    let fails = |options: HttpOptions| HttpHook::new(options).map(drop).unwrap_err().to_string();
    let local = || HttpOptions::new("test", "http://localhost/");
    for (options, expected) in [
        (
            local().header("x-key", "a${NO_SUCH_VARIABLE}b"),
            "`x-key` of hook `test` needs the environment variable `NO_SUCH_VARIABLE`, which is not set or not text",
        ),
        (
            local().header("x-key", "${}"),
            "`x-key` of hook `test` has a `${` without a name or without the closing `}`; write `${NAME}`",
        ),
        (
            local().header("x-key", "secret\nvalue"),
            "header `x-key` of hook `test` cannot be sent: invalid characters in the name or the value",
        ),
        (
            HttpOptions::new("test", "ftp://localhost/"),
            "invalid address of hook `test`: `ftp` is neither `http` nor `https`; expected `https://HOST/PATH`",
        ),
        (
            HttpOptions::new("test", "localhost"),
            "invalid address of hook `test`: relative URL without a base; expected `https://HOST/PATH`",
        ),
    ] {
        assert_eq!(fails(options), expected);
    }
}

#[tokio::test]
async fn hostile_servers_cannot_hurt_the_agent() {
    let huge = b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = [b"4000\r\n".to_vec(), vec![b' '; 0x4000], b"\r\n".to_vec()].concat();
    let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_vec();
    let control = response("400 Bad Request", "\u{1b}[31mno\u{7}");
    let table = [
        (
            Reply::Bytes(response("500 Internal Server Error", "out of order\n")),
            "the server answered with status 500: out of order",
        ),
        (Reply::Bytes(response("404 Not Found", "")), "the server answered with status 404"),
        (Reply::Bytes(control), "the server answered with status 400: [31mno"),
        (Reply::Bytes(redirect), "the server answered with status 307; redirections are not followed"),
        (Reply::Flood(huge, vec![b' '; 65536]), "the server answered with more than 1048576 bytes"),
        (Reply::Flood(chunked, chunk), "the server answered with more than 1048576 bytes"),
        (
            Reply::Flood(b"HTTP/1.1 503 No\r\n\r\n".to_vec(), vec![b'x'; 65536]),
            "the server answered with status 503: xxx",
        ),
        (Reply::Flood(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 65536]), "error sending request"),
        (Reply::Cut(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec()), "error decoding response body"),
        (Reply::Cut(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), "the connection ended before an answer"),
        (Reply::Cut(b"HTTP/1.0 200 OK\r\n\r\n \n".to_vec()), "the connection ended before an answer"),
        (Reply::Cut(b"HTTP/1.1 200 OK\r\n\r\n{".to_vec()), "the answer is not JSON"),
        (Reply::Cut(b"HTTP/1.1 200".to_vec()), "error sending request"),
        (Reply::Cut(Vec::new()), "error sending request"),
        (Reply::Cut(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), "error sending request"),
        (ok("<html>"), "the answer is not JSON: expected value at line 1 column 1"),
        (ok(r#"{"action":"deny","action":"continue"}"#), "the answer has a duplicate key"),
        (ok("[]"), "the answer cannot be read: expected an object, found a list"),
        (Reply::Reset, "error sending request"),
    ];
    for (reply, expected) in table {
        let server = Server::new([reply]).await;
        let hook = server.hook();
        for _ in 0..5 {
            let text = failure(ask(&hook).await);
            assert!(text.starts_with(expected), "{expected}: {text}");
            assert!(text.len() < 1500 && !text.contains("127.0.0.1"), "{text}");
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
        }
    }
}

#[tokio::test]
async fn the_time_limit_covers_everything() {
    let slow = [
        Reply::Stall(Vec::new()),
        Reply::Stall(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Reply::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{".to_vec()),
        Reply::Stall(b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\n{".to_vec()),
        Reply::Flood(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
    ];
    for reply in slow {
        let (came, next) = patiently(async |limit| {
            let server = Server::new([reply.clone(), ok("{}")]).await;
            let hook = HttpHook::new(HttpOptions { timeout: limit, ..HttpOptions::new("test", &server.url) }).unwrap();
            let begun = Instant::now();
            assert_eq!(ask(&hook).await, Err(HookError::TimedOut(limit)));
            assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
            let came = Some(server.came().len()).filter(|came| *came > 0)?;
            Some((came, ask(&hook).await.ok()?))
        })
        .await;
        assert_eq!(came, 1, "a slow request is not repeated");
        assert_eq!(next, HookResult::proceed(), "the next one is not affected");
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_before_a_response_is_tried_once_more() {
    for cut in [Reply::Reset, Reply::Close] {
        let server = Server::new([cut.clone(), ok(r#"{"reason": "again"}"#)]).await;
        // More than the system takes in by itself, so that it is cut in the middle.
        assert_eq!(server.hook().handle("tool:pre", &large()).await, Ok(HookResult::proceed().because("again")));
        assert_eq!(server.connections(), 2);

        let server = Server::new([cut]).await;
        assert!(failure(ask(&server.hook()).await).starts_with("error sending request"));
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn a_response_that_failed_is_not_asked_for_again() {
    for reply in [
        Reply::Bytes(response("503 Service Unavailable", "")),
        Reply::Cut(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec()),
    ] {
        let server = Server::new([reply, ok("")]).await;
        failure(ask(&server.hook()).await);
        assert_eq!(server.came().len(), 1);
    }
}

#[tokio::test]
async fn nobody_there_is_a_failure_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let text = failure(ask(&HttpHook::new(HttpOptions::new("test", url)).unwrap()).await);
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let closing = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    let server = Server::new([Reply::Cut(closing.clone()), Reply::Cut(closing), ok("{}")]).await;
    let hook = server.hook();
    for connections in 1..=3 {
        assert_eq!(ask(&hook).await, Ok(HookResult::proceed()));
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn dropping_the_call_gives_up_the_connection() {
    let server = Server::new([Reply::Stall(Vec::new()), ok("{}")]).await;
    let (hook, data) = (server.hook(), call());
    {
        let mut running = Box::pin(hook.handle("tool:pre", &data));
        tokio::select! {
            answer = &mut running => panic!("{answer:?}"),
            () = eventually("the request", || (server.came().len() == 1).then_some(())) => {}
        }
    }
    assert_eq!(ask(&hook).await, Ok(HookResult::proceed()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_calls_at_a_time_get_each_its_own_answer() {
    let server = Server::new([Reply::Number]).await;
    let hook = server.hook();
    let numbers: Vec<EventData> = (0..100).map(|number| data! { "number": number }).collect();
    let answers = join_all(numbers.iter().map(|data| hook.handle("tool:pre", data))).await;
    let expected: Vec<_> = (0..100).map(|number| Ok(HookResult::deny(number.to_string()))).collect();
    assert_eq!(answers, expected);
}
