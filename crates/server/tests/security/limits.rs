//! Limits for slow and for numerous clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use amplifier_core::Rate;
use amplifier_server::access::{AccessOptions, Role};
use amplifier_server::{ServeError, ServerOptions};
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::place::{Asked, Browser, LIMIT, Place, exchange, generous};

const SOON: Duration = Duration::from_millis(300);

/// A burst of five, and no refill during a test.
const FIVE: Rate = Rate { burst: 5, every: Duration::from_secs(3600) };

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_of_one_person_are_put_off_and_others_are_not() {
    let place = Place::with(AccessOptions { requests: FIVE, ..generous() }, |_| ()).await;
    let me = |role| place.ask(&Asked::new("GET", "/api/me").with("Authorization", &place.bearer(role)));
    let statuses: Vec<u16> = (0..6).map(|_| me(Role::Viewer).status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    let refused = me(Role::Viewer);
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many"));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=FIVE.every.as_secs()).contains(&wait), "{wait}");
    assert_eq!(me(Role::Approver).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_over_a_websocket_count_as_requests_do() {
    let place = Place::with(AccessOptions { requests: FIVE, ..generous() }, |_| ()).await;
    let mut request = format!("ws://{}/api/stream", place.address()).into_client_request().unwrap();
    request.headers_mut().insert("authorization", place.bearer(Role::Viewer).parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    // The request was the first of five, so the fifth message is one too many. Data sent to a closed socket could
    // discard the server's close frame.
    for _ in 0..5 {
        socket.send(Message::text(r#"{"type":"watch","after":0}"#)).await.unwrap();
    }
    let closed = async {
        loop {
            if let Message::Close(why) = socket.next().await.unwrap().unwrap() {
                return why.unwrap().reason.to_string();
            }
        }
    };
    assert_eq!(tokio::time::timeout(LIMIT, closed).await.unwrap(), "too many messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_secrets_are_put_off_and_nobody_is_locked_out() {
    let place = Place::with(AccessOptions { failures: FIVE, ..generous() }, |_| ()).await;
    let wrong = || place.ask(&Asked::new("GET", "/api/me").with("Authorization", "Bearer wrong"));
    let statuses: Vec<u16> = (0..6).map(|_| wrong().status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    let refused = wrong();
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many"));
    assert!(refused.header("retry-after").is_some());
    let code = place.get("/enter?code=wrong");
    assert_eq!((code.status, code.header("retry-after").is_some()), (429, true));
    let right = place.ask(&Asked::new("GET", "/api/me").with("Authorization", &place.bearer(Role::Viewer)));
    assert_eq!(right.status, 200);
    assert_eq!(place.ask(&Asked::new("GET", "/api/me").by(&place.browser(Role::Viewer))).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_what_they_want_is_not_waited_for() {
    let place = Place::with(generous(), |options| options.header_time = SOON).await;
    for beginning in ["", "GET /health HTTP/1.1\r\nHo", "GET /health HTTP/1.1\r\nHost: x\r\nX-A: b\r\n"] {
        let reply = exchange(TcpStream::connect(place.address()).unwrap(), beginning.as_bytes());
        assert!(!(200..300).contains(&reply.status), "{beginning}: {reply:?}");
    }
    // A connection that stays open after a response ends as well. A delayed client may miss it, and tries again.
    let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
    until_let_in(|| exchange(TcpStream::connect(place.address()).unwrap(), request.as_bytes()).status);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let place = Place::with(generous(), |options| options.body_time = SOON).await;
    let head = format!(
        "POST /api/links HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\nConnection: close\r\n",
        place.address(),
        place.bearer(Role::Admin)
    );
    for rest in ["Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"] {
        let reply = exchange(TcpStream::connect(place.address()).unwrap(), format!("{head}{rest}").as_bytes());
        assert_eq!((reply.status, reply.code().as_str()), (408, "slow"), "{reply:?}");
    }
}

/// Repeats a request until it succeeds.
fn until_let_in(ask: impl Fn() -> u16) {
    let begun = Instant::now();
    while ask() != 200 {
        assert!(begun.elapsed() < LIMIT);
    }
}

/// Opens a connection that stays open after one request, and returns the status.
fn stay(place: &Place, headers: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(place.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET /api/me HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", place.address()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_make_room_for_each_other_and_lock_nobody_out() {
    let place = Place::with(generous(), |options| {
        options.strangers = 4;
        options.header_time = LIMIT;
    })
    .await;
    let authorization = format!("Authorization: {}\r\n", place.bearer(Role::Viewer));
    let (mut known, status) = stay(&place, &authorization);
    assert_eq!(status, "200");
    // Many more than there are slots, and they stay open.
    let mut strangers: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(place.address()).unwrap()).collect();
    let me = place.ask(&Asked::new("GET", "/api/me").with("Authorization", &place.bearer(Role::Admin)));
    assert_eq!(me.status, 200, "{me:?}");
    let first = &mut strangers[0];
    first.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0, "the first has lost its place");
    // Authenticated clients keep their slots.
    write!(known, "GET /api/me HTTP/1.1\r\nHost: {}\r\n{authorization}Connection: close\r\n\r\n", place.address())
        .unwrap();
    let mut answer = String::new();
    known.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_connections_of_known_people_are_open_and_each_gives_its_place_back() {
    let place = Place::with(generous(), |options| {
        (options.connections, options.strangers) = (6, 2);
        // Open connections are not closed for silence.
        options.header_time = LIMIT;
    })
    .await;
    let by = |role| format!("Authorization: {}\r\n", place.bearer(role));
    let me = |role| place.ask(&Asked::new("GET", "/api/me").with("Authorization", &place.bearer(role)));
    // Of the four authenticated slots, two are for one user, and three for all but the owner.
    let mut open: Vec<TcpStream> = (0..2).map(|_| stay(&place, &by(Role::Viewer)).0).collect();
    let refused = me(Role::Viewer);
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_connections"));
    assert_eq!(refused.header("retry-after"), Some("5"));
    open.push(stay(&place, &by(Role::Approver)).0);
    let refused = me(Role::Approver);
    assert_eq!((refused.status, refused.code().as_str()), (503, "too_many_connections"));
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(me(Role::Admin).status, 200);
    open.pop();
    until_let_in(|| me(Role::Approver).status);
    open.pop();
    until_let_in(|| me(Role::Viewer).status);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_with_many_connections_does_not_lock_out_the_owner() {
    let place = Place::with(generous(), |options| {
        (options.connections, options.strangers, options.sockets) = (24, 8, 8);
        options.header_time = LIMIT;
    })
    .await;
    // A token and two browsers of the same name count as one user.
    let browsers = [place.browser(Role::Viewer), place.browser(Role::Viewer)];
    let cookies =
        browsers.iter().map(|Browser { cookie, key }| format!("Cookie: {cookie}\r\nX-Amplifier-Key: {key}\r\n"));
    let token = format!("Authorization: {}\r\n", place.bearer(Role::Viewer));
    let headers: Vec<String> = cookies.chain([token]).collect();
    let opened: Vec<(TcpStream, String)> = (0..24).map(|n| stay(&place, &headers[n % headers.len()])).collect();
    let let_in = opened.iter().filter(|(_, status)| status == "200").count();
    assert_eq!(let_in, 8, "half of the sixteen for those who are known");
    assert!(opened.iter().all(|(_, status)| status == "200" || status == "429"), "{opened:?}");
    // No other user is locked out: neither the owner, by token or in a browser, nor an approver.
    let me = |asked: Asked| place.ask(&asked).status;
    for role in [Role::Admin, Role::Approver] {
        assert_eq!(me(Asked::new("GET", "/api/me").with("Authorization", &place.bearer(role))), 200, "{role}");
    }
    let link = place.running.link("ada", Role::Admin).unwrap();
    assert_eq!(me(Asked::new("GET", "/api/me").by(&place.enter(&link))), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_with_many_streams_leaves_some_to_others() {
    let place = Place::with(generous(), |options| options.sockets = 4).await;
    let watch = |role| {
        let mut request = format!("ws://{}/api/stream", place.address()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", place.bearer(role).parse().unwrap());
        tokio_tungstenite::connect_async(request)
    };
    let refusal = |error: tokio_tungstenite::tungstenite::Error| match error {
        tokio_tungstenite::tungstenite::Error::Http(reply) => {
            (reply.status().as_u16(), reply.headers()["retry-after"].to_str().unwrap().to_owned())
        }
        other => panic!("{other}"),
    };
    let first = watch(Role::Viewer).await.unwrap();
    let _second = watch(Role::Viewer).await.unwrap();
    assert_eq!(refusal(watch(Role::Viewer).await.unwrap_err()), (429, "5".to_owned()));
    // Line streams have the same limit.
    let lines = Asked::new("GET", "/api/stream").with("Authorization", &place.bearer(Role::Viewer));
    let lines = place.ask(&lines);
    assert_eq!((lines.status, lines.code().as_str()), (429, "too_many_sockets"));
    let _third = watch(Role::Approver).await.unwrap();
    assert_eq!(refusal(watch(Role::Approver).await.unwrap_err()), (503, "5".to_owned()));
    let _owner = watch(Role::Admin).await.unwrap();
    drop(first);
    let begun = Instant::now();
    while watch(Role::Viewer).await.is_err() {
        assert!(begun.elapsed() < LIMIT);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_endless_headers_are_refused() {
    let place = Place::new().await;
    let long = format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", place.address(), "x".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\nHost: {}\r\n{}\r\n", place.address(), "X: y\r\n".repeat(5000));
    for bytes in ["garbage\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0\0\0\0\r\n\r\n", &long, &many] {
        let reply = exchange(TcpStream::connect(place.address()).unwrap(), bytes.as_bytes());
        assert!([400, 414, 431, 0].contains(&reply.status), "{reply:?}");
    }
    // Two lengths, or a length and chunks, are how requests are smuggled past others.
    for smuggling in
        ["Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "Content-Length: 2\r\nTransfer-Encoding: x\r\n\r\n{}"]
    {
        let head = format!("POST /api/leave HTTP/1.1\r\nHost: {}\r\n", place.address());
        let reply = exchange(TcpStream::connect(place.address()).unwrap(), format!("{head}{smuggling}").as_bytes());
        assert_eq!(reply.status, 400, "{smuggling}");
    }
    assert_eq!(place.get("/health").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_needs_tls_or_a_clear_word() {
    let open = ServerOptions::new(([0, 0, 0, 0], 0).into());
    let refused = Place::start(tempfile::tempdir().unwrap(), generous(), open.clone()).await;
    let error = refused.err().unwrap();
    assert!(matches!(error, ServeError::Insecure(_)), "{error}");
    let place =
        Place::start(tempfile::tempdir().unwrap(), generous(), ServerOptions { insecure: true, ..open }).await.unwrap();
    let port = place.address().port();
    let health = |host: &str| {
        let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        exchange(TcpStream::connect(("127.0.0.1", port)).unwrap(), request.as_bytes()).status
    };
    assert_eq!((health(&format!("127.0.0.1:{port}")), health(&format!("0.0.0.0:{port}"))), (200, 421));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_the_server_is_given_are_its_own() {
    let place = Place::with(generous(), |options| options.hosts = vec!["box.example".to_owned()]).await;
    let port = place.address().port();
    assert_eq!(place.running.url, format!("http://box.example:{port}"));
    let me = |host: &str, origin: &str| {
        let asked = Asked::new("GET", "/api/me").with("Authorization", &place.bearer(Role::Viewer));
        place.ask(&asked.with("Host", host).with("Origin", origin)).status
    };
    assert_eq!(me(&format!("box.example:{port}"), &format!("http://box.example:{port}")), 200);
    assert_eq!(me(&format!("BOX.example:{port}"), &format!("http://localhost:{port}")), 200);
    assert_eq!(me(&format!("[::1]:{port}"), &format!("http://[::1]:{port}")), 200);
    assert_eq!(me("box.example", "http://box.example"), 421);
    assert_eq!(me(&format!("box.example:{port}"), "http://box.example"), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_console_are_sent_once() {
    let place = Place::new().await;
    let first = place.get("/");
    first.check_protected();
    assert_eq!((first.status, first.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let again = place.ask(&Asked::new("GET", "/").with("If-None-Match", first.header("etag").unwrap()));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let style = place.get("/console/page.css");
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    let page = place.get("/api");
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
    assert!(page.body.contains("/api/links") && !page.body.contains("<script"), "{}", page.body);
    // Pages contain nothing that the policy forbids: no inline style or script.
    assert!(!page.body.contains("<style") && !page.body.contains(" style="), "{}", page.body);
}
