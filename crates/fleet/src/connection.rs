//! The connection to a centre.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Event, HeaderMap, Request};
use bytes::Bytes;

use crate::message::{StoredMessage, read_reply, read_stored};
use crate::{FleetError, FleetName, subjects};

/// The oldest server whose clusters store a compare-and-set consistently, and whose `sync_interval: always` is known.
const LEAST_VERSION: &str = "2.12";

/// The time limit of one request. The client has none of its own after the connection breaks.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The identity and the servers of a connection.
#[derive(Clone)]
pub struct ConnectionOptions {
    name: FleetName,
    servers: Vec<String>,
    seed: Option<String>,
    credentials: Option<String>,
    root_certificate: Option<PathBuf>,
    time_limit: Duration,
    takes_old_servers: bool,
}

impl ConnectionOptions {
    /// Sets the identity's name and the addresses of the servers.
    pub fn new(name: FleetName, servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name,
            servers: servers.into_iter().map(Into::into).collect(),
            seed: None,
            credentials: None,
            root_certificate: None,
            time_limit: TIME_LIMIT,
            takes_old_servers: false,
        }
    }

    /// Sets the seed of the identity's NKey.
    #[must_use]
    pub fn seed(self, seed: impl Into<String>) -> Self {
        Self { seed: Some(seed.into()), ..self }
    }

    /// Sets the credentials of an identity that expires: a JWT with its seed.
    #[must_use]
    pub fn credentials(self, credentials: impl Into<String>) -> Self {
        Self { credentials: Some(credentials.into()), ..self }
    }

    /// Sets the file with the certificate of the organisation that signs the servers' certificates.
    #[must_use]
    pub fn root_certificate(self, file: impl Into<PathBuf>) -> Self {
        Self { root_certificate: Some(file.into()), ..self }
    }

    /// Sets the time limit of a request; 2 seconds by default.
    #[must_use]
    pub fn time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// Allows servers that can lose records. For tests.
    #[must_use]
    pub fn take_old_servers(self) -> Self {
        Self { takes_old_servers: true, ..self }
    }
}

/// A connection to a centre. It reconnects by itself, for ever.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    name: FleetName,
    servers: Arc<str>,
    time_limit: Duration,
    takes_old_servers: bool,
    // A std lock: it is held for an assignment.
    server_error: Arc<Mutex<Option<String>>>,
}

impl Connection {
    /// Connects to the first server that answers.
    ///
    /// # Errors
    /// If no server answers, the identity is refused, or the server is too old.
    pub async fn open(options: ConnectionOptions) -> Result<Self, FleetError> {
        let connection = Self::connect(options, false).await?;
        connection.check_server()?;
        Ok(connection)
    }

    /// Starts to connect without waiting for a server. Until one answers, requests fail at once.
    ///
    /// # Errors
    /// If the identity is unusable.
    pub async fn start(options: ConnectionOptions) -> Result<Self, FleetError> {
        Self::connect(options, true).await
    }

    async fn connect(options: ConnectionOptions, is_patient: bool) -> Result<Self, FleetError> {
        let ConnectionOptions { name, servers, seed, credentials, root_certificate, time_limit, takes_old_servers } =
            options;
        let server_error = Arc::new(Mutex::new(None));
        let last_error = server_error.clone();
        let mut nats = async_nats::ConnectOptions::new()
            .name(&*name)
            .custom_inbox_prefix(subjects::inbox(&name))
            .connection_timeout(time_limit)
            .request_timeout(Some(time_limit))
            .max_reconnects(None)
            .event_callback(move |event| {
                let last_error = last_error.clone();
                async move {
                    match event {
                        Event::ServerError(error) => set(&last_error, Some(error.to_string())),
                        Event::ClientError(error) => set(&last_error, Some(error.to_string())),
                        Event::Connected => set(&last_error, None),
                        event => tracing::debug!(%event, "the connection to the centre"),
                    }
                }
            });
        if is_patient {
            nats = nats.retry_on_initial_connect();
        }
        if let Some(seed) = seed {
            nats = nats.nkey(seed);
        }
        if let Some(credentials) = credentials {
            let unusable =
                |error: std::io::Error| FleetError::Identity { name: name.to_string(), cause: error.to_string() };
            nats = nats.credentials(&credentials).map_err(unusable)?;
        }
        if let Some(file) = root_certificate {
            nats = nats.add_root_certificates(file).require_tls(true);
        }
        let unreachable = |error: async_nats::ConnectError| FleetError::Unreachable {
            servers: servers.join(","),
            cause: error.to_string(),
        };
        let client = nats.connect(&servers).await.map_err(unreachable)?;
        let servers = servers.join(",").into();
        Ok(Self { client, name, servers, time_limit, takes_old_servers, server_error })
    }

    /// Fails if no server has answered yet, or the server is too old.
    fn check_server(&self) -> Result<(), FleetError> {
        let Some(server) = self.client.try_server_info() else {
            let cause = self.server_error().unwrap_or_else(|| "no server has answered yet".to_owned());
            return Err(FleetError::Unreachable { servers: self.servers.to_string(), cause });
        };
        match self.takes_old_servers || is_supported(&server.version) {
            true => Ok(()),
            false => Err(FleetError::OldServer { found: server.version, least: LEAST_VERSION }),
        }
    }

    /// Returns the identity's name.
    pub fn name(&self) -> &FleetName {
        &self.name
    }

    /// Returns the client, for subscriptions.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the server's last error, which usually names a missing permission.
    pub fn server_error(&self) -> Option<String> {
        self.server_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores a message in the stream of its subject, waits until it is stored, and returns its sequence number in the stream.
    ///
    /// # Errors
    /// [`FleetError::Conflict`] if the headers expect another last message, or the subject allows no second one. After
    /// [`FleetError::TimedOut`], the message may be stored.
    pub async fn publish(&self, subject: &str, headers: HeaderMap, payload: Bytes) -> Result<u64, FleetError> {
        let reply = self.request(subject, headers, payload).await?;
        read_reply(subject, &reply.payload)
    }

    /// Returns the last message of a subject in a stream, if there is one.
    ///
    /// # Errors
    /// If the stream is missing or does not reply.
    pub async fn last_message(&self, stream: &str, subject: &str) -> Result<Option<StoredMessage>, FleetError> {
        let reply = self.request(&subjects::last_message(stream, subject), HeaderMap::new(), Bytes::new()).await?;
        read_stored(subject, reply)
    }

    /// Returns all messages of a stream with a subject, which may have wildcards, oldest first. Only readers of the whole stream may do this.
    ///
    /// # Errors
    /// If the stream is missing or does not reply.
    pub async fn messages(&self, stream: &str, subject: &str) -> Result<Vec<StoredMessage>, FleetError> {
        let (mut messages, mut next) = (Vec::new(), 1);
        loop {
            let request = serde_json::json!({ "seq": next, "next_by_subj": subject }).to_string();
            let reply = self.request(&format!("$JS.API.DIRECT.GET.{stream}"), HeaderMap::new(), request.into()).await?;
            let Some(message) = read_stored(subject, reply)? else { return Ok(messages) };
            next = message.sequence + 1;
            messages.push(message);
        }
    }

    /// Sends a request, and waits for the first reply.
    ///
    /// # Errors
    /// If nothing replies within the time limit, or nothing serves the subject.
    pub async fn request(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<async_nats::Message, FleetError> {
        self.request_within(self.time_limit, subject, headers, payload).await
    }

    /// Sends a request, and waits for the first reply, for a limited time.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_within(
        &self,
        limit: Duration,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<async_nats::Message, FleetError> {
        self.check_server()?;
        let mut request = Request::new().payload(payload).timeout(Some(limit));
        if !headers.is_empty() {
            request = request.headers(headers);
        }
        let subject = subject.to_owned();
        self.client.send_request(subject.clone(), request).await.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => FleetError::NoResponders { subject },
            RequestErrorKind::TimedOut => FleetError::TimedOut { subject, limit, server_error: self.server_error() },
            _ => FleetError::Invalid { subject, cause: error.to_string() },
        })
    }
}

fn set(error: &Mutex<Option<String>>, value: Option<String>) {
    *error.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn is_supported(version: &str) -> bool {
    let numbers = |version: &str| {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    };
    numbers(version) >= numbers(LEAST_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_2_12_are_too_old() {
        for (version, expected) in [
            ("2.12.0", true),
            ("2.15.1", true),
            ("3.0.0", true),
            ("2.9.10", false),
            ("2.11.4", false),
            ("", false),
            ("x", false),
        ] {
            assert_eq!(is_supported(version), expected, "{version}");
        }
    }
}
