//! Sessions that are connected to a server.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_link::{LineReader, SOCKET, ServerMessage, SessionMessage, VERSION, write};
use serde_json::json;
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::daemon::{Place, check_denied, receive};

const RULES: &str = "hooks:\n  - rule: ask\n    on: tool:pre\n    when: tool_name.startsWith(\"mcp__\")\n    ask: Use it?\n    options: [Allow once, Deny]\n";

/// A server that allows each request, and can end all sessions.
struct Server {
    asked: Arc<AtomicUsize>,
    end: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl Server {
    fn start(place: &Place) -> Self {
        let folder = place.home().server_folder();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(folder.join(SOCKET)).unwrap();
        let (asked, (end, ended)) = (Arc::<AtomicUsize>::default(), watch::channel(false));
        let count = asked.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, count.clone(), ended.clone()));
            }
        });
        Self { asked, end, listening }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(stream: UnixStream, asked: Arc<AtomicUsize>, mut ended: watch::Receiver<bool>) {
    let (from, mut to) = stream.into_split();
    let mut lines = LineReader::new(BufReader::new(from));
    write(&mut to, &ServerMessage::Welcome { version: VERSION }).await.unwrap();
    loop {
        let message = tokio::select! {
            message = lines.next::<SessionMessage>() => message,
            Ok(()) = ended.changed() => {
                write(&mut to, &ServerMessage::End).await.unwrap();
                continue;
            }
        };
        let Ok(Some(message)) = message else { return };
        if let SessionMessage::ApprovalRequested { approval } = message {
            let reference = asked.fetch_add(1, Ordering::SeqCst) as u64;
            let answer = "Allow once".into();
            let digest = approval.digest;
            write(&mut to, &ServerMessage::Answer { reference, id: approval.id.clone(), digest, answer })
                .await
                .unwrap();
        }
    }
}

async fn served(rules: &str) -> (Place, Server) {
    let mut place = Place::new(rules);
    std::fs::write(place.folder.path().join("home/config.toml"), "approvals = \"server\"\n").unwrap();
    let server = Server::start(&place);
    place.start(Duration::from_secs(600)).await;
    (place, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_asked_once_about_a_tool_with_several_possible_names() {
    let (place, server) = served(RULES).await;
    for (number, name) in [(1, "my-files-delete-all"), (2, "my-files-delete-all"), (3, "my-list")] {
        let payload = json!({ "sessionId": "s", "cwd": place.repo(), "toolName": name, "toolArgs": {} });
        let stream = place.send("copilot", "preToolUse", 20_000, payload.to_string().as_bytes()).await;
        let output = receive(stream).await.unwrap();
        assert_eq!((output.code, server.asked.load(Ordering::SeqCst)), (0, number), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_ended_in_the_console_stays_ended_after_a_killed_daemon() {
    let (mut place, server) = served("hooks: []\n").await;
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
    server.end.send(true).unwrap();
    while place.list_in("session-1", place.repo()).await.code == 0 {}
    // The new daemon has no server to ask.
    drop(server);
    std::fs::remove_dir_all(place.home().server_folder()).unwrap();
    place.restart().await;
    for _ in 0..2 {
        check_denied(&place.list_in("session-1", place.repo()).await, "ended in the console");
        assert_eq!(place.call("SessionEnd", json!({ "reason": "other" })).await.code, 0);
    }
    assert_eq!(place.list_in("session-2", place.repo()).await.code, 0);
}
