//! Hooks that post every event to a server.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url, Version};
use tokio::time::timeout;

use super::protocol::{self, HookRequest};
use super::{MAX_OUTPUT, TIMEOUT, TransportError, expand::expand_for_hook, head, runtime};

/// Number of characters of a failed response in an error.
const MAX_BODY_CHARS: usize = 1000;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Options of an [`HttpHook`].
#[derive(Clone)]
pub struct HttpOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// Address of the server.
    pub url: String,
    /// Workspace of the agent, for requests; none by default.
    pub workspace: Option<PathBuf>,
    /// Headers of every request. `${NAME}` in a value is an environment variable.
    pub headers: Vec<(String, String)>,
    /// Time limit for connecting; 5 seconds by default.
    pub connect_timeout: Duration,
    /// Time limit of one call; 30 seconds by default.
    pub timeout: Duration,
    /// Maximum size of an answer in bytes; 1 MiB by default.
    pub most_output: usize,
}

impl HttpOptions {
    /// Creates options with default limits.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            workspace: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            timeout: TIMEOUT,
            most_output: MAX_OUTPUT,
        }
    }

    /// Adds a header; `${NAME}` in its value is an environment variable.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Without header values and the address, which may contain secrets.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpOptions")
            .field("name", &self.name)
            .field("headers", &names)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("most_output", &self.most_output)
            .finish_non_exhaustive()
    }
}

/// A hook that posts every event to a server, over a persistent connection.
///
/// An answer needs a status from 200 to 299. An empty one means `continue` if the server marks it as empty (204, or a length of 0). Redirections are
/// not followed, because they would send the event to another server. If the connection is refused or reset before a response, the request is sent
/// once more.
///
/// ```
/// use amplifier_core::{HookRegistry, TOOL_PRE};
/// use amplifier_modules::transport::{HttpHook, HttpOptions};
///
/// let options = HttpOptions::new("policy", "https://policy.example.com/hook").header("x-team", "agents of ${CARGO_PKG_NAME}");
/// HookRegistry::new().hook(TOOL_PRE).named("policy").handler(HttpHook::new(options)?);
/// # Ok::<(), amplifier_modules::transport::TransportError>(())
/// ```
pub struct HttpHook {
    options: HttpOptions,
    url: Url,
    headers: HeaderMap,
    client: Client,
}

impl fmt::Debug for HttpHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpHook").field("options", &self.options).finish_non_exhaustive()
    }
}

impl HttpHook {
    /// Creates a hook without sending anything.
    ///
    /// # Errors
    /// If the address or a header is invalid, an environment variable is missing, or connections are not possible.
    pub fn new(options: HttpOptions) -> Result<Self, TransportError> {
        let hook = &options.name;
        let url = address(&options.url).map_err(|why| TransportError::Address { hook: hook.clone(), why })?;
        let headers = headers(hook, options.headers.iter().map(|(name, value)| (name, value)))?;
        let client = client(&url, options.connect_timeout)
            .map_err(|source| TransportError::Client { hook: hook.clone(), source })?;
        Ok(Self { options, url, headers, client })
    }

    /// Sends the request, and again if the connection is lost before a response.
    async fn send(&self, request: Vec<u8>) -> Result<Response, reqwest::Error> {
        let post = |body| self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        match post(request.clone()).await {
            Err(error) if is_connection_lost(&error) => post(request).await,
            response => response,
        }
    }

    async fn exchange(&self, request: Vec<u8>) -> Result<HookResult, HookError> {
        let mut response = self.send(request).await.map_err(|error| HookError::from(error.without_url()))?;
        let status = response.status();
        let mut body = Vec::new();
        let is_whole = read(&mut response, &mut body, self.options.most_output).await;
        if !status.is_success() {
            // The status is more useful than a reading error.
            let hint = if status.is_redirection() { "; redirections are not followed" } else { "" };
            let said = head(&body, MAX_BODY_CHARS);
            let said = if said.is_empty() { said } else { format!(": {said}") };
            return Err(HookError::Failed(format!("the server answered with status {}{hint}{said}", status.as_u16())));
        }
        is_whole?;
        // A server that dies after its headers looks like one with an empty answer.
        if body.trim_ascii().is_empty() && !has_explicit_end(&response) {
            return Err(HookError::Failed(
                "the connection ended before an answer; use status 204 for an empty answer".to_owned(),
            ));
        }
        protocol::read(&body)
    }
}

/// `true` if the response marks the end of its body, other than by closing the connection.
fn has_explicit_end(response: &Response) -> bool {
    let markers = [CONTENT_LENGTH, TRANSFER_ENCODING];
    response.status() == StatusCode::NO_CONTENT
        || response.version() >= Version::HTTP_2
        || markers.iter().any(|header| response.headers().contains_key(header))
}

impl Hook for HttpHook {
    /// # Cancel safety
    /// Dropping the future abandons the request, which the server may have read already.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        runtime()?;
        let request = HookRequest::new(&self.options.name, event, data, self.options.workspace.as_deref()).to_json()?;
        let limit = self.options.timeout;
        timeout(limit, self.exchange(request)).await.unwrap_or(Err(HookError::TimedOut(limit)))
    }
}

/// Returns the headers of every request, with environment variables expanded.
pub(super) fn headers<'a>(
    hook: &str,
    given: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<HeaderMap, TransportError> {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, JSON), (ACCEPT, JSON)]);
    for (name, value) in given {
        let value = expand_for_hook(hook, name, value)?;
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let Some((name, mut value)) = header else {
            return Err(TransportError::Header { hook: hook.to_owned(), header: name.clone() });
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

pub(super) fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("`{other}` is neither `http` nor `https`")),
    }
}

/// Returns an address without possible secrets, for the name of a hook, which the model reads.
pub(crate) fn shown_address(given: &str) -> String {
    // An address that cannot be parsed is not shown.
    let Ok(mut url) = Url::parse(given) else { return "http".to_owned() };
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.host().is_some();
    if is_plain {
        return given.to_owned();
    }
    url.set_query(None);
    url.set_fragment(None);
    // An address without a host is not usable.
    match url.set_username("").and_then(|()| url.set_password(None)) {
        Ok(()) => url.into(),
        Err(()) => "http".to_owned(),
    }
}

pub(super) fn client(url: &Url, connect_timeout: Duration) -> Result<Client, reqwest::Error> {
    // Fails if a provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("amplifier-hooks/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .retry(reqwest::retry::never())
        .redirect(Policy::none());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    // A proxy does not know this machine as `localhost`.
    if is_local { builder.no_proxy() } else { builder }.build()
}

async fn read(response: &mut Response, body: &mut Vec<u8>, most: usize) -> Result<(), HookError> {
    while let Some(chunk) = response.chunk().await.map_err(|error| HookError::from(error.without_url()))? {
        let left = most - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if chunk.len() > left {
            return Err(HookError::Failed(format!("the server answered with more than {most} bytes")));
        }
    }
    Ok(())
}

/// `true` if the connection was refused or reset, or closed before the request was sent. A timeout does not count: the server may be processing the
/// request.
fn is_connection_lost(error: &reqwest::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset};
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionRefused | ConnectionReset);
        }
        source = cause.source();
    }
    false
}
