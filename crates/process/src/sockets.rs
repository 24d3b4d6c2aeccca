//! Sockets between processes of one user on one machine.
//!
//! On Unix they are Unix sockets; the system tells whose process is at the other end. Windows has named pipes, whose names everybody can list: the file at the path of
//! the socket has the name in it, which is a new random one for each listener, and it is gone when the listener's process is. The pipe can be written to by this user
//! and by administrators; whose process is at the other end is not looked up there.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::system::sockets as system;

/// Lets processes of the same user connect.
#[derive(Debug)]
pub struct Listener(system::Listener);

impl Listener {
    /// Listens at that path, at which there must be nothing. Needs a tokio runtime.
    ///
    /// # Errors
    /// If it cannot, or there is something.
    pub fn bind(path: &Path) -> io::Result<Self> {
        system::Listener::bind(path).map(Self)
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// If it cannot be taken; others may be.
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub async fn accept(&mut self) -> io::Result<Connection> {
        self.0.accept().await.map(Connection)
    }
}

/// A connection that somebody has opened.
#[derive(Debug)]
pub struct Connection(system::AcceptedStream);

impl Connection {
    /// Both directions, and the id of the process at the other end where the system tells.
    ///
    /// # Errors
    /// If that process is another user's.
    pub fn into_parts(
        self,
    ) -> io::Result<(impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static, Option<i32>)>
    {
        let process = system::check_peer(&self.0)?;
        let (from, to) = system::split(self.0);
        Ok((from, to, process))
    }
}

/// Connects to the listener at that path, and gives both directions.
///
/// # Errors
/// If nobody listens there.
pub async fn connect(
    path: &Path,
) -> io::Result<(impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static)> {
    system::connect(path).await
}

/// `true` if somebody listens at that path.
pub fn is_open(path: &Path) -> bool {
    system::is_open(path)
}
