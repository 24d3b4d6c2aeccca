//! JSON notifications to a server, without an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};

use super::TransportError;
use super::http::{address, client, headers};

/// Posts JSON to a server. Redirections are not followed.
pub(crate) struct Post {
    url: Url,
    headers: HeaderMap,
    client: Client,
    timeout: Duration,
}

impl Post {
    /// Creates a client. `${NAME}` in a header is an environment variable.
    pub(crate) fn new(
        hook: &str,
        url: &str,
        given: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Self, TransportError> {
        let url = address(url).map_err(|why| TransportError::Address { hook: hook.to_owned(), why })?;
        let headers = headers(hook, given)?;
        let client =
            client(&url, timeout).map_err(|source| TransportError::Client { hook: hook.to_owned(), source })?;
        Ok(Self { url, headers, client, timeout })
    }

    /// Posts a body, within the time limit. The error has no address, which may contain a secret.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).timeout(self.timeout);
        match request.body(body).send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("the server answered with status {}", response.status().as_u16())),
            Err(error) => Err(error.without_url().to_string()),
        }
    }
}
