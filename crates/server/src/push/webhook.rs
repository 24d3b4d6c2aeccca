//! Notifications by HTTP: ntfy, Slack, Telegram, or any server that reads JSON.

use std::collections::BTreeMap;
use std::fmt;

use amplifier_core::words;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use serde_json::{Value, json};

use super::client::limited_client;
use super::notice::Notice;
use crate::access::check_name;

words! {
    /// The form of a webhook's messages.
    pub enum WebhookService("service") {
        /// A topic of ntfy: text, with headers.
        Ntfy = "ntfy",
        /// An incoming webhook of Slack.
        Slack = "slack",
        /// `sendMessage` of a Telegram bot.
        Telegram = "telegram",
        /// JSON with the fields of the notification.
        Json = "json",
    }
}

/// A receiver of notifications about approval requests, with one-time links that answer them.
#[derive(Clone)]
pub struct Webhook {
    /// The form of the messages.
    pub service: WebhookService,
    /// The URL, which may contain a secret.
    pub url: String,
    /// The user who receives the links; recorded with the answers.
    pub name: String,
    /// The chat of a Telegram bot.
    pub chat: Option<String>,
    /// Additional headers.
    pub headers: BTreeMap<String, String>,
}

/// Without the URL and the headers, which may contain secrets.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("service", &self.service).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A webhook that was checked.
pub(super) struct WebhookClient {
    pub(super) name: String,
    service: WebhookService,
    url: Url,
    chat: Option<String>,
    headers: HeaderMap,
    client: Client,
}

impl WebhookClient {
    /// Checks a webhook, and creates its client without connecting.
    ///
    /// # Errors
    /// The reason why the webhook is invalid. It contains no part of the URL and of the headers.
    pub(super) fn new(webhook: &Webhook) -> Result<Self, String> {
        let Webhook { service, url, name, chat, headers } = webhook;
        check_name(name).map_err(|error| error.to_string())?;
        if (*service == WebhookService::Telegram) != chat.is_some() {
            return Err("`chat` belongs to the service `telegram`, which needs it".to_owned());
        }
        let url = Url::parse(url).map_err(|error| format!("invalid URL: {error}"))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_local = host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err("the message contains a link that answers, so the URL must begin with `https:`; \
                        `http:` is for this machine only"
                .to_owned());
        }
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::try_from(name).map_err(|_| format!("invalid header name `{name}`"))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| format!("invalid value of the header `{name}`"))?;
            value.set_sensitive(true);
            Ok::<_, String>((name, value))
        });
        let headers = headers.collect::<Result<_, _>>()?;
        // A proxy does not know this machine as `localhost`.
        let client = if is_local { limited_client().no_proxy() } else { limited_client() };
        let client = client.build().map_err(|error| format!("cannot create a client: {error}"))?;
        Ok(Self { name: name.clone(), service: *service, url, chat: chat.clone(), headers, client })
    }

    /// Sends a notification. A failure is logged, without the URL.
    pub(super) async fn send(&self, notice: &Notice, link: Option<&str>) {
        let (headers, body) = match self.service {
            WebhookService::Ntfy => ntfy(notice, link),
            WebhookService::Slack => as_json(&slack(notice, link)),
            WebhookService::Telegram => as_json(&telegram(notice, link, self.chat.as_deref())),
            WebhookService::Json => as_json(&plain(notice, link)),
        };
        let request = self.client.post(self.url.clone()).headers(headers).headers(self.headers.clone()).body(body);
        let service = self.service.as_str();
        match request.send().await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                tracing::warn!(service, status = response.status().as_u16(), "a webhook refused a notification");
            }
            Err(error) => {
                let error = error.without_url();
                tracing::warn!(service, %error, "a notification cannot be sent");
            }
        }
    }
}

fn as_json(body: &Value) -> (HeaderMap, String) {
    (HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]), body.to_string())
}

/// A message of ntfy: the body is the text, and everything else is in headers.
fn ntfy(notice: &Notice, link: Option<&str>) -> (HeaderMap, String) {
    let mut headers = HeaderMap::new();
    let title = header_text(&notice.title());
    let fixed = [("title", title.as_str()), ("priority", "high"), ("tags", "lock")];
    let link = link.map(|link| ("click", link));
    for (name, value) in fixed.into_iter().chain(link) {
        if let Ok(mut value) = HeaderValue::try_from(value) {
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    (headers, notice.text())
}

/// Encodes a text for a header: as it is, or as RFC 2047 if it is not plain ASCII.
fn header_text(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !text.contains("=?") {
        return text.to_owned();
    }
    format!("=?UTF-8?B?{}?=", STANDARD.encode(text))
}

/// A message of Slack. Nothing in it is unfurled: Slack would fetch the link.
fn slack(notice: &Notice, link: Option<&str>) -> Value {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let review = link.map(|link| format!("\n<{link}|Review and answer>")).unwrap_or_default();
    let text = format!("*{}*\n{}{review}", escaped(&notice.title()), escaped(&notice.text()));
    json!({ "text": text, "unfurl_links": false, "unfurl_media": false })
}

/// A message of a Telegram bot, as plain text and without a preview of the link.
fn telegram(notice: &Notice, link: Option<&str>, chat: Option<&str>) -> Value {
    let review = link.map(|link| format!("\n\nReview and answer: {link}")).unwrap_or_default();
    json!({
        "chat_id": chat,
        "text": format!("{}\n{}{review}", notice.title(), notice.text()),
        "link_preview_options": { "is_disabled": true },
    })
}

fn plain(notice: &Notice, link: Option<&str>) -> Value {
    let Notice { id, session, hook, tool, summary, deadline } = notice;
    json!({
        "event": "approval_requested", "id": id, "session": session, "hook": hook, "tool": tool, "summary": summary,
        "deadline": deadline, "link": link,
    })
}
