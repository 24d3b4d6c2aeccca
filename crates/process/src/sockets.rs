//! Sockets between processes of one user on one machine.
//!
//! On Unix they are Unix sockets, and the system identifies the peer. Windows has named pipes, whose names are public: the file at the path of the
//! socket contains the random name of the pipe, and disappears with the listening process. Only this user and administrators can write to the pipe;
//! the peer is not identified there.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::system::sockets as system;

/// A listener for processes of the same user.
#[derive(Debug)]
pub struct SocketListener(system::SystemListener);

impl SocketListener {
    /// Listens at a path, which must not exist. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the path exists, or the system call fails.
    pub fn bind(path: &Path) -> io::Result<Self> {
        system::SystemListener::bind(path).map(Self)
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// If this connection fails; the listener stays usable.
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub async fn accept(&mut self) -> io::Result<SocketConnection> {
        self.0.accept().await.map(SocketConnection)
    }
}

/// An accepted connection.
#[derive(Debug)]
pub struct SocketConnection(system::AcceptedStream);

impl SocketConnection {
    /// Returns both directions, and the process id of the peer where known.
    ///
    /// # Errors
    /// If the peer belongs to another user.
    pub fn into_parts(
        self,
    ) -> io::Result<(impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static, Option<i32>)>
    {
        let process = system::check_peer(&self.0)?;
        let (from, to) = system::split(self.0);
        Ok((from, to, process))
    }
}

/// Connects to the listener at a path, and returns both directions.
///
/// # Errors
/// If no process listens there.
pub async fn connect(
    path: &Path,
) -> io::Result<(impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static)> {
    system::connect(path).await
}

/// Returns `true` if a process listens at the path.
pub fn is_open(path: &Path) -> bool {
    system::is_open(path)
}
