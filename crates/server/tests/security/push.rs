//! Devices that receive push messages: whose, where to, and until when. The console's tests decrypt the messages.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use amplifier_server::ServerOptions;
use amplifier_server::access::{Role, TokenFiles};
use serde_json::{Value, json};

use super::place::{Asked, Place, Reply, generous};
use super::receiver::{Received, Receiver};
use crate::common::{asked, asking};

const LONG: Duration = Duration::from_secs(600);

/// A point of the curve and a secret: the example of RFC 8291.
fn subscription(endpoint: &str) -> Value {
    json!({
        "endpoint": endpoint,
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    })
}

async fn place(receiver: &Receiver) -> Place {
    Place::with(generous(), |options| options.push_services = vec![receiver.url.clone()]).await
}

fn add(place: &Place, bearer: &str, subscription: &Value) -> Reply {
    place.ask(&Asked::new("POST", "/api/push").with("Authorization", bearer).json(&subscription.to_string()))
}

fn devices(place: &Place, bearer: &str) -> Vec<Value> {
    let reply = place.ask(&Asked::new("GET", "/api/push").with("Authorization", bearer));
    assert_eq!(reply.status, 200, "{reply:?}");
    serde_json::from_str::<Value>(&reply.body).unwrap()["devices"].as_array().unwrap().clone()
}

fn add_device(place: &Place, bearer: &str, endpoint: &str) -> String {
    let added = add(place, bearer, &subscription(endpoint));
    assert_eq!(added.status, 201, "{added:?}");
    serde_json::from_str::<Value>(&added.body).unwrap()["id"].as_str().unwrap().to_owned()
}

fn header<'a>(received: &'a Received, name: &str) -> &'a str {
    received.header(name).unwrap_or_else(|| panic!("{name} in {received:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_told_when_a_request_opens_and_when_it_closes() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let approver = place.bearer(Role::Approver);
    add_device(&place, &approver, &format!("{}/device/1", receiver.url));
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (open, operation) = asked(&place.hub, &session, LONG).await;
    let opened = receiver.next();
    let path = format!("/api/approvals/{}/answer", open.id);
    let body = json!({ "option": "Allow once", "nonce": open.nonce }).to_string();
    assert_eq!(place.ask(&Asked::new("POST", &path).with("Authorization", &approver).json(&body)).status, 200);
    assert!(operation.await.unwrap().is_proceed());
    let closed = receiver.next();
    for message in [&opened, &closed] {
        assert_eq!(message.line, "POST /device/1");
        assert_eq!((header(message, "urgency"), header(message, "content-encoding")), ("high", "aes128gcm"));
        let seconds: u64 = header(message, "ttl").parse().unwrap();
        assert!((1..=600).contains(&seconds), "{seconds}");
        assert!(header(message, "authorization").starts_with("vapid t="));
        assert_eq!(message.body.len(), 2151, "all messages have one size");
    }
    assert_eq!(header(&opened, "topic").len(), 24);
    assert_eq!(header(&opened, "topic"), header(&closed, "topic"), "the end replaces an undelivered beginning");
    assert_ne!(opened.body, closed.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_endpoints_and_keys_are_refused() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let approver = place.bearer(Role::Approver);
    let mut cases: Vec<Value> = [
        "",
        "http://push.example/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://box.internal/",
        "https://push.example:22/",
        "https://user@push.example/",
        "file:///etc/passwd",
        &receiver.url.replace("127.0.0.1", "127.0.0.2"),
        &place.running.url,
    ]
    .map(subscription)
    .to_vec();
    for (field, value) in [
        ("p256dh", json!("")),
        ("p256dh", json!("BCVx")),
        ("p256dh", json!("A".repeat(87))),
        ("p256dh", json!(7)),
        ("auth", json!("")),
        ("auth", json!("BTBZMqHH6r4Tts7J_aSI")),
        ("auth", json!(null)),
        ("more", json!(1)),
    ] {
        let mut case = subscription(&receiver.url);
        case[field] = value;
        cases.push(case);
    }
    for case in &cases {
        let refused = add(&place, &approver, case);
        assert_eq!((refused.status, refused.code().as_str()), (422, "body"), "{case}");
    }
    assert_eq!(devices(&place, &approver), Vec::<Value>::new());
    assert!(receiver.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_is_notified_and_cannot_ask_for_links_that_answer() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let mut wants = subscription(&format!("{}/viewer", receiver.url));
    wants["answers"] = json!(true);
    let viewer = place.bearer(Role::Viewer);
    let refused = add(&place, &viewer, &wants);
    assert_eq!((refused.status, refused.code().as_str()), (403, "role"));
    wants["answers"] = json!(false);
    assert_eq!(add(&place, &viewer, &wants).status, 201);
    wants["answers"] = json!(true);
    wants["endpoint"] = json!(format!("{}/approver", receiver.url));
    assert_eq!(add(&place, &place.bearer(Role::Approver), &wants).status, 201);
    assert_eq!(devices(&place, &viewer)[0]["answers"], false);
    assert_eq!(devices(&place, &place.bearer(Role::Approver))[0]["answers"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_a_push_service_is_not_followed() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    receiver.answer_with(307);
    let approver = place.bearer(Role::Approver);
    add_device(&place, &approver, &format!("{}/device", receiver.url));
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (_open, operation) = asked(&place.hub, &session, LONG).await;
    assert_eq!(receiver.next().line, "POST /device");
    operation.abort();
    // The next message is the end of the request, and not the target of the redirect.
    assert_eq!(receiver.next().line, "POST /device");
    assert_eq!(devices(&place, &approver).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_the_push_service_does_not_know_is_forgotten() {
    for status in [404, 410] {
        let receiver = Receiver::start();
        let place = place(&receiver).await;
        receiver.answer_with(status);
        let approver = place.bearer(Role::Approver);
        add_device(&place, &approver, &receiver.url);
        let (session, _link) = asking(&place.hub, None, "s-1");
        let (_open, operation) = asked(&place.hub, &session, LONG).await;
        receiver.next();
        crate::common::until("the device is forgotten", || devices(&place, &approver).is_empty().then_some(()));
        operation.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_out_or_is_revoked_gets_no_more_messages() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let file = place.folder.path().join("server/push.json");
    let kept = || std::fs::read_to_string(&file).unwrap();
    let (left, ended) = (place.browser(Role::Admin), place.browser(Role::Viewer));
    for (browser, path) in [(&left, "left"), (&ended, "ended")] {
        let body = subscription(&format!("{}/{path}", receiver.url)).to_string();
        let asked = Asked::new("POST", "/api/push").by(browser).with("Origin", &place.origin()).json(&body);
        assert_eq!(place.ask(&asked).status, 201);
    }
    let files = TokenFiles::at(place.folder.path().join("server")).unwrap();
    let token = files.add("bob", Role::Approver).unwrap();
    add_device(&place, &format!("Bearer {token}"), &format!("{}/revoked", receiver.url));
    let approver = place.bearer(Role::Approver);
    add_device(&place, &approver, &format!("{}/stays", receiver.url));

    let leave = Asked::new("POST", "/api/leave").by(&left).with("Origin", &place.origin()).json("{}");
    assert_eq!(place.ask(&leave).status, 204);
    assert!(!kept().contains("/left") && kept().contains("/ended"), "{}", kept());
    let end = Asked::new("DELETE", "/api/browsers/viewer").with("Authorization", &place.bearer(Role::Admin)).json("{}");
    assert_eq!(place.ask(&end).status, 200);
    assert!(!kept().contains("/ended"), "{}", kept());
    files.revoke("bob").unwrap();
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (_open, operation) = asked(&place.hub, &session, LONG).await;
    assert_eq!(receiver.next().line, "POST /stays");
    operation.abort();
    assert_eq!(receiver.next().line, "POST /stays");
    assert!(receiver.is_empty() && !kept().contains("/revoked"), "{}", kept());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_the_owner_ends_with_the_owner_s_token() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let (owner, approver) = (place.bearer(Role::Admin), place.bearer(Role::Approver));
    add_device(&place, &owner, &format!("{}/owner", receiver.url));
    add_device(&place, &approver, &format!("{}/stays", receiver.url));
    let server = place.folder.path().join("server");
    std::fs::remove_file(server.join("token")).unwrap();
    let new = format!("Bearer {}", TokenFiles::at(&server).unwrap().admin().unwrap());
    let status = |bearer: &str| place.ask(&Asked::new("GET", "/api/me").with("Authorization", bearer)).status;
    assert_eq!((status(&owner), status(&new)), (401, 200));
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (_open, operation) = asked(&place.hub, &session, LONG).await;
    assert_eq!(receiver.next().line, "POST /stays");
    operation.abort();
    assert_eq!(receiver.next().line, "POST /stays");
    let kept = std::fs::read_to_string(server.join("push.json")).unwrap();
    assert!(receiver.is_empty() && !kept.contains("/owner"), "{kept}");
}

/// A process cannot safely change its own environment, so a test runs once more, with a proxy that does not work.
#[test]
fn the_proxy_of_the_environment_is_not_used() {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "security::push::a_device_is_told_when_a_request_opens_and_when_it_closes"]);
    let ran = again.env("ALL_PROXY", "http://127.0.0.1:1").env("HTTP_PROXY", "http://127.0.0.1:1").output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_few_private_and_survive_a_restart() {
    let receiver = Receiver::start();
    let place = place(&receiver).await;
    let (approver, viewer) = (place.bearer(Role::Approver), place.bearer(Role::Viewer));
    let ids: Vec<String> =
        (0..11).map(|number| add_device(&place, &approver, &format!("{}/{number}", receiver.url))).collect();
    let known = |place: &Place| -> Vec<String> {
        devices(place, &approver).iter().map(|device| device["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(known(&place), ids[1..], "the oldest gives way");
    assert_eq!(add_device(&place, &approver, &format!("{}/5", receiver.url)), ids[5]);
    assert_eq!(known(&place).len(), 10, "the same device is not counted twice");
    assert_eq!(devices(&place, &viewer), Vec::<Value>::new(), "devices of others are not shown");
    let remove = |place: &Place, bearer: &str, id: &str| {
        let path = format!("/api/push/{id}");
        place.ask(&Asked::new("DELETE", &path).with("Authorization", bearer).json("{}")).status
    };
    assert_eq!((remove(&place, &viewer, &ids[5]), remove(&place, &approver, "unknown")), (404, 404));
    assert_eq!((remove(&place, &approver, &ids[5]), remove(&place, &approver, &ids[5])), (204, 404));
    for name in ["push.json", "push-key"] {
        let mode = std::fs::metadata(place.folder.path().join("server").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let key = |place: &Place| {
        let status = place.ask(&Asked::new("GET", "/api/push").with("Authorization", &approver)).body;
        serde_json::from_str::<Value>(&status).unwrap()["key"].clone()
    };
    let (first, before) = (key(&place), known(&place));
    let Place { running, folder, tokens, .. } = place;
    running.stop().await;
    let mut place = Place::start(folder, generous(), ServerOptions::new(([127, 0, 0, 1], 0).into())).await.unwrap();
    place.tokens = tokens;
    assert_eq!((key(&place), known(&place)), (first, before));
}
