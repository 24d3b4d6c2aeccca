//! The HTTP client for messages to other servers.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

/// Time limits for connecting, and for a request as a whole.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);

/// Returns a client with time limits. It sends each message once, and to no other server than the named one.
pub(super) fn limited_client() -> ClientBuilder {
    // Fails if a provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("amplifier-hooks/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(REQUEST)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
}
