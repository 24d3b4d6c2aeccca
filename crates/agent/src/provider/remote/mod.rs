//! Remote models: Anthropic, OpenAI and compatible services, Gemini.
//!
//! The crate genai implements the wire formats. This module adds the order of messages, the detection of complete responses, the classification of
//! errors, and the protection of keys.

mod error;
mod kind;
mod request;
mod stream;

pub use kind::Kind;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self as streams, BoxStream, StreamExt, TryStreamExt};
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;

use super::{Chunk, ContextTag, ModelRequest, Provider, ProviderError};
use error::ErrorMapper;

/// The address of a model, and limits of the connection.
#[derive(Clone)]
pub struct RemoteOptions {
    /// The service.
    pub kind: Kind,
    /// The name of the model at the service.
    pub model: String,
    /// The key; optional only with a `base_url`.
    pub key: Option<String>,
    /// Another address than that of the service, up to the version: `http://localhost:11434/v1`. Without a path, the usual version is added.
    pub base_url: Option<String>,
    /// The size of the context window in tokens, if it differs from the default of the service.
    pub context_limit: Option<usize>,
    /// The time limit for connecting.
    pub connect_timeout: Duration,
    /// The longest pause before and within a response.
    pub idle_timeout: Duration,
}

impl RemoteOptions {
    /// Options for a model at the usual address, without a key.
    pub fn new(kind: Kind, model: impl Into<String>) -> Self {
        Self {
            kind,
            model: model.into(),
            key: None,
            base_url: None,
            context_limit: None,
            connect_timeout: Duration::from_secs(15),
            // Models can think for minutes before they respond.
            idle_timeout: Duration::from_secs(300),
        }
    }
}

/// Omits the key.
impl fmt::Debug for RemoteOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = ErrorMapper::new(self.key.clone(), self.idle_timeout);
        formatter
            .debug_struct("RemoteOptions")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .field("key", &self.key.as_ref().map(|_| error::KEY_PLACEHOLDER))
            .field("base_url", &self.base_url.as_ref().map(|url| errors.redact(url)))
            .field("context_limit", &self.context_limit)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .finish()
    }
}

/// A remote model.
///
/// ```
/// # use amplifier_agent::provider::{Kind, Provider, ProviderError, RemoteProvider, RemoteOptions};
/// let mut options = RemoteOptions::new(Kind::OpenAi, "llama3.3");
/// options.base_url = Some("http://localhost:11434".to_owned());
/// let model = RemoteProvider::new(options)?;
/// assert_eq!((model.name(), model.model()), ("openai", "llama3.3"));
/// # Ok::<(), ProviderError>(())
/// ```
pub struct RemoteProvider {
    kind: Kind,
    model: String,
    context_limit: usize,
    client: genai::Client,
    target: ServiceTarget,
    /// The tag for requests without one.
    tag: ContextTag,
    errors: Arc<ErrorMapper>,
}

impl RemoteProvider {
    /// Prepares a client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ProviderError::Unauthorized`] if a required key is missing or unprintable; [`ProviderError::Rejected`] if the address is invalid;
    /// [`ProviderError::Connection`] if this machine cannot make secure connections.
    pub fn new(options: RemoteOptions) -> Result<Self, ProviderError> {
        let RemoteOptions { kind, model, key, base_url, context_limit, connect_timeout, idle_timeout } = options;
        // Keys from files and variables may have line ends.
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let variable = kind.key_variable();
        if key.is_none() && base_url.is_none() {
            return Err(ProviderError::Unauthorized(format!("missing; set `{variable}`")));
        }
        if key.as_ref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            return Err(ProviderError::Unauthorized(format!("unprintable characters; check `{variable}`")));
        }

        let errors = ErrorMapper::new(key.clone(), idle_timeout);
        let url = kind.url(&model, base_url.as_deref()).map_err(|why| ProviderError::Rejected(errors.redact(&why)))?;
        let is_local = kind::is_loopback(&url);
        if key.is_some() && url.scheme() == "http" && !is_local {
            tracing::warn!(
                host = url.host_str(),
                "the key is sent over a connection that is not secure; use `https://`"
            );
        }
        let client = web_client(connect_timeout, idle_timeout, is_local)
            .map_err(|error| ProviderError::Connection(errors.redact(&error.to_string())))?;
        let client = genai::Client::builder().with_reqwest(client).build().map_err(|error| errors.read(error))?;

        let adapter = match kind {
            Kind::Anthropic => AdapterKind::Anthropic,
            Kind::OpenAi => AdapterKind::OpenAI,
            Kind::Gemini => AdapterKind::Gemini,
        };
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(url.as_str()),
            // genai requires a key, but the override may send none.
            auth: AuthData::RequestOverride { url: url.into(), headers: Headers::from(kind.headers(key.as_deref())) },
            model: ModelIden::new(adapter, model.clone()),
        };
        let context_limit = context_limit.unwrap_or_else(|| kind.context_limit(base_url.as_deref()));
        Ok(Self { kind, model, context_limit, client, target, tag: ContextTag::new(), errors: Arc::new(errors) })
    }
}

fn web_client(connect: Duration, idle: Duration, is_local: bool) -> Result<reqwest::Client, reqwest::Error> {
    // Fails if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("amplifier-hooks/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .read_timeout(idle)
        .tcp_nodelay(true)
        // A redirect would send the key to another host.
        .redirect(Policy::none());
    // A proxy cannot reach `localhost` of this machine.
    if is_local { builder.no_proxy() } else { builder }.build()
}

impl fmt::Debug for RemoteProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Remote")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .field("context_limit", &self.context_limit)
            .finish_non_exhaustive()
    }
}

impl Provider for RemoteProvider {
    fn name(&self) -> &str {
        self.kind.as_str()
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn context_limit(&self) -> usize {
        self.context_limit
    }

    fn answer(&self, mut request: ModelRequest) -> BoxStream<'static, Result<Chunk, ProviderError>> {
        request.tag.get_or_insert_with(|| self.tag.clone());
        let (client, target, errors) = (self.client.clone(), self.target.clone(), Arc::clone(&self.errors));
        let prepared = request::prepare(self.kind, &self.model, request);
        let opened = async move {
            let (chat, options) = prepared?;
            stream::open(client, target, chat, options, errors).await
        };
        streams::once(opened).try_flatten().boxed()
    }
}
