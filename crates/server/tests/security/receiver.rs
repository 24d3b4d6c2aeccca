//! An HTTP server that keeps what it receives: a push service or a webhook, for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver as Channel};

use amplifier_server::{Webhook, WebhookService};
use serde_json::Value;

use super::place::LIMIT;

/// The server.
pub(crate) struct Receiver {
    /// Its origin.
    pub(crate) url: String,
    status: Arc<AtomicU16>,
    received: Channel<Received>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Received {
    /// Method and path.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let status = Arc::new(AtomicU16::new(200));
        let (sender, received) = mpsc::channel();
        let answer = status.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(request) = Received::read(stream.unwrap(), answer.load(Ordering::SeqCst)) else { continue };
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Self { url, status, received }
    }

    /// Answers with this status from now on.
    pub(crate) fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Waits for the next request.
    pub(crate) fn next(&self) -> Received {
        self.received.recv_timeout(LIMIT).expect("a request arrives")
    }

    /// Returns `true` if no request has arrived that was not taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.received.try_recv().is_err()
    }

    /// A webhook that leads here.
    pub(crate) fn webhook(&self, service: WebhookService, path: &str) -> Webhook {
        let (url, name) = (format!("{}{path}", self.url), "grace".to_owned());
        Webhook { service, url, name, chat: None, headers: Default::default() }
    }
}

impl Received {
    fn read(mut stream: TcpStream, status: u16) -> Option<Self> {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let line = lines[0].rsplit_once(' ').unwrap().0.to_owned();
        let mut received = Self { line, headers, body: Vec::new() };
        received.body = vec![0; received.header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut received.body).unwrap();
        let more = if status / 100 == 3 { "Location: /elsewhere\r\n" } else { "" };
        write!(stream, "HTTP/1.1 {status} X\r\n{more}Content-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
        Some(received)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }
}
