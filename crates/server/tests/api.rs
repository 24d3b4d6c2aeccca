//! The record over HTTP and WebSocket, as clients see it.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use amplifier_audit::Log;
use amplifier_core::{ActionKind, AuditEntry, AuditRecord, HookReportEntry, Level, MessageEntry, TOOL_PRE};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use amplifier_link::{ApprovalId, DryRun, MachineReply, MachineRequest, OpenApproval, VERSION, write};
use amplifier_server::access::{Access, AccessOptions, Role, TokenFiles};
use amplifier_server::feed::Feed;
use amplifier_server::{App, Hub, RunningServer, Server, ServerOptions};
use jiff::Timestamp;

use crate::common::{LIMIT, asked, asking, call, machine, until};

/// A machine without sessions and hooks.
fn reply(request: MachineRequest) -> MachineReply {
    let error = match request {
        MachineRequest::TestBundle { bundle: Some(text) } => {
            return MachineReply::Tested { results: json!({ "tested": text }) };
        }
        MachineRequest::TestBundle { bundle: None } => "there is no bundle".to_owned(),
        MachineRequest::DryRun(DryRun { event, workspace, .. }) => format!("nobody hears `{event}` in `{workspace:?}`"),
        _ => "there is nothing to start here".to_owned(),
    };
    MachineReply::Invalid { error }
}

/// A server over a real log.
struct Served {
    app: App,
    log: Log,
    address: SocketAddr,
    admin: String,
    viewer: String,
    tokens: TokenFiles,
    running: RunningServer,
    _folder: TempDir,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Served {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::at(folder.path().join("audit"), folder.path().join("key")).open().unwrap();
        let feed = Feed::open(&folder.path().join("audit"), None).unwrap();
        let server = folder.path().join("server");
        let access = Access::open(&server, AccessOptions::default()).unwrap();
        let app = App { hub: Hub::new(), feed, access, log: log.clone() };
        machine(&app.hub, reply).await;
        let tokens = TokenFiles::at(&server).unwrap();
        let (admin, viewer) = (tokens.admin().unwrap(), tokens.add("watcher", Role::Viewer).unwrap());
        let mut options = ServerOptions::new("127.0.0.1:0".parse().unwrap());
        change(&mut options);
        let running = Server::start(app.clone(), options).await.unwrap();
        Self { app, log, address: running.address, admin, viewer, tokens, running, _folder: folder }
    }

    fn take(&self, session: &str, text: &str) {
        let (source, text) = ("hook:speaker".to_owned(), text.to_owned());
        let entry = AuditEntry::Message(MessageEntry { shown: true, source, level: Level::Info, text });
        let (at, session) = (SystemTime::now(), Some(session.to_owned()));
        self.log.take(&AuditRecord { at, session, turn: 1, event: TOOL_PRE.name(), entry }).unwrap();
    }

    async fn read_to(&self, size: u64) {
        let mut changed = self.app.feed.changed();
        timeout(LIMIT, changed.wait_for(|cursor| *cursor >= size)).await.unwrap().unwrap();
    }

    /// Flushes the records, and waits until they are read.
    async fn flushed(&self) -> u64 {
        self.log.checkpoint().unwrap();
        let size = self.log.status().size;
        self.read_to(size).await;
        size
    }

    async fn request(&self, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.admin,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.request("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until the stream has this many clients.
    async fn watched_by(&self, clients: usize) {
        let line = format!("amplifier_stream_clients {clients}");
        let looking =
            async { while !self.request("GET", "/metrics", None).await.1.lines().any(|found| found == line) {} };
        timeout(LIMIT, looking).await.unwrap();
    }

    async fn watch(&self, query: &str) -> Socket {
        self.watch_as(query, &self.admin).await
    }

    async fn watch_as(&self, query: &str, who: &str) -> Socket {
        let mut request = format!("ws://{}/api/stream{query}", self.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {who}").parse().unwrap());
        tokio_tungstenite::connect_async(request).await.unwrap().0
    }
}

/// Returns the next message; `None` if the server has closed the socket.
async fn next(socket: &mut Socket) -> Option<Value> {
    loop {
        match timeout(LIMIT, socket.next()).await.unwrap()? {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Returns the next message of this type.
async fn next_of(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let message = next(socket).await.unwrap();
        if message["type"] == kind {
            return message;
        }
    }
}

/// Returns the numbers of this many records, and the last cursor.
async fn seqs(socket: &mut Socket, count: usize) -> (Vec<u64>, u64) {
    let (mut seqs, mut cursor) = (Vec::new(), 0);
    while seqs.len() < count {
        let message = next_of(socket, "records").await;
        seqs.extend(message["records"].as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()));
        cursor = message["cursor"].as_u64().unwrap();
    }
    (seqs, cursor)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_back_with_its_cursor_misses_nothing() {
    let served = Served::new().await;
    (0..50).for_each(|n| served.take("s-1", &n.to_string()));
    let size = served.flushed().await;
    let mut socket = served.watch("?after=0").await;
    let hello = next(&mut socket).await.unwrap();
    assert_eq!((&hello["type"], &hello["cursor"], &hello["me"]["name"]), (&json!("hello"), &json!(0), &json!("owner")));
    assert_eq!(hello["sessions"][0]["id"], "s-1");
    let (mut seen, cursor) = seqs(&mut socket, size as usize).await;
    drop(socket);
    (0..50).for_each(|n| served.take("s-1", &n.to_string()));
    let size = served.flushed().await;
    let mut socket = served.watch(&format!("?after={cursor}")).await;
    seen.extend(seqs(&mut socket, size as usize - seen.len()).await.0);
    // And live.
    (0..50).for_each(|n| served.take("s-1", &n.to_string()));
    let size = served.flushed().await;
    seen.extend(seqs(&mut socket, size as usize - seen.len()).await.0);
    assert_eq!(seen, (0..size).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_twice_when_some_of_the_log_is_cut_off_or_a_cursor_is_beyond_its_end() {
    let served = Served::new().await;
    (0..50).for_each(|n| served.take("s-1", &n.to_string()));
    let size = served.flushed().await;
    let mut beyond = served.watch("?after=1000000000000").await;
    let mut socket = served.watch("").await;
    for socket in [&mut beyond, &mut socket] {
        assert_eq!(next_of(socket, "hello").await["cursor"], size);
    }
    let segment = served._folder.path().join("audit/seg-000001.jsonl");
    let text = std::fs::read(&segment).unwrap();
    let last = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let file = std::fs::OpenOptions::new().append(true).open(&segment).unwrap();
    file.set_len(last as u64).unwrap();
    for socket in [&mut beyond, &mut socket] {
        let told = loop {
            let message = next(socket).await.unwrap();
            if ["hello", "records"].contains(&message["type"].as_str().unwrap()) {
                break message;
            }
        };
        assert_eq!((&told["type"], &told["cursor"]), (&json!("hello"), &json!(size - 1)));
    }
    // The stream continues from there.
    (&file).write_all(&text[last..]).unwrap();
    for socket in [&mut beyond, &mut socket] {
        assert_eq!(seqs(socket, 1).await, (vec![size - 1], size));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_nobody_up_and_misses_nothing() {
    let served = Served::new().await;
    let mut slow = served.watch("?after=0").await;
    let mut quick = served.watch("?after=0").await;
    // More data than socket buffers hold.
    let text = "x".repeat(10_000);
    for _ in 0..20 {
        (0..50).for_each(|_| served.take("s-1", &text));
        served.flushed().await;
    }
    let size = served.app.feed.cursor();
    let (seen, _) = seqs(&mut quick, size as usize).await;
    assert_eq!(seen, (0..size).collect::<Vec<_>>());
    let (seen, _) = seqs(&mut slow, size as usize).await;
    assert_eq!(seen, (0..size).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_closed() {
    let served = Served::with(|options| options.stall_time = Duration::from_millis(200)).await;
    let text = "x".repeat(10_000);
    (0..3000).for_each(|_| served.take("s-1", &text));
    served.flushed().await;
    let mut socket = served.watch("?after=0").await;
    // The client counts as watching while it reads.
    next_of(&mut socket, "hello").await;
    served.watched_by(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_can_be_filtered_and_the_filter_changed() {
    let served = Served::new().await;
    (0..10).for_each(|n| served.take(if n % 2 == 0 { "even" } else { "odd" }, &n.to_string()));
    served.flushed().await;
    let mut socket = served.watch("?after=0&session=even&kind=message").await;
    let texts = async |socket: &mut Socket| {
        let message = next_of(socket, "records").await;
        let events = message["records"].as_array().unwrap().clone();
        events.iter().map(|record| record["body"]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&mut socket).await, ["0", "2", "4", "6", "8"]);
    let watch = json!({ "type": "watch", "session": "odd", "kind": "message", "after": 0 });
    socket.send(Message::Text(watch.to_string().into())).await.unwrap();
    assert_eq!(texts(&mut socket).await, ["1", "3", "5", "7", "9"]);
    socket.send(Message::Text("{\"type\":\"dance\"}".into())).await.unwrap();
    while next(&mut socket).await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_told_and_answered_on_the_stream() {
    let served = Served::new().await;
    let (mut one, mut two) = (served.watch("").await, served.watch_as("", &served.viewer).await);
    next_of(&mut one, "hello").await;
    next_of(&mut two, "hello").await;
    let (session, _link) = asking(&served.app.hub, None, "s-1");
    let operation = call(&session, LIMIT);
    let asked = next_of(&mut one, "approval_requested").await;
    assert_eq!(asked["approval"]["prompt"], "Run it *?");
    next_of(&mut two, "approval_requested").await;
    let right = asked["approval"]["nonce"].as_str().unwrap().to_owned();
    let answer = |nonce: &str| {
        let answer = json!({ "type": "answer", "id": "s-1.run.1", "option": "Allow once", "nonce": nonce });
        Message::Text(answer.to_string().into())
    };
    two.send(answer(&right)).await.unwrap();
    let refused = next_of(&mut two, "answered").await;
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("role")));
    one.send(answer("wrong")).await.unwrap();
    let refused = next_of(&mut one, "answered").await;
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("nonce")));
    one.send(answer(&right)).await.unwrap();
    let closed = next_of(&mut two, "approval_closed").await;
    assert_eq!(
        (&closed["id"], &closed["decided"]["granted"], &closed["decided"]["by"]["name"]),
        (&json!("s-1.run.1"), &json!(true), &json!("owner"))
    );
    assert_eq!(next_of(&mut one, "answered").await["ok"], true);
    assert!(operation.await.unwrap().is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_for_a_denial_reaches_the_model() {
    let served = Served::new().await;
    let mut stream = served.watch("").await;
    next_of(&mut stream, "hello").await;
    let (session, _link) = asking(&served.app.hub, None, "s-1");
    for (number, option, verdict) in
        [(1, "Deny", "Denied by hook guard: User denied: Run it *?\nReason: Use make."), (2, "Allow once", "")]
    {
        let operation = call(&session, LIMIT);
        let asked = next_of(&mut stream, "approval_requested").await;
        let answer = json!({ "option": option, "nonce": asked["approval"]["nonce"], "reason": " Use \u{1b}make. " });
        let path = format!("/api/approvals/s-1.run.{number}/answer");
        assert_eq!(served.request("POST", &path, Some(answer)).await.0, 200);
        let answered = operation.await.unwrap();
        assert_eq!(answered.is_proceed(), verdict.is_empty());
        assert!(verdict.is_empty() || answered.to_string() == verdict, "{answered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_waited_for_and_paged() {
    let served = Served::new().await;
    let size = served.flushed().await;
    let path = format!("/api/audit/records?after={size}&session=s-7&wait=30");
    let (found, ()) = tokio::join!(served.get(&path), async {
        served.take("s-1", "another session");
        served.flushed().await;
        served.take("s-7", "this one");
        served.log.checkpoint().unwrap();
    });
    assert_eq!(found["records"][0]["body"]["text"], "this one");
    assert!(found["cursor"].as_u64() > found["records"][0]["seq"].as_u64());
    served.flushed().await;
    let none = served.get("/api/audit/records?after=1000&wait=0.05").await;
    assert_eq!((&none["records"], none["cursor"].as_u64().unwrap() > 0), (&json!([]), true));
    let last = served.get("/api/audit/records?before=1000000&kind=message&limit=1").await;
    assert_eq!(
        (&last["records"][0]["body"]["text"], last["records"].as_array().unwrap().len()),
        (&json!("this one"), 1)
    );
    let earlier = served.get(&format!("/api/audit/records?before={}&kind=message&limit=1", last["cursor"])).await;
    assert_eq!(earlier["records"][0]["body"]["text"], "another session");
    for wrong in ["wait=31", "wait=-1", "kind=dance", "before=1&after=1", "event=tool", "event=tool:%7Bpre,post%7D"] {
        assert_eq!(served.request("GET", &format!("/api/audit/records?{wrong}"), None).await.0, 422, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_the_record_is_offered() {
    let served = Served::new().await;
    let event = AuditRecord {
        at: SystemTime::now(),
        session: Some("s-1".to_owned()),
        turn: 1,
        event: TOOL_PRE.name(),
        entry: AuditEntry::HookReport(HookReportEntry {
            hook: "guard \"x\"".to_owned(),
            answer: ActionKind::Deny,
            took: Duration::from_micros(3),
            reason: None,
            error: None,
            suppressed_output: false,
        }),
    };
    served.log.take(&event).unwrap();
    let size = served.flushed().await;
    let hooks = served.get("/api/hooks?session=s-1").await;
    assert_eq!((&hooks["hooks"][0]["denials"], &hooks["hooks"][0]["max_ns"]), (&json!(1), &json!(3000)));
    let (status, body) = served.request("POST", "/api/audit/verify", Some(json!({}))).await;
    let audit: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &audit["sound"], audit["verified_to"].as_u64() >= Some(size)),
        (200, &json!(true), true),
        "{body}"
    );
    assert_eq!(served.get("/api/audit").await["sound"], true);
    assert_eq!(served.get("/api/audit/proof/1").await["seq"], 1);
    assert_eq!(served.request("GET", "/api/audit/proof/99999", None).await.0, 404);
    assert_eq!(served.get("/api/sessions/s-1/timeline").await["items"], json!([]));
    assert_eq!(served.request("GET", "/api/sessions/s-9/timeline", None).await.0, 404);
    assert_eq!(
        served.request("POST", "/api/hooks/reload", Some(json!({}))).await,
        (200, "{\"sessions\":0,\"results\":[]}".to_owned())
    );
    assert_eq!(served.request("POST", "/api/hooks/test", Some(json!({ "bundle": "b" }))).await.1, "{\"tested\":\"b\"}");
    assert_eq!(served.request("POST", "/api/hooks/test", Some(json!({}))).await.0, 422);
    let (status, told) =
        served.request("POST", "/api/hooks/try", Some(json!({ "event": "a:b", "workspace": "/w" }))).await;
    assert!(status == 422 && told.contains("nobody hears `a:b` in `Some(\\\"/w\\\")`"), "{told}");
    let mut socket = served.watch("").await;
    next(&mut socket).await.unwrap();
    let (_, metrics) = served.request("GET", "/metrics", None).await;
    for line in [
        "amplifier_hook_denials_total{hook=\"guard \\\"x\\\"\"} 1",
        "amplifier_hook_duration_seconds_bucket{hook=\"guard \\\"x\\\"\",le=\"0.000001\"} 0",
        "amplifier_hook_duration_seconds_bucket{hook=\"guard \\\"x\\\"\",le=\"0.000004\"} 1",
        "amplifier_stream_clients 1",
        "amplifier_approvals_pending 0",
        "amplifier_audit_sound 1",
        &format!("amplifier_audit_records {size}"),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_websocket_the_stream_is_lines_and_its_questions_are_those_of_its_session_and_sub_agents() {
    let served = Served::new().await;
    let (other, _first) = asking(&served.app.hub, None, "s-1");
    let (session, _second) = asking(&served.app.hub, None, "s-2");
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "GET /api/stream?session=s-2 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        served.address, served.admin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = async || loop {
        let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        if line.starts_with('{') {
            return serde_json::from_str::<Value>(&line).unwrap();
        }
    };
    assert_eq!(next().await["type"], "hello");
    let (one, two) = (call(&other, LIMIT), call(&session, LIMIT));
    let mut next_of = async |kind: &str| loop {
        let message = next().await;
        if message["type"] == kind {
            return message;
        }
    };
    let asked = next_of("approval_requested").await["approval"].clone();
    assert_eq!(asked["id"], "s-2.run.1");
    let answer = json!({ "option": "Allow once", "nonce": asked["nonce"] });
    assert_eq!(served.request("POST", "/api/approvals/s-2.run.1/answer", Some(answer)).await.0, 200);
    assert!(two.await.unwrap().is_proceed());
    let closed = next_of("approval_closed").await;
    assert_eq!((&closed["id"], &closed["decided"]["granted"]), (&json!("s-2.run.1"), &json!(true)));
    let three = call(&session.child().session_id("s-3").build(), LIMIT);
    let asked = next_of("approval_requested").await["approval"].clone();
    assert_eq!((&asked["id"], &asked["parent_session"]), (&json!("s-3.run.2"), &json!("s-2")));
    three.abort();
    assert_eq!(next_of("approval_closed").await["id"], "s-3.run.2");
    one.abort();
}

impl Served {
    /// The late answers in the log: session, request, answer, actor and channel.
    async fn late_answers(&self) -> Vec<Value> {
        self.flushed().await;
        let found = self.get("/api/audit/records?kind=late_answer&limit=1000").await;
        let records = found["records"].as_array().unwrap().iter();
        records
            .map(|record| {
                let body = &record["body"];
                json!([record["session"], body["id"], body["answer"], body["by"]["name"], body["by"]["via"]])
            })
            .collect()
    }

    async fn answer(&self, id: impl std::fmt::Display, option: &str, nonce: &str) -> (u16, Value) {
        let answer = json!({ "option": option, "nonce": nonce });
        let (status, body) = self.request("POST", &format!("/api/approvals/{id}/answer"), Some(answer)).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Opens a stream of lines, and returns the status and the lines.
    async fn lines(&self, token: &str) -> (u16, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head =
            format!("GET /api/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        timeout(LIMIT, stream.read_line(&mut line)).await.unwrap().unwrap();
        (line[9..12].parse().unwrap(), stream)
    }
}

/// Waits until a connection is closed by the server.
async fn to_end(stream: &mut BufReader<TcpStream>) {
    timeout(LIMIT, stream.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_recorded_after_the_session_has_ended_and_after_a_restart() {
    let served = Served::new().await;
    let hub = &served.app.hub;
    let (session, link) = asking(hub, Some(&served.log), "s-1");
    let (timed_out, operation) = asked(hub, &session, Duration::from_millis(50)).await;
    assert!(!operation.await.unwrap().is_proceed());
    let (decided, operation) = asked(hub, &session, LIMIT).await;
    assert_eq!(served.answer(&decided.id, "Deny", &decided.nonce).await.0, 200);
    assert!(!operation.await.unwrap().is_proceed());
    link.close("done").await;
    drop(session);
    served.log.seal("s-1", "done").await.unwrap();
    until("the farewell", || hub.session("s-1").is_none().then_some(()));

    // The server has the requests, and checks their nonces.
    assert_eq!(served.answer(&timed_out.id, "Allow once", "wrong").await.0, 403);
    let (status, refused) = served.answer(&timed_out.id, "Allow once", &timed_out.nonce).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("late")), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().ends_with("the answer is recorded"), "{refused}");

    // Another server finds them only in the log.
    let again = App { hub: Hub::new(), ..served.app.clone() };
    let other = served.tokens.folder().parent().unwrap().join("other");
    let again = App { access: Access::open(&other, AccessOptions::default()).unwrap(), ..again };
    let running = Server::start(again, ServerOptions::new("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let (address, admin) = (running.address, TokenFiles::at(&other).unwrap().admin().unwrap());
    let restarted = Served { address, admin, running, ..served };
    let (status, refused) = restarted.answer(&decided.id, "Allow once", &decided.nonce).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("answered")), "{refused}");
    assert_eq!(refused["error"]["by"], json!({ "name": "owner", "via": "api" }));
    assert_eq!(restarted.answer(&decided.id, "Perhaps", "").await.0, 422);
    let run = restarted.log.writer().to_owned();
    for unknown in
        [&format!("s-1.{run}.9"), &format!("s-1.{run}.01"), "s-1.1", "s-1.other.1", &format!("s-2.{run}.1"), "s-1"]
    {
        assert_eq!(restarted.answer(unknown, "Deny", "").await.0, 404, "{unknown}");
    }
    let shown = restarted.get(&format!("/api/approvals/{}", decided.id)).await;
    assert_eq!((&shown["basis"], &shown["granted"]), (&json!("answer"), &json!(false)));
    let recorded = restarted.late_answers().await;
    assert_eq!(
        recorded,
        [json!(["s-1", 1, "Allow once", "owner", "api"]), json!(["s-1", 2, "Allow once", "owner", "api"])]
    );
    // The session is still sealed, and does not count as active again.
    let of_session = restarted.get("/api/audit/records?session=s-1&limit=1000").await;
    let last = of_session["records"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &last["body"]["reason"]), (&json!("seal"), &json!("late_answer")), "{last}");
    assert_eq!(restarted.get("/api/sessions/s-1").await["state"], "ended");
    let (_, audit) = restarted.request("POST", "/api/audit/verify", Some(json!({}))).await;
    assert_eq!(serde_json::from_str::<Value>(&audit).unwrap()["sound"], true, "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_recorded_when_the_session_has_forgotten_the_question() {
    let served = Served::new().await;
    let hub = &served.app.hub;
    let (session, _link) = asking(hub, Some(&served.log), "s-1");
    let (first, operation) = asked(hub, &session, Duration::from_millis(1)).await;
    assert!(!operation.await.unwrap().is_proceed());
    let later: Vec<_> = (0..300).map(|_| call(&session, Duration::from_millis(1))).collect();
    for operation in later {
        assert!(!operation.await.unwrap().is_proceed());
    }
    let last = ApprovalId::new("s-1", served.log.writer(), 301);
    until("the last decision", || hub.decision(&last));
    let (status, refused) = served.answer(&first.id, "Deny", &first.nonce).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("late")), "{refused}");
    assert_eq!(served.late_answers().await, [json!(["s-1", 1, "Deny", "owner", "api"])]);
}

/// Answers a request on a stream that ends, and checks that no response to the answer arrives.
async fn check_not_heard(socket: &mut Socket, question: &OpenApproval) {
    let answer = json!({ "type": "answer", "id": question.id, "option": "Allow once", "nonce": question.nonce });
    let _ = socket.send(Message::Text(answer.to_string().into())).await;
    while let Some(message) = next(socket).await {
        assert_ne!(message["type"], "answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_be_here_any_more_is_not_heard_and_told_nothing() {
    let served = Served::new().await;
    let token = served.tokens.add("ann", Role::Approver).unwrap();
    let (session, _link) = asking(&served.app.hub, None, "s-1");
    let (question, operation) = asked(&served.app.hub, &session, LIMIT).await;
    let mut socket = served.watch_as("", &token).await;
    next_of(&mut socket, "hello").await;
    let (status, mut lines) = served.lines(&token).await;
    assert_eq!(status, 200);
    served.watched_by(2).await;
    served.tokens.revoke("ann").unwrap();
    // Both streams end, and the answer does not count.
    check_not_heard(&mut socket, &question).await;
    to_end(&mut lines).await;
    assert_eq!(served.app.hub.pending().len(), 1);
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_lowered_holds_at_once() {
    let served = Served::new().await;
    let token = served.tokens.add("ann", Role::Approver).unwrap();
    let (session, _link) = asking(&served.app.hub, None, "s-1");
    let (question, operation) = asked(&served.app.hub, &session, LIMIT).await;
    let mut socket = served.watch_as("", &token).await;
    next_of(&mut socket, "hello").await;
    let file = served.tokens.folder().join("tokens.json");
    let lowered = std::fs::read_to_string(&file).unwrap().replace("approver", "viewer");
    std::fs::write(&file, lowered).unwrap();
    check_not_heard(&mut socket, &question).await;
    assert_eq!(served.app.hub.pending().len(), 1);
    // The user can sign in again, with the new role.
    let mut socket = served.watch_as("", &token).await;
    assert_eq!(next_of(&mut socket, "hello").await["me"]["role"], "viewer");
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_leaves_ends_its_stream() {
    let served = Served::new().await;
    let link = served.running.link("bob", Role::Viewer).unwrap();
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let path = link.strip_prefix(&served.running.url).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.address);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut entered = String::new();
    timeout(LIMIT, stream.read_to_string(&mut entered)).await.unwrap().unwrap();
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let (_, key) = entered.split_once("name=\"amplifier-key\" content=\"").unwrap();
    let key = key.split('"').next().unwrap();
    let origin = format!("http://{}", served.address);
    let mut request = format!("ws://{}/api/stream", served.address).into_client_request().unwrap();
    request.headers_mut().insert("cookie", cookie.parse().unwrap());
    request.headers_mut().insert("origin", origin.parse().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", format!("amplifier, key.{key}").parse().unwrap());
    let mut socket = tokio_tungstenite::connect_async(request).await.unwrap().0;
    assert_eq!(next_of(&mut socket, "hello").await["me"]["name"], "bob");
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /api/leave HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {cookie}\r\nX-Amplifier-Key: {key}\r\nOrigin: {origin}\r\nContent-Type: \
         application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        served.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut left = String::new();
    timeout(LIMIT, stream.read_to_string(&mut left)).await.unwrap().unwrap();
    assert!(left.starts_with("HTTP/1.1 20"), "{left}");
    while next(&mut socket).await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_lines_have_places_like_websockets_and_give_them_back() {
    let served = Served::with(|options| options.sockets = 1).await;
    let (status, first) = served.lines(&served.admin).await;
    assert_eq!(status, 200);
    let (refused, _) = served.lines(&served.admin).await;
    assert_eq!(refused, 503);
    let mut request = format!("ws://{}/api/stream", served.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", served.admin).parse().unwrap());
    assert!(tokio_tungstenite::connect_async(request).await.is_err());
    drop(first);
    timeout(LIMIT, async { while served.lines(&served.admin).await.0 != 200 {} }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_server_stops() {
    let served = Served::with(|options| options.stop_time = LIMIT * 2).await;
    let (_, mut lines) = served.lines(&served.admin).await;
    let mut socket = served.watch("").await;
    next_of(&mut socket, "hello").await;
    timeout(LIMIT, served.running.stop()).await.expect("it waits for the streams");
    to_end(&mut lines).await;
    while next(&mut socket).await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_other_machines_are_listed_with_their_machine() {
    let served = Served::new().await;
    let (session, _link) = asking(&served.app.hub, None, "here");
    let (_, _operation) = asked(&served.app.hub, &session, LIMIT).await;
    let request: Value = json!({
        "id": "s.r.1", "number": 1, "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?",
        "options": [{ "label": "Deny", "effect": "deny" }], "created_at": Timestamp::now(), "deadline": Timestamp::now(), "timeout_s": 300.0,
        "default": "deny", "digest": "0".repeat(64), "preview": { "title": "Deploy" }, "machine": "another",
    });
    let hello = json!({
        "type": "hello", "version": VERSION, "session": "s", "run": "r", "pid": 0, "workspace": "/", "machine": "m1", "started_at": Timestamp::now(),
    });
    let mut pipe = served.app.hub.remote_pipes().open();
    for message in [hello, json!({ "type": "approval_requested", "approval": request })] {
        write(&mut pipe, &message).await.unwrap();
    }
    let hub = served.app.hub.clone();
    tokio::task::spawn_blocking(move || until("both requests", || (hub.pending().len() == 2).then_some(())))
        .await
        .unwrap();
    let ids = async |path: &str| -> Vec<String> {
        let listed = served.get(path).await;
        let ids = listed["approvals"].as_array().unwrap().iter().map(|open| open["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    assert_eq!(ids("/api/approvals").await.len(), 2);
    assert_eq!(ids("/api/approvals?machine=m1").await, ["s.r.1"]);
    assert!(ids("/api/approvals?machine=another").await.is_empty());
    let session = served.get("/api/sessions/s").await;
    assert_eq!(
        (&session["machine"], &session["runs_in"], &session["pid"]),
        (&"m1".into(), &"machine".into(), &Value::Null)
    );
    let (status, refused) = served.request("POST", "/api/sessions/s/interrupt", Some(json!({}))).await;
    assert!(status == 422 && refused.contains("on the machine `m1`"), "{status} {refused}");
}
