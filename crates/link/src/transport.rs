//! Transports of the link: a socket, or a pipe within one process. Messages are lines of JSON.

use std::io;
use std::path::Path;
use std::sync::Arc;

use amplifier_process::sockets;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// The name of the socket in the folder of the server.
pub const SOCKET: &str = "socket";
/// The longest line, in bytes.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// Returns `true` if a server listens in that folder.
pub fn is_open(folder: &Path) -> bool {
    sockets::is_open(&folder.join(SOCKET))
}

/// Opens pipes to a server that runs in the same process.
#[derive(Clone)]
pub struct PipeConnector(Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl PipeConnector {
    /// A connector that opens each pipe with this function.
    pub fn new(open: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// Opens a pipe, and returns the client's end.
    pub fn open(&self) -> DuplexStream {
        (self.0)()
    }
}

impl std::fmt::Debug for PipeConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PipeConnector")
    }
}

/// Writes a line.
///
/// # Errors
/// If the write fails.
pub async fn write(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// A reader of lines.
pub struct LineReader<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    /// A reader for a stream.
    pub fn new(from: R) -> Self {
        Self { from, line: Vec::new() }
    }

    /// Reads the next line; none at the end. Safe to cancel: partial lines are kept.
    ///
    /// # Errors
    /// If the stream fails, or the line is too long or not a message.
    pub async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let left = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len()) as u64;
        (&mut self.from).take(left).read_until(b'\n', &mut self.line).await?;
        let line = std::mem::take(&mut self.line);
        match line.strip_suffix(b"\n") {
            Some(line) => Ok(Some(serde_json::from_slice(line)?)),
            None if line.is_empty() => Ok(None),
            None if line.len() > MAX_LINE_BYTES => Err(io::Error::other("a line is too long")),
            // The peer closed the connection within a line.
            None => Ok(None),
        }
    }
}
