//! The anchor that posts to a server.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use amplifier_core::text::visible_line;
use ureq::Agent;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use super::{Anchor, AnchorError, TIME_LIMIT, with_empty_line};

/// Posts every checkpoint to a server, as `text/plain`; any 2xx response means that it is stored.
///
/// Redirects are not followed. Certificates are checked against the Mozilla roots. The proxy from the environment is used, except for
/// this machine itself.
///
/// ```
/// use amplifier_audit::{Anchor, HttpAnchor};
///
/// let anchor = HttpAnchor::new("https://witness.example/add?log=7").header("Authorization", "Bearer …");
/// // Paths, queries and headers may be secrets.
/// assert_eq!(anchor.name(), "https://witness.example");
/// ```
pub struct HttpAnchor {
    name: String,
    url: Uri,
    headers: HeaderMap,
    /// The error in the URL or a header; returned at the latest with the first note.
    fault: Option<String>,
    time_limit: Duration,
    /// Created for the first note, and reused because reading the certificates takes a while.
    agent: Option<Agent>,
}

impl HttpAnchor {
    /// Creates an anchor that posts to this `http` or `https` URL.
    pub fn new(url: &str) -> Self {
        let (url, name, fault) = match checked(url) {
            Ok((url, name)) => (url, name, None),
            Err(fault) => (Uri::default(), "http server".into(), Some(fault.into())),
        };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))]);
        Self { name, url, headers, fault, time_limit: TIME_LIMIT, agent: None }
    }

    /// Sets a header, and replaces an earlier value.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            (Ok(name), Err(_)) => self.fault = Some(format!("invalid value of header `{name}`")),
            // The name may contain the whole header with its secret.
            (Err(_), _) => self.fault = Some("invalid name of a header".into()),
        }
        self
    }

    /// Returns the error in the URL or a header, if there is one. The anchor cannot store anything then.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Sets the time limit from the host lookup to the response, 10 s by default.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self.agent = None;
        self
    }
}

impl Anchor for HttpAnchor {
    fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
        if let Some(fault) = &self.fault {
            return Err(AnchorError::Setup(fault.clone()));
        }
        let mut request = Request::new(with_empty_line(note));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let agent = self.agent.get_or_insert_with(|| agent(&self.url, self.time_limit));
        match agent.run(request) {
            // The body is not read.
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(AnchorError::Status(response.status().as_u16())),
            Err(error) => Err(explained(&error, self.time_limit)),
        }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

// Written by hand, because the URL and the headers may be secrets.
impl fmt::Debug for HttpAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAnchor").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the URL, and the part of it that may be shown.
fn checked(url: &str) -> Result<(Uri, String), &'static str> {
    let url: Uri = url.parse().map_err(|_| "invalid URL")?;
    let (Some(scheme @ ("http" | "https")), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err("the URL does not begin with `http://` or `https://` and a host");
    };
    if authority.as_str().contains('@') {
        return Err("the URL has a user name; use a header instead");
    }
    let name = format!("{scheme}://{authority}");
    Ok((url, name))
}

fn agent(url: &Uri, limit: Duration) -> Agent {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let config = Agent::config_builder()
        // `ureq` adds this to the current time, which overflows for a very long limit.
        .timeout_global(Some(limit.min(DAY)))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // An idle connection may be dead.
        .max_idle_connections(0)
        .user_agent(concat!("amplifier-audit/", env!("CARGO_PKG_VERSION")));
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    if here { config.proxy(None) } else { config }.build().new_agent()
}

/// Describes the error without the URL and the headers.
fn explained(error: &ureq::Error, limit: Duration) -> AnchorError {
    AnchorError::Server(match error {
        ureq::Error::Timeout(_) => return AnchorError::TimedOut { limit, stderr: String::new() },
        ureq::Error::Io(error) => visible_line(&error.to_string()),
        ureq::Error::Rustls(error) => visible_line(&error.to_string()),
        ureq::Error::HostNotFound => "unknown host".into(),
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => "the response is not HTTP".into(),
        ureq::Error::ConnectProxyFailed(_) | ureq::Error::InvalidProxyUrl => "the proxy did not connect".into(),
        _ => "the request failed".into(),
    })
}
