//! The byte stream of one connection, which ends at shutdown or when the client stalls.

use std::io;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::access::guard::ClientConnection;
use futures::future::BoxFuture;

/// An open connection. It keeps its connection slot until it is closed, also after an upgrade to a WebSocket.
pub(super) struct ConnectionStream<T> {
    stream: T,
    connection: ClientConnection,
    /// Resolves when the server has stopped.
    closed: BoxFuture<'static, ()>,
    is_closed: bool,
    /// Runs while a write makes no progress.
    stalled: Option<Pin<Box<Sleep>>>,
    stall_time: Duration,
}

impl<T> ConnectionStream<T> {
    pub(super) fn new(
        stream: T,
        connection: ClientConnection,
        closed: impl Future<Output = ()> + Send + 'static,
        stall_time: Duration,
    ) -> Self {
        let closed = Box::pin(closed);
        Self { stream, connection, closed, is_closed: false, stalled: None, stall_time }
    }

    /// Fails a write without progress after the time limit: a browser that is gone must not hold its slot.
    fn check_stalled<V>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<V>>) -> Poll<io::Result<V>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let time = self.stall_time;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(time))).as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T> Drop for ConnectionStream<T> {
    fn drop(&mut self) {
        self.connection.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ConnectionStream<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_closed || this.closed.as_mut().poll(context).is_ready() {
            // End of stream, as if the client had left.
            this.is_closed = true;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ConnectionStream<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check_stalled(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.check_stalled(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.check_stalled(context, shut)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.check_stalled(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::sync::oneshot;

    use super::*;
    use crate::server::shares::tests::guest;
    use crate::server::slots::ConnectionSlots;

    fn open(
        stream: tokio::io::DuplexStream,
        closed: oneshot::Receiver<()>,
    ) -> (ConnectionStream<tokio::io::DuplexStream>, Arc<ConnectionSlots>) {
        let slots = ConnectionSlots::new(3, 1);
        let (slot, _) = slots.admit();
        assert_eq!(slot.assign(guest("ann")), Ok(()));
        let (_, stopping) = super::super::ShutdownSignal::never();
        let socket = Arc::new(Mutex::new(None));
        let connection = ClientConnection { peer: [127, 0, 0, 1].into(), slot: Arc::new(slot), socket, stopping };
        let closed = async move { drop(closed.await) };
        (ConnectionStream::new(stream, connection, closed, Duration::from_secs(30)), slots)
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_left_after_some_time() {
        let (server, mut client) = duplex(4);
        let (_stop, stopped) = oneshot::channel();
        let (mut open, slots) = open(server, stopped);
        open.write_all(b"1234").await.unwrap();
        let begun = tokio::time::Instant::now();
        let writing = async {
            // Reading in between restarts the time limit.
            tokio::time::sleep(Duration::from_secs(20)).await;
            client.read_exact(&mut [0; 4]).await.unwrap();
        };
        let (written, ()) = tokio::join!(open.write_all(b"56789"), writing);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 50);
        let (next, _) = slots.admit();
        assert!(next.assign(guest("bob")).is_err());
        drop(open);
        assert_eq!(next.assign(guest("bob")), Ok(()));
    }

    #[tokio::test]
    async fn a_server_that_stops_ends_what_is_read() {
        let (server, _client) = duplex(4);
        let (stop, stopped) = oneshot::channel();
        let (mut open, _places) = open(server, stopped);
        stop.send(()).unwrap();
        assert_eq!(open.read(&mut [0; 4]).await.unwrap(), 0);
        assert_eq!(open.read(&mut [0; 4]).await.unwrap(), 0);
    }
}
