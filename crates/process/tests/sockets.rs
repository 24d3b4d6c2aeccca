//! Sockets between processes of one user.

use std::io::ErrorKind;

use amplifier_process::files::exposed_mode;
use amplifier_process::sockets::{SocketListener, connect, is_open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn both_ends_hear_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    assert!(!is_open(&path));
    let mut listener = SocketListener::bind(&path).unwrap();
    assert_eq!(exposed_mode(&std::fs::metadata(&path).unwrap()), None);
    let (accepted, connected) = tokio::join!(listener.accept(), connect(&path));
    let (mut from_client, mut to_client, process) = accepted.unwrap().into_parts().unwrap();
    let (mut from_server, mut to_server) = connected.unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(process, Some(std::process::id().cast_signed()));
    }
    let mut heard = [0; 4];
    to_server.write_all(b"ping").await.unwrap();
    from_client.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"ping");
    to_client.write_all(b"pong").await.unwrap();
    from_server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"pong");
}

#[tokio::test]
async fn a_path_that_is_taken_is_not_listened_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = SocketListener::bind(&path).unwrap();
    assert!(is_open(&path));
    assert!(SocketListener::bind(&path).is_err());
}

#[tokio::test]
async fn nobody_connects_where_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let error = connect(&folder.path().join("socket")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
