//! Tokens, codes and cookies.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use amplifier_server::access::{Access, AccessOptions, Role, TokenFiles};
use amplifier_server::client::{Address, Client};
use amplifier_server::{ServeError, ServerOptions};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::place::{Asked, Browser, Place, Reply, generous};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_for_the_person_alone_and_those_of_others_are_not_kept() {
    let place = Place::new().await;
    place.browser(Role::Viewer);
    let folder = place.folder.path().join("server");
    assert_eq!(mode(&folder), 0o700);
    for file in ["token", "tokens.json", "cookies.json", "address"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    let token = fs::read_to_string(folder.join("token")).unwrap();
    assert_eq!(token.trim().len(), 43, "256 bits");
    let kept = fs::read_to_string(folder.join("tokens.json")).unwrap();
    assert!(!kept.contains(&place.tokens[&Role::Viewer]), "{kept}");
}

#[test]
fn secrets_that_others_can_read_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let files = TokenFiles::at(folder.path()).unwrap();
    let first = files.admin().unwrap();
    assert_eq!(files.admin().unwrap(), first);
    files.add("bob", Role::Viewer).unwrap();
    let access = Access::open(folder.path(), AccessOptions::default()).unwrap();
    drop(access);
    fs::write(folder.path().join("cookies.json"), "[]").unwrap();
    fs::set_permissions(folder.path().join("cookies.json"), fs::Permissions::from_mode(0o600)).unwrap();
    Access::open(folder.path(), AccessOptions::default()).unwrap();
    for file in ["token", "tokens.json", "cookies.json"] {
        let file = folder.path().join(file);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Access::open(folder.path(), AccessOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("other users can read `"), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::write(folder.path().join("token"), "short").unwrap();
    let error = Access::open(folder.path(), AccessOptions::default()).unwrap_err().to_string();
    assert!(error.contains("invalid token in"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_from_when_it_is_made_until_it_is_taken_back() {
    let place = Place::new().await;
    let files = TokenFiles::at(place.folder.path().join("server")).unwrap();
    let token = files.add("bob", Role::Approver).unwrap();
    let me = || place.ask(&Asked::new("GET", "/api/me").with("Authorization", &format!("Bearer {token}")));
    assert_eq!(me().body, r#"{"name":"bob","role":"approver"}"#);
    assert!(files.add("bob", Role::Admin).unwrap_err().to_string().contains("already"));
    files.revoke("bob").unwrap();
    assert_eq!(me().status, 401);
    assert!(files.revoke("bob").unwrap_err().to_string().contains("unknown token `bob`"));
    // An unreadable file accepts no token except the owner's.
    let again = files.add("bob", Role::Approver).unwrap();
    fs::write(place.folder.path().join("server/tokens.json"), "[").unwrap();
    let me = |token: &str| place.ask(&Asked::new("GET", "/api/me").with("Authorization", token)).status;
    assert_eq!((me(&format!("Bearer {again}")), me(&place.bearer(Role::Admin))), (401, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_lets_one_browser_in_once() {
    let place = Place::new().await;
    let link = place.running.link("bob", Role::Approver).unwrap();
    let path = link.strip_prefix(&place.running.url).unwrap();
    // A HEAD request does not redeem the code.
    assert_eq!(place.ask(&Asked::new("HEAD", path)).status, 405);
    let entered = place.get(path);
    entered.check_protected();
    assert_eq!((entered.status, entered.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let cookie = entered.header("set-cookie").unwrap();
    let name = format!("amplifier_{}=", place.address().port());
    assert!(cookie.starts_with(&name) && cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let (_, key) = entered.body.split_once("name=\"amplifier-key\" content=\"").unwrap();
    let (cookie, key) = (cookie.split(';').next().unwrap().to_owned(), key.split('"').next().unwrap().to_owned());
    assert_eq!(key.len(), 43, "256 bits");
    let me = place.ask(&Asked::new("GET", "/api/me").by(&Browser { cookie, key }));
    assert_eq!(me.body, r#"{"name":"bob","role":"approver"}"#);
    let again = place.get(path);
    again.check_protected();
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    assert_eq!(again.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(again.body.contains("amplifier serve link"), "{}", again.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_are_none_let_nobody_in() {
    let place = Place::with(AccessOptions { code_lifetime: std::time::Duration::ZERO, ..generous() }, |_| ()).await;
    let old = place.running.link("bob", Role::Viewer).unwrap();
    let old = old.strip_prefix(&place.running.url).unwrap();
    for path in [
        "/enter",
        "/enter?code=",
        "/enter?code=wrong",
        "/enter?other=1",
        &format!("/enter?code={}", place.tokens[&Role::Admin]),
        old,
    ] {
        let reply = place.get(path);
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None), "{path}");
        assert!(reply.body.contains("This link is used or expired"), "{path}");
    }
    let twice = place.get("/enter?code=a&code=b");
    assert_eq!((twice.status, twice.code().as_str()), (400, "query"));
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_ends_the_cookie() {
    let place = Place::new().await;
    let browser = place.browser(Role::Viewer);
    let leave = Asked::new("POST", "/api/leave").by(&browser).with("Origin", &place.origin());
    let left = place.ask(&leave);
    assert_eq!(left.status, 204);
    assert!(left.header("set-cookie").unwrap().ends_with("; Path=/; Max-Age=0"), "{left:?}");
    assert_eq!(place.ask(&Asked::new("GET", "/api/me").by(&browser)).status, 401);
    assert_eq!(place.ask(&leave).status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_over_the_api_has_the_role_that_was_asked_for() {
    let place = Place::new().await;
    let asked = Asked::new("POST", "/api/links").with("Authorization", &place.bearer(Role::Admin));
    let made = place.ask(&asked.json(r#"{"name": "Eve O'Neill", "role": "viewer"}"#));
    assert_eq!(made.status, 201, "{made:?}");
    let link: Value = serde_json::from_str(&made.body).unwrap();
    let me = place.ask(&Asked::new("GET", "/api/me").by(&place.enter(link["url"].as_str().unwrap())));
    assert_eq!(me.body, r#"{"name":"Eve O'Neill","role":"viewer"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_stay_in_when_the_server_starts_anew_and_links_do_not() {
    let place = Place::new().await;
    let address = place.address();
    let browser = place.browser(Role::Approver);
    let link = place.running.link("bob", Role::Viewer).unwrap();
    let Place { running, folder, .. } = place;
    running.stop().await;
    let place = Place::start(folder, generous(), ServerOptions::new(address)).await.unwrap();
    let me = place.ask(&Asked::new("GET", "/api/me").by(&browser));
    assert_eq!(me.body, r#"{"name":"approver","role":"approver"}"#);
    assert_eq!(place.get(link.strip_prefix(&place.running.url).unwrap()).status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_commands_find_the_server_while_it_runs() {
    let place = Place::new().await;
    let folder = place.folder.path().join("server");
    let client = Client::find(&folder).unwrap();
    let Address { url, owner, .. } = client.address();
    assert_eq!((url, owner.as_str()), (&place.running.url, "ada"));
    let link = client.link("bob", Role::Viewer).await.unwrap();
    place.enter(&link.url);
    let refused = client.link("", Role::Viewer).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "the server returned an error: invalid name; expected 1 to 64 characters: letters, digits, spaces and `.` `_` `-` `@` `+` `'`"
    );
    let Place { running, folder: _temporary, .. } = place;
    running.stop().await;
    let gone = Client::find(&folder).unwrap_err().to_string();
    assert_eq!(gone, "no server is running; start one with `amplifier serve`");
    // After a crash, the file remains and another user's program may take the port: no client connects to it.
    fs::write(folder.join("address"), r#"{"url":"http://127.0.0.1:1","reach":"127.0.0.1:1","owner":"ada","pid":1}"#)
        .unwrap();
    assert!(Address::find(&folder).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_of_the_same_person_does_not_start() {
    let place = Place::new().await;
    let second = Place::server(place.folder.path(), generous(), ServerOptions::new(([127, 0, 0, 1], 0).into())).await;
    assert!(matches!(second, Err(ServeError::Running)), "{second:?}");
}

/// Computes the proof as a page with the key does.
fn proof(key: &str, origin: &str, challenge: &str) -> String {
    let mut block = [0; 64];
    block[..32].copy_from_slice(&Sha256::digest(key));
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(format!("amplifier\n{origin}\n{challenge}").as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_proves_that_it_gave_the_key_to_the_browser_of_the_cookie_and_at_this_address() {
    let place = Place::new().await;
    let (browser, other) = (place.browser(Role::Viewer), place.browser(Role::Admin));
    let challenge = "0123456789abcdef-_ABCDEF";
    let ask = |host: &str, cookie: &str, challenge: &str| -> Reply {
        let asked = Asked::new("GET", &format!("/proof?challenge={challenge}")).with("Host", host);
        place.ask(&asked.with("Cookie", cookie))
    };
    let (here, port) = (place.address().to_string(), place.address().port());
    let told = |reply: Reply| serde_json::from_str::<Value>(&reply.body).unwrap()["proof"].as_str().unwrap().to_owned();
    let right = told(ask(&here, &browser.cookie, challenge));
    assert_eq!(right, proof(&browser.key, &place.origin(), challenge));
    assert_eq!(told(ask(&here, &other.cookie, challenge)), proof(&other.key, &place.origin(), challenge));
    // A proxy at another address gets a proof for its own address only.
    let local = told(ask(&format!("localhost:{port}"), &browser.cookie, challenge));
    assert_eq!(local, proof(&browser.key, &format!("http://localhost:{port}"), challenge));
    for (cookie, challenge, status) in [
        (browser.cookie.as_str(), "short", 422),
        (&browser.cookie, "0123456789abcde%0a", 422),
        (&browser.cookie, &"x".repeat(129), 422),
        (&format!("amplifier_{port}=wrong"), challenge, 401),
        ("other=1", challenge, 401),
    ] {
        let reply = ask(&here, cookie, challenge);
        reply.check_protected();
        assert_eq!(reply.status, status, "{cookie} {challenge}");
    }
    assert_eq!(place.get("/proof").status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_listed_and_ended_by_name() {
    let place = Place::new().await;
    let (viewer, admin) = (place.browser(Role::Viewer), place.browser(Role::Admin));
    let link = place.running.link("viewer", Role::Viewer).unwrap();
    let ask = |method: &str, path: &str| {
        place.ask(&Asked::new(method, path).with("Authorization", &place.bearer(Role::Admin)))
    };
    let listed: Value = serde_json::from_str(&ask("GET", "/api/browsers").body).unwrap();
    let names: Vec<&str> =
        listed["browsers"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["viewer", "admin"]);
    assert_eq!(listed["browsers"][0].as_object().unwrap().len(), 4, "no secrets: {listed}");
    assert_eq!(ask("DELETE", "/api/browsers/viewer").body, r#"{"ended":1}"#);
    assert_eq!(ask("DELETE", "/api/browsers/viewer").body, r#"{"ended":0}"#);
    let me = |browser: &Browser| place.ask(&Asked::new("GET", "/api/me").by(browser)).status;
    assert_eq!((me(&viewer), me(&admin)), (401, 200));
    assert_eq!(place.get(link.strip_prefix(&place.running.url).unwrap()).status, 403);
    // Permanently, also after a restart.
    let Place { running, folder, .. } = place;
    let address = running.address;
    running.stop().await;
    let place = Place::start(folder, generous(), ServerOptions::new(address)).await.unwrap();
    assert_eq!(place.ask(&Asked::new("GET", "/api/me").by(&viewer)).status, 401);
}
