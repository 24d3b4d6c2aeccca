//! Unix sockets.

use std::fs::{Permissions, set_permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::geteuid;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

pub(crate) type AcceptedStream = UnixStream;

#[derive(Debug)]
pub(crate) struct SystemListener(UnixListener);

impl SystemListener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self(listener))
    }

    pub(crate) async fn accept(&mut self) -> io::Result<AcceptedStream> {
        Ok(self.0.accept().await?.0)
    }
}

pub(crate) fn check_peer(stream: &AcceptedStream) -> io::Result<Option<i32>> {
    let peer = stream.peer_cred()?;
    if peer.uid() != geteuid().as_raw() {
        let text = format!("the process at the other end belongs to user {}", peer.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(peer.pid())
}

pub(crate) fn split(stream: AcceptedStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    stream.into_split()
}

pub(crate) async fn connect(path: &Path) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    UnixStream::connect(path).await.map(split)
}

pub(crate) fn is_open(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}
