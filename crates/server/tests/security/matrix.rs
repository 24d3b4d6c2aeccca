//! Requests that are refused, each for one reason. Most are derived from the API description, so a new route is covered
//! once it is described.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use amplifier_link::{ApprovalId, OpenApproval};
use amplifier_server::access::Role;
use amplifier_server::{Hub, description};
use serde_json::{Value, json};

use super::place::{Asked, Browser, LIMIT, Place};
use crate::common::{SECRET, asked, asking};

const KEY: &str = "X-Amplifier-Key";

/// A request with exactly one defect.
struct Case {
    why: String,
    asked: Asked,
    status: u16,
    code: &'static str,
}

/// A route as it is described.
struct Route {
    method: String,
    path: String,
    role: Option<Role>,
    has_body: bool,
}

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "options", "trace"];

fn routes() -> Vec<Route> {
    let description = description();
    let mut routes = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let role = operation["x-role"].as_str().unwrap();
            routes.push(Route {
                method: method.clone(),
                path: path.clone(),
                role: (role != "none").then(|| role.parse().unwrap()),
                has_body: operation.get("requestBody").is_some(),
            });
        }
    }
    routes
}

impl Route {
    fn is_safe(&self) -> bool {
        self.method == "get"
    }

    /// The path with values for its parameters.
    fn filled(&self) -> String {
        let parts = self.path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        parts.collect::<Vec<_>>().join("/")
    }

    /// The request with a valid token.
    fn by_token(&self, place: &Place, role: Role) -> Asked {
        let asked = Asked::new(&self.method, &self.filled()).with("Authorization", &place.bearer(role));
        if self.is_safe() { asked } else { asked.json("{}") }
    }

    /// The request as the console makes it.
    fn by_cookie(&self, place: &Place, browser: &Browser) -> Asked {
        let asked = Asked::new(&self.method, &self.filled()).by(browser);
        if self.is_safe() { asked } else { asked.json("{}").with("Origin", &place.origin()) }
    }
}

/// Requests that every route refuses.
fn of_any(right: &Asked, place: &Place, cases: &mut Vec<Case>) {
    let mut add = |why: &str, asked: Asked, status, code| cases.push(Case { why: why.to_owned(), asked, status, code });
    let port = place.address().port();
    let other = port.wrapping_add(1);
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{other}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1:{port}@evil.example"),
        format!("0.0.0.0:{port}"),
        String::new(),
    ];
    for host in hosts {
        add(&format!("the host `{host}`"), right.clone().set("Host", Some(&host)), 421, "host");
    }
    add("no host", right.clone().set("Host", Some("\0")), 421, "host");
    let twice = right.clone().with("Host", &place.address().to_string()).with("Host", "evil.example");
    add("two hosts", twice, 421, "host");
    let mut absolute = right.clone();
    absolute.path = format!("http://evil.example{}", absolute.path);
    add("another host in the request line", absolute, 421, "host");

    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        &format!("https://{}", place.address()),
        &format!("http://127.0.0.1:{other}"),
        "",
    ] {
        add(&format!("the origin `{origin}`"), right.clone().set("Origin", Some(origin)), 403, "origin");
    }
    let twice = right.clone().with("Origin", &place.origin()).with("Origin", "http://evil.example");
    add("two origins", twice, 403, "origin");
}

/// Requests that a route with authentication refuses.
fn of_known(route: &Route, needed: Role, place: &Place, browsers: &[(Role, Browser)], cases: &mut Vec<Case>) {
    let right = route.by_token(place, Role::Admin);
    let mut add = |why: String, asked: Asked, status, code| cases.push(Case { why, asked, status, code });
    let token = place.tokens[&Role::Admin].clone();
    let mut almost = token.clone();
    almost.replace_range(..1, if token.starts_with('A') { "B" } else { "A" });
    let wrong = [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer wrong".to_owned(),
        format!("Bearer {almost}"),
        format!("Bearer {}", &token[1..]),
        format!("Bearer {token}x"),
        format!("Basic {token}"),
        token.clone(),
    ];
    add("no token".to_owned(), right.clone().set("Authorization", None), 401, "unauthenticated");
    for wrong in wrong {
        let asked = right.clone().set("Authorization", Some(&wrong));
        add(format!("the header `Authorization: {wrong}`"), asked, 401, "unauthenticated");
    }
    let twice = right.clone().with("Authorization", &place.bearer(Role::Admin));
    add("two tokens".to_owned(), twice, 401, "unauthenticated");
    let mut in_path = right.clone().set("Authorization", None);
    in_path.path = format!("{}?token={token}&access_token={token}", in_path.path);
    add("a token in the path".to_owned(), in_path, 401, "unauthenticated");

    let (_, browser) = browsers.iter().find(|(role, _)| *role == Role::Admin).unwrap();
    let (_, other) = browsers.iter().find(|(role, _)| *role == Role::Approver).unwrap();
    let by_cookie = route.by_cookie(place, browser);
    let Browser { cookie, key } = browser;
    add("a cookie without its key".to_owned(), by_cookie.clone().set(KEY, None), 401, "unauthenticated");
    let alone = by_cookie.clone().set("Cookie", None);
    add("a key without its cookie".to_owned(), alone, 401, "unauthenticated");
    let value = cookie.split_once('=').unwrap().1;
    for wrong in ["", "wrong", &key[1..], &format!("{key}x"), &key.to_lowercase(), &other.key, value, &token] {
        let asked = by_cookie.clone().set(KEY, Some(wrong));
        add(format!("a cookie with the key `{wrong}`"), asked, 401, "unauthenticated");
    }
    let twice = by_cookie.clone().with(KEY, key);
    add("a cookie with two keys".to_owned(), twice, 401, "unauthenticated");
    let mut in_path = by_cookie.clone().set(KEY, None);
    in_path.path = format!("{}?key={key}&x-amplifier-key={key}", in_path.path);
    add("a key in the path".to_owned(), in_path, 401, "unauthenticated");
    if route.is_safe() {
        let protocols = |offered: &str| {
            let asked = by_cookie.clone().set(KEY, None).with("Origin", &place.origin());
            asked.with("Connection", "Upgrade").with("Upgrade", "websocket").with("Sec-WebSocket-Protocol", offered)
        };
        for offered in ["amplifier", "amplifier, key.", "key.wrong", key, &format!("amplifier, key.{}", other.key)] {
            add(format!("a WebSocket with the protocols `{offered}`"), protocols(offered), 401, "unauthenticated");
        }
        let no_socket = by_cookie.clone().set(KEY, None).with("Sec-WebSocket-Protocol", &format!("key.{key}"));
        add("a key as a protocol of no WebSocket".to_owned(), no_socket, 401, "unauthenticated");
    }
    let (name, _) = cookie.split_once('=').unwrap();
    for wrong in [
        format!("{name}="),
        format!("{name}=wrong"),
        format!("{name}={token}"),
        cookie.replacen("amplifier", "other", 1),
    ] {
        add(format!("the cookie `{wrong}`"), by_cookie.clone().set("Cookie", Some(&wrong)), 401, "unauthenticated");
    }
    let both = by_cookie.clone().with("Authorization", "Bearer wrong");
    add("a right cookie and a wrong token".to_owned(), both, 401, "unauthenticated");
    let foreign = by_cookie.clone().set("Origin", Some("http://evil.example"));
    add("a cookie from the page of another server".to_owned(), foreign, 403, "origin");
    for site in ["cross-site", "same-site"] {
        let asked = by_cookie.clone().with("Sec-Fetch-Site", site);
        add(format!("a cookie from a page that is {site}"), asked, 403, "origin");
    }
    let without = by_cookie.clone().set("Origin", None);
    if route.is_safe() {
        let upgrade = without.with("Connection", "Upgrade").with("Upgrade", "websocket");
        add("a WebSocket by cookie without an origin".to_owned(), upgrade, 403, "origin");
    } else {
        add("a change by cookie without an origin".to_owned(), without, 403, "origin");
    }
    for role in Role::ALL.into_iter().filter(|role| *role < needed) {
        add(format!("a token of a {role}"), route.by_token(place, role), 403, "role");
        let (_, browser) = browsers.iter().find(|(known, _)| *known == role).unwrap();
        add(format!("a cookie of a {role}"), route.by_cookie(place, browser), 403, "role");
    }
    if !route.is_safe() {
        of_bodies(route, &right, cases);
    }
}

/// BodyReader that a route refuses.
fn of_bodies(route: &Route, right: &Asked, cases: &mut Vec<Case>) {
    let mut add = |why: &str, asked: Asked, status, code| cases.push(Case { why: why.to_owned(), asked, status, code });
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "text/json",
        "",
    ] {
        let asked = right.clone().set("Content-Type", Some(kind));
        add(&format!("the content type `{kind}`"), asked, 415, "content_type");
    }
    add("no content type", right.clone().set("Content-Type", None), 415, "content_type");
    add("two content types", right.clone().with("Content-Type", "text/plain"), 415, "content_type");
    let large = right.clone().with("Content-Length", &(1024 * 1024 + 1).to_string());
    add("a body of more than 1 MiB", large, 413, "too_large");
    if route.has_body {
        let text = "x".repeat(1024 * 1024);
        let chunk = format!("\"{text}\"");
        let chunked = right
            .clone()
            .with("Transfer-Encoding", "chunked")
            .json(&format!("{:x}\r\n{chunk}\r\n0\r\n\r\n", chunk.len()));
        add("a body of more than 1 MiB whose length is not said", chunked, 413, "too_large");
        for body in ["", "{", "7", "\"text\"", "{} {}", "{'a': 1}"] {
            add(&format!("the body `{body}`"), right.clone().json(body), 422, "body");
        }
    }
}

/// Requests that only some routes refuse.
fn of_places(place: &Place, cases: &mut Vec<Case>) {
    let mut add = |why: &str, asked: Asked, status, code| cases.push(Case { why: why.to_owned(), asked, status, code });
    let admin = place.bearer(Role::Admin);
    for path in [
        "/nothing",
        "/api/nothing",
        "/api/",
        "/API/me",
        "//api/me",
        "/api/me/",
        "/console/nothing.js",
        "/console/",
        "/.git/config",
    ] {
        add("nothing is there", Asked::new("GET", path).with("Authorization", &admin), 404, "not_found");
    }
    for path in [
        "/console/../api/me",
        "/console/..%2f..%2fCargo.toml",
        "/console/%2e%2e/lib.rs",
        "/console/%00",
        "/console//etc/passwd",
    ] {
        add("it is no file of the console", Asked::new("GET", path), 404, "not_found");
    }
    let link = Asked::new("POST", "/api/links").with("Authorization", &admin);
    let long = format!("{{\"name\": \"{}\", \"role\": \"viewer\"}}", "x".repeat(65));
    for body in [
        r#"{}"#,
        r#"{"name": "eve"}"#,
        r#"{"role": "viewer"}"#,
        r#"{"name": "eve", "role": "owner"}"#,
        r#"{"name": "eve", "role": "Admin"}"#,
        r#"{"name": "eve", "role": 7}"#,
        r#"{"name": "eve", "role": null}"#,
        r#"{"name": "", "role": "viewer"}"#,
        r#"{"name": " eve", "role": "viewer"}"#,
        r#"{"name": "e\u0000ve", "role": "viewer"}"#,
        r#"{"name": "e\u001b[1mve", "role": "viewer"}"#,
        r#"{"name": "e\u202eve", "role": "viewer"}"#,
        r#"{"name": "<b>eve</b>", "role": "viewer"}"#,
        r#"{"name": "eve", "role": "viewer", "more": 1}"#,
        &long,
    ] {
        add(&format!("the link `{body}`"), link.clone().json(body), 422, "body");
    }
    let trial = Asked::new("POST", "/api/hooks/try").with("Authorization", &admin);
    for body in [
        r#"{"data": {}}"#,
        r#"{"event": null}"#,
        r#"{"event": 7}"#,
        r#"{"event": "tool:pre", "data": []}"#,
        r#"{"event": "tool:pre", "data": "{}"}"#,
        r#"{"event": "tool:pre", "bundle": {}}"#,
        r#"{"event": "tool:pre", "workspace": 7}"#,
        r#"{"event": "tool:pre", "more": 1}"#,
        // Valid, but there is no machine.
        r#"{"event": "tool:pre"}"#,
    ] {
        add(&format!("the trial `{body}`"), trial.clone().json(body), 422, "body");
    }
}

/// Methods that a path does not have.
fn of_methods(routes: &[Route], place: &Place, cases: &mut Vec<Case>) {
    let mut paths: Vec<&str> = routes.iter().map(|route| route.path.as_str()).collect();
    paths.dedup();
    for path in paths {
        let here: Vec<&Route> = routes.iter().filter(|route| route.path == path).collect();
        // The parameter of one path may be the name of another, with other methods.
        let filled = here[0].filled();
        let known = |method: &str| routes.iter().any(|route| route.filled() == filled && route.method == method);
        for method in METHODS.into_iter().filter(|method| !known(method)) {
            let asked = Asked::new(method, &filled).with("Authorization", &place.bearer(Role::Admin));
            cases.push(Case {
                why: "the method is not there".to_owned(),
                asked: asked.clone(),
                status: 405,
                code: "method",
            });
            // Authentication makes no difference.
            let unknown = asked.set("Authorization", None);
            cases.push(Case {
                why: "the method is not there, for strangers".to_owned(),
                asked: unknown,
                status: 405,
                code: "method",
            });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_request_is_refused_for_what_is_wrong_with_it() {
    let place = Place::new().await;
    let browsers: Vec<(Role, Browser)> = Role::ALL.into_iter().map(|role| (role, place.browser(role))).collect();
    let routes = routes();
    let mut cases = Vec::new();
    for route in &routes {
        let right = match route.role {
            Some(needed) => {
                of_known(route, needed, &place, &browsers, &mut cases);
                route.by_token(&place, Role::Admin)
            }
            None => Asked::new(&route.method, &route.filled()),
        };
        of_any(&right, &place, &mut cases);
    }
    of_methods(&routes, &place, &mut cases);
    of_places(&place, &mut cases);
    check(&place, &cases);
    assert!(cases.len() >= 200, "{} cases are too few", cases.len());
    // No refused request has redeemed a code, or locked a user out.
    let me = place.ask(&Asked::new("GET", "/api/me").by(&browsers[0].1));
    assert_eq!((me.status, me.body.as_str()), (200, r#"{"name":"viewer","role":"viewer"}"#));
}

fn check(place: &Place, cases: &[Case]) {
    let mut wrong = Vec::new();
    for Case { why, asked, status, code } in cases {
        // A request that is refused early may be reset, and the response lost: then it is repeated.
        let reply = (0..5).map(|_| place.ask(asked)).find(|reply| reply.status != 0);
        let reply = reply.unwrap_or_else(|| panic!("{} {}: {why}: no answer", asked.method, asked.path));
        reply.check_protected();
        if reply.status != *status || reply.code() != *code {
            let found = (reply.status, &reply.body);
            wrong.push(format!("{} {}: {why}: not {status} {code}, but {found:?}", asked.method, asked.path));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The same requests without the defect, which proves that the matrix is refused for the right reasons.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_those_in_who_may_enter() {
    let place = Place::new().await;
    for route in routes() {
        // This route signs the browser out, whose cookie the others need; another test covers it.
        if route.path == "/api/leave" {
            continue;
        }
        // Nobody is let in without a link. Its page has a policy of its own, which `answer_link.rs` checks.
        if route.path == "/answer" {
            continue;
        }
        let Some(needed) = route.role else {
            let reply = place.ask(&Asked::new(&route.method, &route.filled()));
            check_let_in(&route, "anybody", &reply, &["/enter", "/proof"]);
            continue;
        };
        for role in Role::ALL.into_iter().filter(|role| *role >= needed) {
            let reply = place.ask(&route.by_token(&place, role));
            check_let_in(&route, &format!("a token of a {role}"), &reply, &[]);
            let reply = place.ask(&route.by_cookie(&place, &place.browser(role)));
            check_let_in(&route, &format!("a cookie of a {role}"), &reply, &[]);
            let with_origin = route.by_token(&place, role).with("Origin", &place.origin());
            check_let_in(&route, "a token with the right origin", &place.ask(&with_origin), &[]);
            if route.path == "/api/stream" {
                let lines = place.ask(&route.by_token(&place, role));
                assert_eq!((lines.status, lines.header("content-type")), (200, Some("application/x-ndjson")));
                let browser = place.browser(role);
                let by_cookie = route.by_cookie(&place, &browser).with("Origin", &place.origin());
                let as_protocol = format!("amplifier, key.{}", browser.key);
                let as_protocol = by_cookie.clone().set(KEY, None).with("Sec-WebSocket-Protocol", &as_protocol);
                let opened = place.ask(&upgrade(as_protocol.clone()));
                assert_eq!(opened.header("sec-websocket-protocol"), Some("amplifier"), "the key is not said back");
                for asked in [route.by_token(&place, role), by_cookie, as_protocol] {
                    let opened = place.ask(&upgrade(asked));
                    assert_eq!(opened.status, 101, "{opened:?}");
                    opened.check_protected();
                }
            }
        }
    }
}

/// The same request, for a WebSocket.
fn upgrade(asked: Asked) -> Asked {
    let asked = asked.with("Connection", "Upgrade").with("Upgrade", "websocket");
    asked.with("Sec-WebSocket-Version", "13").with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

/// The request passed the guards. The route may still refuse an empty body or an unknown number.
fn check_let_in(route: &Route, who: &str, reply: &super::place::Reply, except: &[&str]) {
    let refused = [401, 403, 405, 408, 413, 415, 421, 429, 500];
    let is_exception = except.contains(&route.path.as_str());
    assert!(
        is_exception || (reply.status > 0 && !refused.contains(&reply.status)),
        "{} {} for {who}: {reply:?}",
        route.method,
        route.path
    );
    reply.check_protected();
}

/// Waits until a request is closed.
async fn closed(hub: &Hub, id: &ApprovalId) {
    let mut changes = hub.subscribe();
    while hub.decision(id).is_none() {
        tokio::time::timeout(LIMIT, changes.recv()).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_that_cannot_count_is_refused_and_the_question_stays_open() {
    let place = Place::new().await;
    let hub = &place.hub;
    let (session, _link) = asking(hub, None, "s-1");
    let answer = |id: &dyn std::fmt::Display, body: &Value| {
        let path = format!("/api/approvals/{id}/answer");
        Asked::new("POST", &path).with("Authorization", &place.bearer(Role::Approver)).json(&body.to_string())
    };
    let right = |approval: &OpenApproval| json!({ "option": "Allow once", "nonce": approval.nonce });

    let (open, operation) = asked(hub, &session, Duration::from_secs(600)).await;
    let (answered, first) = asked(hub, &session, Duration::from_secs(600)).await;
    let taken = place.ask(&answer(&answered.id, &right(&answered)));
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(first.await.unwrap().is_proceed());
    let (late, second) = asked(hub, &session, Duration::from_millis(50)).await;
    assert!(!second.await.unwrap().is_proceed());
    closed(hub, &late.id).await;
    let (withdrawn, third) = asked(hub, &session, Duration::from_secs(600)).await;
    third.abort();
    closed(hub, &withdrawn.id).await;

    let mut cases = Vec::new();
    let mut add = |why: String, asked: Asked, status, code| cases.push(Case { why, asked, status, code });
    let with = |field: &str, value: Value| {
        let mut body = right(&open);
        body[field] = value;
        body
    };
    let almost = format!("{}x", open.nonce);
    for nonce in
        ["", "wrong", &open.nonce[1..], &almost, &open.nonce.to_uppercase(), &answered.nonce, &open.digest.to_string()]
    {
        let body = with("nonce", json!(nonce));
        add(format!("the nonce `{nonce}`"), answer(&open.id, &body), 403, "nonce");
    }
    for question in [&answered, &late, &withdrawn] {
        let body = with("nonce", json!("wrong"));
        add("a wrong nonce, and it is over".to_owned(), answer(&question.id, &body), 403, "nonce");
    }
    for option in ["", "Allow", "allow once", "Allow once ", "Allow always", "yes", "*"] {
        let body = with("option", json!(option));
        add(format!("the option `{option}`"), answer(&open.id, &body), 422, "invalid_option");
    }
    for (field, value) in [
        ("nonce", json!(null)),
        ("nonce", json!(7)),
        ("nonce", json!([open.nonce])),
        ("option", json!(null)),
        ("option", json!(0)),
        ("option", json!(["Allow once"])),
        ("scope", json!("user")),
        ("scope", json!("session")),
        ("scope", json!(null)),
        ("by", json!({ "name": "ada", "via": "terminal" })),
    ] {
        add(format!("`{field}` as {value}"), answer(&open.id, &with(field, value)), 422, "body");
    }
    for field in ["nonce", "option"] {
        let mut body = right(&open);
        body.as_object_mut().unwrap().remove(field);
        add(format!("no {field}"), answer(&open.id, &body), 422, "body");
    }
    let project = with("scope", json!("project"));
    add("a rule for any text".to_owned(), answer(&open.id, &project), 422, "invalid_option");
    for id in [
        "s-1.run.99",
        "s-1.run.0",
        "s-1.run.01",
        "s-1.1",
        "s-1",
        "s-2.run.1",
        "1",
        ".1",
        "s-1.run.-1",
        "S-1.run.1",
        "s-1.run.1%00",
        "%2e%2e",
    ] {
        add("there is no such question".to_owned(), answer(&id, &right(&open)), 404, "not_found");
    }
    for (question, code) in [(&answered, "answered"), (&late, "late"), (&withdrawn, "closed")] {
        for option in ["Allow once", "Deny"] {
            let mut body = right(question);
            body["option"] = json!(option);
            add(format!("{option}, though it is {code}"), answer(&question.id, &body), 409, code);
        }
    }
    let viewer = answer(&open.id, &right(&open)).set("Authorization", Some(&place.bearer(Role::Viewer)));
    add("a token of a viewer".to_owned(), viewer, 403, "role");
    check(&place, &cases);

    // The response names the faster approver.
    let again = place.ask(&answer(&answered.id, &right(&answered)));
    let told: Value = serde_json::from_str(&again.body).unwrap();
    assert_eq!(told["error"]["by"], json!({ "name": "approver", "via": "api" }));
    // None of these requests has answered the open one.
    assert_eq!(hub.pending(), std::slice::from_ref(&open));
    let taken = place.ask(&answer(&open.id, &right(&open)));
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(operation.await.unwrap().is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_answer_sees_no_secrets_and_who_can_sees_what_will_run() {
    let place = Place::new().await;
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (open, _operation) = asked(&place.hub, &session, LIMIT).await;
    for (role, sees) in [(Role::Viewer, false), (Role::Approver, true), (Role::Admin, true)] {
        for path in ["/api/approvals", &format!("/api/approvals/{}", open.id), "/api/stream"] {
            let mut stream = TcpStream::connect(place.address()).unwrap();
            let (host, bearer) = (place.address(), place.bearer(role));
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n\r\n").unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let (mut told, mut piece) = (String::new(), [0; 4096]);
            while !told.contains("https://x.example") {
                let count = stream.read(&mut piece).unwrap();
                assert_ne!(count, 0, "{path} for {role}: {told}");
                told.push_str(&String::from_utf8_lossy(&piece[..count]));
            }
            assert_eq!(told.contains(SECRET), sees, "{path} for {role}: {told}");
            assert_eq!(told.contains("Bearer [redacted kind="), !sees, "{path} for {role}: {told}");
        }
    }
}

#[test]
fn every_route_says_who_may_use_it_and_how_it_refuses() {
    let description = description();
    let described = |operation: &Value, status: &str| {
        let form = &operation["responses"][status]["content"];
        form["application/json"]["schema"]["$ref"] == "#/components/schemas/ErrorResponse"
            || form.get("text/html").is_some()
    };
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name} has no summary");
            assert!(operation["tags"][0].is_string(), "{name} has no tag");
            let role = operation["x-role"].as_str().unwrap();
            assert!(["none", "viewer", "approver", "admin"].contains(&role), "{name} is not in the table of roles");
            let successes = operation["responses"].as_object().unwrap().keys().filter(|status| status.as_str() < "400");
            assert!(successes.count() > 0, "{name} does not say what comes of it");
            let mut failures = vec!["403", "421"];
            if operation["x-role"] != "none" {
                failures.extend(["401", "429"]);
            }
            if operation.get("requestBody").is_some() {
                failures.extend(["413", "415", "422"]);
            }
            for status in failures {
                assert!(described(operation, status), "{name} does not describe {status}");
            }
        }
    }
    // Every referenced schema exists.
    let text = description.to_string();
    for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(description["components"]["schemas"].get(name).is_some(), "the form {name} is not described");
    }
}

#[test]
fn the_description_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/openapi.json");
    let mut description = description();
    // The order of object keys depends on the crates of a build.
    description.sort_all_objects();
    let text = format!("{description:#}\n");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "write it anew: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date");
}
