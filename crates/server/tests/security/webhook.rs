//! The exact messages to ntfy, Slack and Telegram, in the form that each documents.

use std::time::Duration;

use amplifier_server::access::AccessOptions;
use amplifier_server::{NotifyError, ServeError, ServerOptions, Webhook, WebhookService};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::place::{Place, generous};
use super::receiver::{Received, Receiver};
use crate::common::{SECRET, asked, asking};

/// Lets a session request an approval, and returns the message and the place.
async fn message(service: WebhookService, path: &str, change: impl FnOnce(&mut Webhook)) -> (Received, Place) {
    let receiver = Receiver::start();
    let mut webhook = receiver.webhook(service, path);
    change(&mut webhook);
    let place = Place::with(generous(), |options| options.webhooks = vec![webhook]).await;
    let (session, link) = asking(&place.hub, None, "s-1");
    let (_open, operation) = asked(&place.hub, &session, Duration::from_secs(600)).await;
    let received = receiver.next();
    operation.abort();
    drop(link);
    assert!(!received.text().contains(SECRET), "{received:?}");
    (received, place)
}

fn links(text: &str, place: &Place) -> Vec<String> {
    let start = format!("{}/answer?code=", place.running.url);
    let rest = text.split(&start).skip(1);
    rest.map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ntfy_gets_text_with_title_priority_tags_and_click_in_headers() {
    let (received, place) = message(WebhookService::Ntfy, "/agents-7f3a", |webhook| {
        webhook.headers.insert("Authorization".to_owned(), "Bearer tk_1".to_owned());
    })
    .await;
    assert_eq!(received.line, "POST /agents-7f3a");
    let header = |name: &str| received.header(name).unwrap_or_default();
    assert_eq!(header("title"), "Approval request from guard");
    assert_eq!((header("priority"), header("tags"), header("authorization")), ("high", "lock", "Bearer tk_1"));
    assert_eq!(links(header("click"), &place)[0].len(), 43);
    assert_eq!(received.text(), "Run it *?\nBash in s-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_gets_text_and_does_not_fetch_the_link() {
    let (received, place) = message(WebhookService::Slack, "/services/T0/B0/x", |_| ()).await;
    assert_eq!(received.line, "POST /services/T0/B0/x");
    let body = received.json();
    let [code] = &links(&body["text"].to_string(), &place)[..] else { panic!("{body}") };
    let link = format!("{}/answer?code={code}", place.running.url);
    let text = format!("*Approval request from guard*\nRun it *?\nBash in s-1\n<{link}|Review and answer>");
    assert_eq!(body, json!({ "text": text, "unfurl_links": false, "unfurl_media": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_gets_send_message_without_a_preview_of_the_link() {
    let (received, place) = message(WebhookService::Telegram, "/bot12:ab/sendMessage", |webhook| {
        webhook.chat = Some("-100123".to_owned());
    })
    .await;
    assert_eq!(received.line, "POST /bot12:ab/sendMessage");
    let body = received.json();
    let [code] = &links(&body["text"].to_string(), &place)[..] else { panic!("{body}") };
    let link = format!("{}/answer?code={code}", place.running.url);
    let text = format!("Approval request from guard\nRun it *?\nBash in s-1\n\nReview and answer: {link}");
    let options = json!({ "is_disabled": true });
    assert_eq!(body, json!({ "chat_id": "-100123", "text": text, "link_preview_options": options }));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_get_the_fields_as_json() {
    let (received, place) = message(WebhookService::Json, "/hook", |_| ()).await;
    let mut body = received.json();
    assert_eq!(links(&body["link"].to_string(), &place).len(), 1);
    assert!(body["deadline"].is_string());
    for field in ["link", "deadline"] {
        body[field] = Value::Null;
    }
    let expected = json!({
        "event": "approval_requested", "id": "s-1.run.1", "session": "s-1", "hook": "guard", "tool": "Bash",
        "summary": "Run it *?", "deadline": null, "link": null,
    });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_ascii_are_encoded_in_headers() {
    let receiver = Receiver::start();
    let place = Place::with(generous(), |options| {
        options.webhooks = vec![receiver.webhook(WebhookService::Ntfy, "/topic")];
    })
    .await;
    let mut pretender = super::answer_link::Pretender::connect(&place, "s-1").await;
    pretender.request(1, "wächter=?x", "Löschen?").await;
    let received = receiver.next();
    let title = received.header("title").unwrap();
    let encoded = title.strip_prefix("=?UTF-8?B?").and_then(|title| title.strip_suffix("?=")).unwrap();
    let decoded = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    assert_eq!(decoded, "Approval request from wächter=?x");
    assert!(received.text().starts_with("Löschen?\n"), "{received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_not_sent_where_others_on_the_network_could_read_it() {
    let receiver = Receiver::start();
    let place = Place::with(generous(), |options| {
        options.hosts = vec!["box.example".to_owned()];
        options.webhooks = vec![receiver.webhook(WebhookService::Json, "/hook")];
    })
    .await;
    let (session, _link) = asking(&place.hub, None, "s-1");
    let (_open, operation) = asked(&place.hub, &session, Duration::from_secs(600)).await;
    assert_eq!(receiver.next().json()["link"], Value::Null);
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_requests_is_not_a_flood_of_notifications() {
    let receiver = Receiver::start();
    let place = Place::with(generous(), |options| {
        options.webhooks = vec![receiver.webhook(WebhookService::Json, "/hook")];
    })
    .await;
    let mut pretender = super::answer_link::Pretender::connect(&place, "s-1").await;
    for number in 1..=200 {
        pretender.request(number, "guard", "Run it?").await;
    }
    crate::common::until("200 requests", || (place.hub.pending().len() == 200).then_some(()));
    for _ in 0..10 {
        receiver.next();
    }
    // Slow machines allow a few more; every six seconds, one is.
    let more = std::iter::from_fn(|| (!receiver.is_empty()).then_some(())).count();
    assert!(more < 20, "{more}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_cannot_work_stops_the_server_with_an_error_without_its_secrets() {
    let right = Webhook {
        service: WebhookService::Ntfy,
        url: "https://ntfy.example/secret-topic".to_owned(),
        name: "ada".to_owned(),
        chat: None,
        headers: Default::default(),
    };
    type Change = fn(&mut Webhook);
    let cases: [(&str, Change); 6] = [
        ("must begin with `https:`", |webhook| webhook.url = "http://ntfy.example/secret-topic".to_owned()),
        ("invalid URL", |webhook| webhook.url = "secret-topic".to_owned()),
        ("invalid name", |webhook| webhook.name = "<b>".to_owned()),
        ("`chat` belongs to the service `telegram`", |webhook| webhook.chat = Some("1".to_owned())),
        ("`chat` belongs to the service `telegram`", |webhook| webhook.service = WebhookService::Telegram),
        ("invalid value of the header `x-key`", |webhook| {
            webhook.headers.insert("x-key".to_owned(), "secret-topic\n".to_owned());
        }),
    ];
    for (problem, change) in cases {
        let mut webhook = right.clone();
        change(&mut webhook);
        let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        options.webhooks = vec![webhook.clone()];
        let folder = tempfile::tempdir().unwrap();
        let refused = Place::server(folder.path(), AccessOptions::default(), options).await.unwrap_err();
        assert!(matches!(&refused, ServeError::Notify(NotifyError::Webhook { .. })), "{refused:?}");
        let text = format!("{refused} {refused:?} {webhook:?}");
        assert!(text.contains(problem) && !text.contains("secret-topic"), "{problem}: {text}");
    }
}
