//! The nonce of an approval request is visible only to approvers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use amplifier_server::access::Role;
use futures::StreamExt;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::place::{Asked, LIMIT, Place};
use crate::common::{asked, asking};

/// Returns the lines of a stream, up to the first one about the request.
fn lines(place: &Place, role: Role, id: &str) -> String {
    let mut stream = TcpStream::connect(place.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let (host, bearer) = (place.address(), place.bearer(role));
    write!(stream, "GET /api/stream HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n\r\n").unwrap();
    let mut told = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "the stream has ended");
        told.extend(&piece[..n]);
        let text = String::from_utf8_lossy(&told);
        if text.split_once(id).is_some_and(|(_, rest)| rest.contains('\n')) {
            return text.into_owned();
        }
    }
}

/// Opens a WebSocket, and reads up to the message about the request.
async fn watch(place: &Place, role: Role) -> impl AsyncFnMut(&str) -> String {
    let mut request = format!("ws://{}/api/stream", place.address()).into_client_request().unwrap();
    request.headers_mut().insert("authorization", place.bearer(role).parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    async move |id: &str| {
        let about = async {
            loop {
                let text = socket.next().await.unwrap().unwrap().into_text().unwrap().to_string();
                if text.contains(id) {
                    return text;
                }
            }
        };
        tokio::time::timeout(LIMIT, about).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_answer_a_question_are_given_its_nonce() {
    let place = Place::new().await;
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (open, operation) = asked(&place.hub, &session, Duration::from_secs(600)).await;
    for role in Role::ALL {
        let get = |path: &str| place.ask(&Asked::new("GET", path).with("Authorization", &place.bearer(role))).body;
        let by_cookie = place.ask(&Asked::new("GET", "/api/approvals").by(&place.browser(role))).body;
        let mut socket = watch(&place, role).await;
        let hello = socket(&open.id.to_string()).await;
        let (new, second) = asked(&place.hub, &session, Duration::from_secs(600)).await;
        let told = socket(&new.id.to_string()).await;
        assert!(told.contains(r#""type":"approval_requested""#), "{told}");
        for (place, text, nonce) in [
            ("the list", get("/api/approvals"), &open.nonce),
            ("the list in a browser", by_cookie, &open.nonce),
            ("one question", get(&format!("/api/approvals/{}", open.id)), &open.nonce),
            ("the beginning of a WebSocket", hello, &open.nonce),
            ("a new question on a WebSocket", told, &new.nonce),
            ("a stream of lines", lines(&place, role, &open.id.to_string()), &open.nonce),
        ] {
            assert!(text.contains(&open.id.to_string()) || text.contains(&new.id.to_string()), "{place}: {text}");
            let may_answer = role >= Role::Approver;
            assert_eq!(text.contains(nonce.as_str()), may_answer, "{place} for {role}: {text}");
            assert_eq!(text.contains("nonce"), may_answer, "{place} for {role}: {text}");
        }
        second.abort();
    }
    operation.abort();
}
