//! A server on loopback that says what it is told to say.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod openai;

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// The received request.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// The response of the server.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Vec<u8>>,
    ending: Ending,
}

enum Ending {
    Complete,
    Cut,
    Silence,
}

impl Reply {
    /// A stream of events, each in a chunk of its own.
    pub(crate) fn events<T: Into<Vec<u8>>>(events: impl IntoIterator<Item = T>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces: events.into_iter().map(Into::into).collect(), ending: Ending::Complete }
    }

    /// A failure.
    pub(crate) fn failure(status: u16, body: impl ToString) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, pieces: vec![body.to_string().into_bytes()], ending: Ending::Complete }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Closes the connection before the body is complete.
    pub(crate) fn then_cut(mut self) -> Self {
        self.ending = Ending::Cut;
        self
    }

    /// Says nothing more, until the client hangs up.
    pub(crate) fn then_silence(mut self) -> Self {
        self.ending = Ending::Silence;
        self
    }

    /// Does not even begin to answer.
    pub(crate) fn silence() -> Self {
        Self { status: 0, ..Self::events([""; 0]) }.then_silence()
    }
}

/// A server that gives each connection the next reply.
pub(crate) struct Server {
    address: String,
    received: UnboundedReceiver<Received>,
    hung_up: UnboundedReceiver<()>,
}

impl Server {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (tell_received, received) = mpsc::unbounded_channel();
        let (tell_hung_up, hung_up) = mpsc::unbounded_channel();
        let replies: Vec<_> = replies.into_iter().collect();
        tokio::spawn(async move {
            for reply in replies {
                let (connection, _) = listener.accept().await.unwrap();
                serve(connection, reply, &tell_received, &tell_hung_up).await;
            }
        });
        Self { address, received, hung_up }
    }

    pub(crate) fn url(&self) -> String {
        self.address.clone()
    }

    /// The next request that came in.
    pub(crate) async fn received(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }

    /// Waits until the client hangs up on a silent reply.
    pub(crate) async fn hung_up(&mut self) {
        self.hung_up.recv().await.unwrap();
    }
}

/// An address where nobody answers.
pub(crate) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn serve(
    mut connection: TcpStream,
    reply: Reply,
    received: &UnboundedSender<Received>,
    hung_up: &UnboundedSender<()>,
) {
    let _ = received.send(read(&mut connection).await);
    if reply.status != 0 {
        let mut head =
            format!("HTTP/1.1 {} Status\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
    }
    for piece in &reply.pieces {
        let size = format!("{:x}\r\n", piece.len());
        // One write: the client may hang up once it has the piece.
        connection.write_all(&[size.as_bytes(), piece, b"\r\n"].concat()).await.unwrap();
    }
    match reply.ending {
        // The client may have hung up when it had read what it needed.
        Ending::Complete => drop(connection.write_all(b"0\r\n\r\n").await),
        Ending::Cut => {}
        Ending::Silence => {
            let _ = connection.read(&mut [0; 1]).await;
            let _ = hung_up.send(());
        }
    }
}

async fn read(connection: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        assert_ne!(connection.read_buf(&mut bytes).await.unwrap(), 0, "the request ended early");
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let target = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        assert_ne!(connection.read_buf(&mut body).await.unwrap(), 0, "the body ended early");
    }
    Received { target, headers, body: serde_json::from_slice(&body).unwrap() }
}
