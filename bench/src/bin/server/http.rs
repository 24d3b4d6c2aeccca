//! A client of the server and of the floor.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::Result;

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Where a server is, and how to get in.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    address: SocketAddr,
    token: String,
}

impl Reach {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, token: "none".to_owned() }
    }

    pub(crate) fn with_token(self, token: String) -> Self {
        Self { token, ..self }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<String> {
        self.request("GET", path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Result<String> {
        self.request("POST", path, body).await
    }

    /// A request on a connection of its own: the body of what is answered.
    async fn request(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let asking = async {
            let mut stream = TcpStream::connect(self.address).await?;
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                self.address,
                self.token,
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let answer = timeout(LIMIT, asking).await??;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
            _ => Err(format!("{method} {path}: {answer}").into()),
        }
    }

    pub(crate) async fn socket(&self, path: &str) -> Result<Socket> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token).parse()?);
        Ok(timeout(LIMIT, tokio_tungstenite::connect_async(request)).await??.0)
    }
}
