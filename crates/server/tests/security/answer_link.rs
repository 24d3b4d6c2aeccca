//! Links that answer one approval request: one answer, for what the page showed, and nothing by following the link.

use std::time::Duration;

use amplifier_core::{Actor, Rate, Verdict};
use amplifier_link::{ApprovalId, OpenApproval};
use amplifier_server::WebhookService;
use amplifier_server::access::{AccessOptions, Role};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use super::place::{Asked, Place, Reply, generous};
use super::receiver::Receiver;
use crate::common::{SECRET, asked, asking, until};

/// A server whose notifications arrive here.
struct Scene {
    place: Place,
    receiver: Receiver,
}

impl Scene {
    async fn new() -> Self {
        Self::with(generous()).await
    }

    async fn with(access: AccessOptions) -> Self {
        let receiver = Receiver::start();
        let webhook = receiver.webhook(WebhookService::Json, "/hook");
        Self { place: Place::with(access, |options| options.webhooks = vec![webhook]).await, receiver }
    }

    /// The secret of the link in the next notification.
    fn code(&self) -> String {
        let link = self.receiver.next().json()["link"].as_str().unwrap().to_owned();
        link.strip_prefix(&format!("{}/answer?code=", self.place.running.url)).unwrap().to_owned()
    }

    fn page(&self, code: &str) -> Reply {
        self.place.get(&format!("/answer?code={code}"))
    }

    /// Sends a form as a browser does from the page, which has no referrer.
    fn post(&self, fields: &[(&str, &str)]) -> Reply {
        self.place.ask(&form(fields).with("Origin", "null").with("Sec-Fetch-Site", "same-origin"))
    }

    fn answer(&self, code: &str, answer: &str) -> Reply {
        let page = self.page(code);
        assert_eq!(page.status, 200, "{page:?}");
        self.post(&[
            ("code", code),
            ("nonce", &hidden(&page, "nonce")),
            ("digest", &hidden(&page, "digest")),
            ("answer", answer),
        ])
    }
}

fn form(fields: &[(&str, &str)]) -> Asked {
    let encode = |text: &str| {
        let one =
            |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(one).collect::<String>()
    };
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let mut asked = Asked::new("POST", "/answer").with("Content-Type", "application/x-www-form-urlencoded");
    asked.body = Some(body.join("&"));
    asked
}

/// The value of a hidden field.
fn hidden(page: &Reply, name: &str) -> String {
    let (_, rest) = page.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Checks the headers that keep the secret of the link from others.
fn check_kept_secret(page: &Reply) {
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("x-robots-tag"), Some("noindex, nofollow, noarchive"));
    assert_eq!(
        page.header("content-security-policy"),
        Some("default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(!page.body.contains("<script") && !page.body.contains("javascript:"), "{page:?}");
}

async fn request(scene: &Scene, time: Duration) -> (OpenApproval, JoinHandle<Verdict>, impl Drop) {
    let (session, link) = asking(&scene.place.hub, None, "s-1");
    let (open, operation) = asked(&scene.place.hub, &session, time).await;
    (open, operation, Connected(Some(Box::new((session, link)))))
}

/// Keeps a session connected until it is dropped.
struct Connected(Option<Box<dyn std::any::Any>>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.take();
    }
}

fn decided_by(scene: &Scene, id: &ApprovalId) -> Option<Actor> {
    until("the decision", || scene.place.hub.decision(id)).by.clone()
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn a_link_shows_the_operation_and_then_takes_one_answer() {
    let scene = Scene::new().await;
    let (open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let page = scene.page(&code);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    check_kept_secret(&page);
    let command = format!("curl -H &#39;Authorization: Bearer {SECRET}&#39; https://x.example").replace("&#39;", "'");
    let at = |text: &str| page.body.find(text).unwrap_or_else(|| panic!("{text} in {}", page.body));
    for part in [&command, "guard", "s-1", "Run it *?", &open.digest.to_string(), "Deadline", "tool:pre"] {
        assert!(at(part) < at("value=\"allow_once\""), "{part} is shown before the answer");
    }
    at("recorded as <strong>grace</strong>, by link");

    let done = scene.answer(&code, "allow_once");
    check_kept_secret(&done);
    assert!(done.status == 200 && done.body.contains("<h1>Allowed once</h1>"), "{done:?}");
    assert!(operation.await.unwrap().is_proceed());
    assert_eq!(decided_by(&scene, &open.id), Some(Actor::new("grace", "link")));
    // The link is used.
    assert_eq!(scene.page(&code).status, 403);
    let (nonce, digest) = (open.nonce.as_str(), open.digest.to_string());
    let replayed = scene.post(&[("code", &code), ("nonce", nonce), ("digest", &digest), ("answer", "deny")]);
    assert_eq!(replayed.status, 403);
    check_kept_secret(&replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_link_has_no_effect_however_often_and_by_whom() {
    let scene = Scene::new().await;
    let (open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let path = format!("/answer?code={code}");
    for agent in ["Slackbot-LinkExpanding 1.0", "TelegramBot (like TwitterBot)", "ntfy/2"] {
        for method in ["GET", "HEAD"] {
            assert_eq!(scene.place.ask(&Asked::new(method, &path).with("User-Agent", agent)).status, 200);
        }
        let guessed = format!("{path}&answer=allow_once&nonce={}&digest={}", open.nonce, open.digest);
        assert_eq!(scene.place.get(&guessed).status, 200);
    }
    assert_eq!(scene.place.hub.pending(), std::slice::from_ref(&open));
    assert_eq!(scene.answer(&code, "allow_once").status, 200);
    assert!(operation.await.unwrap().is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_by_link_gives_the_model_its_reason() {
    let scene = Scene::new().await;
    let (open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let (nonce, digest) = (open.nonce.as_str(), open.digest.to_string());
    let fields = [("code", code.as_str()), ("nonce", nonce), ("digest", &digest), ("answer", "deny")];
    let done = scene.post(&[fields.as_slice(), &[("reason", "use the mirror & not this host")]].concat());
    assert!(done.body.contains("<h1>Denied</h1>"), "{done:?}");
    let Verdict::Denied { reason, .. } = operation.await.unwrap() else { panic!("it is denied") };
    assert!(reason.contains("use the mirror & not this host"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_does_not_fit_the_link_changes_nothing() {
    let scene = Scene::new().await;
    let (session, _link) = asking(&scene.place.hub, None, "s-1");
    let (open, operation) = asked(&scene.place.hub, &session, LONG).await;
    let code = scene.code();
    let (other, second) = asked(&scene.place.hub, &session, Duration::from_secs(500)).await;
    let other_code = scene.code();
    assert_ne!(open.digest, other.digest);
    let (digest, other_digest) = (open.digest.to_string(), other.digest.to_string());
    let almost = format!("{code}x");
    let right: [(&str, &str); 4] =
        [("code", &code), ("nonce", &open.nonce), ("digest", &digest), ("answer", "allow_once")];
    let with = |name: &str, value: &str| {
        let fields =
            right.map(|(known, right)| (known, if known == name { value.to_owned() } else { right.to_owned() }));
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        scene.post(&fields).status
    };
    for (name, value, status) in [
        ("code", "", 403),
        ("code", "wrong", 403),
        ("code", &code[1..], 403),
        ("code", &almost, 403),
        ("code", &open.nonce, 403),
        ("code", &scene.place.tokens[&Role::Admin], 403),
        // The link of another request.
        ("code", &other_code, 409),
        ("nonce", "", 409),
        ("nonce", "wrong", 409),
        ("nonce", &other.nonce, 409),
        ("digest", "", 409),
        ("digest", &other_digest, 409),
        ("answer", "allow_always", 422),
        ("answer", "deny_always", 422),
        ("answer", "Allow once", 422),
        ("answer", "", 422),
    ] {
        assert_eq!(with(name, value), status, "{name}={value}");
    }
    for missing in ["code", "nonce", "digest", "answer"] {
        let fields: Vec<_> = right.into_iter().filter(|(name, _)| *name != missing).collect();
        assert_eq!(scene.post(&fields).status, 422, "no {missing}");
    }
    assert_eq!(scene.post(&[right.as_slice(), &[("scope", "project")]].concat()).status, 422);
    assert_eq!(scene.place.ask(&form(&right).json("{}")).status, 415);
    assert_eq!(scene.place.hub.pending().len(), 2);
    // None of these has used a link.
    assert_eq!(scene.answer(&code, "allow_once").status, 200);
    assert!(operation.await.unwrap().is_proceed());
    assert_eq!(scene.answer(&other_code, "deny").status, 200);
    assert!(!second.await.unwrap().is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_page_of_the_link_can_send_the_form() {
    let scene = Scene::new().await;
    let (open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let digest = open.digest.to_string();
    let right = form(&[("code", &code), ("nonce", &open.nonce), ("digest", &digest), ("answer", "allow_once")]);
    let cookie = scene.place.browser(Role::Admin).cookie;
    for (origin, site) in [
        ("http://evil.example", None),
        ("http://evil.example", Some("cross-site")),
        ("null", None),
        ("null", Some("none")),
        ("null", Some("same-site")),
        ("null", Some("cross-site")),
    ] {
        for by_cookie in [false, true] {
            let asked = right.clone().with("Origin", origin);
            let asked = site.into_iter().fold(asked, |asked, site| asked.with("Sec-Fetch-Site", site));
            let asked = if by_cookie { asked.with("Cookie", &cookie) } else { asked };
            let refused = scene.place.ask(&asked);
            assert_eq!((refused.status, refused.code().as_str()), (403, "origin"), "{origin} {site:?}");
        }
    }
    // A signed-in browser may follow the link from a page on another port, and send the form.
    let path = format!("/answer?code={code}");
    let followed = Asked::new("GET", &path).with("Cookie", &cookie).with("Sec-Fetch-Site", "same-site");
    assert_eq!(scene.place.ask(&followed).status, 200);
    let sent = right.with("Cookie", &cookie).with("Origin", "null").with("Sec-Fetch-Site", "same-origin");
    assert_eq!(scene.place.ask(&sent).status, 200);
    assert!(operation.await.unwrap().is_proceed());
    assert_eq!(decided_by(&scene, &open.id), Some(Actor::new("grace", "link")), "the cookie does not matter");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_with_its_request() {
    let scene = Scene::new().await;
    let (session, _link) = asking(&scene.place.hub, None, "s-1");
    let check_ended = |open: &OpenApproval, code: &str| {
        assert_eq!(scene.page(code).status, 403);
        let digest = open.digest.to_string();
        let sent = scene.post(&[("code", code), ("nonce", &open.nonce), ("digest", &digest), ("answer", "allow_once")]);
        assert!([403, 409].contains(&sent.status), "{sent:?}");
    };
    // Expired.
    let (late, operation) = asked(&scene.place.hub, &session, Duration::from_millis(300)).await;
    let code = scene.code();
    assert!(!operation.await.unwrap().is_proceed());
    until("the end", || scene.place.hub.decision(&late.id));
    check_ended(&late, &code);
    // Answered elsewhere.
    let (answered, operation) = asked(&scene.place.hub, &session, LONG).await;
    let code = scene.code();
    let path = format!("/api/approvals/{}/answer", answered.id);
    let body = json!({ "option": "Deny", "nonce": answered.nonce }).to_string();
    let bearer = scene.place.bearer(Role::Approver);
    assert_eq!(scene.place.ask(&Asked::new("POST", &path).with("Authorization", &bearer).json(&body)).status, 200);
    assert!(!operation.await.unwrap().is_proceed());
    check_ended(&answered, &code);
    assert_eq!(decided_by(&scene, &answered.id), Some(Actor::new("approver", "api")));
    // Cancelled.
    let (withdrawn, operation) = asked(&scene.place.hub, &session, LONG).await;
    let code = scene.code();
    operation.abort();
    until("the end", || scene.place.hub.decision(&withdrawn.id));
    check_ended(&withdrawn, &code);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_reconnects_keeps_the_link_of_its_request_and_of_no_other() {
    let scene = Scene::new().await;
    let mut session = Pretender::connect(&scene.place, "s-1").await;
    session.request(1, "guard", "Run it?").await;
    let code = scene.code();
    assert_eq!(scene.page(&code).status, 200);
    drop(session);
    until("the session is gone", || scene.place.hub.session("s-1").is_none().then_some(()));
    assert_eq!(scene.page(&code).status, 403);
    let mut session = Pretender::connect(&scene.place, "s-1").await;
    session.request(1, "guard", "Run it?").await;
    until("the request", || (!scene.place.hub.pending().is_empty()).then_some(()));
    assert_eq!(scene.page(&code).status, 200);
    assert!(scene.receiver.is_empty(), "the same request is not announced twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_links_of_a_person_end_when_their_access_is_revoked() {
    let scene = Scene::new().await;
    let (_open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let admin = scene.place.bearer(Role::Admin);
    let revoke = Asked::new("DELETE", "/api/browsers/grace").with("Authorization", &admin).json("{}");
    assert_eq!(scene.place.ask(&revoke).status, 200);
    assert_eq!(scene.page(&code).status, 403);
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_and_repeated_requests_are_limited() {
    let few = Rate { burst: 3, every: Duration::from_secs(3600) };
    let scene = Scene::with(AccessOptions { failures: few, ..generous() }).await;
    let guesses: Vec<u16> = (0..4).map(|_| scene.page("wrong").status).collect();
    assert_eq!(guesses, [403, 403, 403, 429]);
    let posted = scene.post(&[("code", "wrong"), ("nonce", ""), ("digest", ""), ("answer", "deny")]);
    assert_eq!((posted.status, posted.header("retry-after").is_some()), (429, true));

    let scene = Scene::with(AccessOptions { failures: few, ..generous() }).await;
    let (_open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    assert_eq!(scene.answer(&code, "deny").status, 200);
    assert!(!operation.await.unwrap().is_proceed());
    let again: Vec<u16> = (0..4).map(|_| scene.page(&code).status).collect();
    let pressed = scene.post(&[("code", &code), ("nonce", ""), ("digest", ""), ("answer", "deny")]).status;
    assert_eq!((again, pressed), (vec![403; 4], 403), "a used link is no guess");
    assert_eq!(scene.page("wrong").status, 403, "and leaves all guesses");

    let scene = Scene::with(AccessOptions { requests: few, ..generous() }).await;
    let (_open, operation, _session) = request(&scene, LONG).await;
    let code = scene.code();
    let pages: Vec<u16> = (0..4).map(|_| scene.page(&code).status).collect();
    assert_eq!(pages, [200, 200, 200, 429]);
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn deceptive_text_is_marked_and_never_becomes_part_of_the_page() {
    let scene = Scene::new().await;
    let mut session = Pretender::connect(&scene.place, "s-1").await;
    session.request(1, "<b>guard</b>", "</h2><form action=//evil.example> \u{202e}\u{1b}[2K").await;
    let page = scene.page(&scene.code());
    for part in ["&lt;b&gt;guard&lt;/b&gt;", "&lt;/h2&gt;&lt;form action=", "<mark>\\u{202e}</mark>", "<mark>␛</mark>"]
    {
        assert!(page.body.contains(part), "{part} in {}", page.body);
    }
    assert!(!page.body.contains("<b>") && !page.body.contains('\u{202e}') && page.body.matches("<form").count() == 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_lasts_is_not_offered() {
    let scene = Scene::new().await;
    let mut session = Pretender::connect(&scene.place, "s-1").await;
    session.options =
        json!([{ "label": "Allow always", "effect": "allow_always" }, { "label": "Deny", "effect": "deny" }]);
    session.request(1, "guard", "Run it?").await;
    let code = scene.code();
    let page = scene.page(&code);
    assert!(!page.body.contains("allow_once") && page.body.contains("This request cannot be allowed once"), "{page:?}");
    assert_eq!(scene.answer(&code, "allow_once").status, 409);
}

/// A session that sends any approval request.
pub(crate) struct Pretender {
    stream: DuplexStream,
    session: String,
    options: Value,
}

impl Pretender {
    pub(crate) async fn connect(place: &Place, session: &str) -> Self {
        let stream = place.hub.pipes().open();
        let options = json!([{ "label": "Allow once", "effect": "allow_once" }, { "label": "Deny", "effect": "deny" }]);
        let mut pretender = Self { stream, session: session.to_owned(), options };
        let now = jiff::Timestamp::now();
        pretender
            .say(&json!({
                "type": "hello", "version": 4, "session": session, "run": "run", "name": null, "pid": 1,
                "workspace": "/", "takes_prompts": false, "idle": false, "started_at": now,
            }))
            .await;
        until("the session", || place.hub.session(session));
        pretender
    }

    pub(crate) async fn request(&mut self, number: u64, hook: &str, prompt: &str) {
        // The same request has the same times.
        let at = jiff::Timestamp::now().as_second() / 3600 * 3600;
        let at = jiff::Timestamp::from_second(at).unwrap();
        let approval = json!({
            "id": format!("{}.run.{number}", self.session), "number": number, "session": self.session, "workspace": "/",
            "hook": hook, "event": "tool:pre", "prompt": prompt, "options": self.options, "created_at": at,
            "deadline": at + jiff::SignedDuration::from_hours(9), "timeout_s": 32400, "default": "deny",
            "digest": format!("{number:064x}"), "preview": { "title": "Bash", "warnings": [], "body": [], "fields": [] },
        });
        self.say(&json!({ "type": "approval_requested", "approval": approval })).await;
    }

    async fn say(&mut self, message: &Value) {
        self.stream.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}
