//! Checks before every route.
//!
//! Order: Host (421), path and method (404, 405), Origin (403), caller (401, 429), role (403), content type (415), size
//! (413), body (422), state (404, 409). The guard itself refuses a wrong Host. Its results for Origin and caller go to
//! the extractors, which refuse once path and method are known to exist.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, ORIGIN, REFERRER_POLICY,
    RETRY_AFTER, SEC_WEBSOCKET_PROTOCOL, UPGRADE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::{Access, Identity};
use crate::api::error::{ApiError, Page};
use crate::server::{ConnectionShares, ConnectionSlot, Holder, NoSlot, Share, ShutdownSignal};

pub(crate) const KEY: &str = "x-amplifier-key";

/// Protocol of the WebSocket. Pages cannot set headers there, so a browser offers its key as another protocol:
/// `key.KEY`.
pub(crate) const PROTOCOL: &str = "amplifier";

/// Limit of a body, in bytes.
pub(crate) const BODY_LIMIT: usize = 1024 * 1024;

/// Retry delay when there are too many connections.
const WHEN_FULL: Duration = Duration::from_secs(5);

/// Content security policy: pages load only their own files, and no inline code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Content security policy of a page with a form: no scripts at all, and the form leads to this server.
const FORM_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Marks the response with a page whose form may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormPage;

/// The server's names, origins and cookie, as browsers see them.
#[derive(Debug)]
pub(crate) struct ServerOrigin {
    /// URL in links: `http://127.0.0.1:7878`.
    pub(crate) url: String,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Name of the cookie, with the port: cookies are shared between the ports of a machine.
    cookie: String,
    is_secure: bool,
}

impl ServerOrigin {
    /// Returns the origins for a listen address and additional host names.
    pub(crate) fn new(address: SocketAddr, names: &[String], is_secure: bool) -> Self {
        let (scheme, usual) = if is_secure { ("https", 443) } else { ("http", 80) };
        let port = address.port();
        let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let own = match address.ip() {
            // A server on all addresses has no name except the configured ones.
            ip if ip.is_unspecified() => None,
            IpAddr::V4(ip) => Some(ip.to_string()),
            IpAddr::V6(ip) => Some(format!("[{ip}]")),
        };
        let is_local = address.ip().is_loopback() || address.ip().is_unspecified();
        let known = names.iter().cloned().chain(own).chain(loopback.into_iter().filter(|_| is_local));
        let mut hosts: Vec<String> = Vec::new();
        for name in known {
            let name = name.to_ascii_lowercase();
            let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
            let host = if has_port { name } else { format!("{name}:{port}") };
            // Browsers omit the default port.
            let short = host.strip_suffix(&format!(":{usual}")).map(str::to_owned);
            hosts.extend([short, Some(host)].into_iter().flatten());
        }
        let origins: Vec<String> = hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        let prefix = if is_secure { "__Host-" } else { "" };
        Self {
            url: origins.first().cloned().unwrap_or_default(),
            hosts,
            origins,
            cookie: format!("{prefix}amplifier_{port}"),
            is_secure,
        }
    }

    pub(crate) fn link(&self, code: &str) -> String {
        format!("{}/enter?code={code}", self.url)
    }

    /// Returns the header that sets the cookie; an empty value deletes the cookie.
    pub(crate) fn set_cookie(&self, value: &str) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let gone = if value.is_empty() { "; Max-Age=0" } else { "" };
        format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{gone}", self.cookie)
    }

    pub(crate) fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
        let pairs = all.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// Returns the origin of a page that sent this request. The Host was checked before.
    pub(crate) fn origin(&self, headers: &HeaderMap) -> Option<&str> {
        let host = headers.get(HOST)?.to_str().ok()?;
        let at = self.hosts.iter().position(|known| known.eq_ignore_ascii_case(host))?;
        self.origins.get(at).map(String::as_str)
    }

    /// Returns `true` if the request names this server alone. DNS rebinding, where a page points its own name here, is
    /// refused.
    fn is_named(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let is_known = |name: &str| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
        let in_target = request.uri().authority();
        host.to_str().is_ok_and(is_known) && in_target.is_none_or(|authority| is_known(authority.as_str()))
    }

    /// Checks that the request comes from a page of this server, or from no page.
    fn check_origin(&self, request: &Request, by_cookie: bool) -> Result<(), ApiError> {
        let headers = request.headers();
        let foreign = |message: &str| Err(ApiError::new(StatusCode::FORBIDDEN, "origin", message));
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) if self.origins.iter().any(|own| origin == own.as_str()) => {}
            (Some(_), _) => {
                return foreign("request denied: sent by the page of another server");
            }
            (None, _) if by_cookie && (!is_safe(request.method()) || headers.contains_key(UPGRADE)) => {
                return foreign("missing header `Origin`; browsers must send it with changes");
            }
            (None, _) => {}
        }
        // Browsers treat another port of this machine as the same site, and send the cookie along.
        let mut sites = headers.get_all("sec-fetch-site").iter();
        if by_cookie && !sites.all(|site| site == "same-origin" || site == "none") {
            return foreign("request denied: sent by the page of another server");
        }
        Ok(())
    }
}

pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The guard's results for a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) origin: Result<(), Refusal>,
    pub(crate) who: Result<Identity, Refusal>,
}

/// A refused request, with the time after which to try again.
#[derive(Clone, Debug)]
pub struct Refusal {
    error: ApiError,
    wait: Option<Duration>,
}

impl Refusal {
    pub(crate) fn too_many(what: &str, wait: Duration) -> Self {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many", format!("{what}; wait a moment"));
        Self { error, wait: Some(wait) }
    }

    /// No connection is left, for this user or for all.
    fn full(full: NoSlot, code: &'static str, message: &str) -> Self {
        let status = match full {
            NoSlot::ForPerson => StatusCode::TOO_MANY_REQUESTS,
            NoSlot::ForAll => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { error: ApiError::new(status, code, message), wait: Some(WHEN_FULL) }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let wait = (error.status == StatusCode::TOO_MANY_REQUESTS).then_some(Duration::from_secs(1));
        Self { error, wait }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let unknown = self.error.status == StatusCode::UNAUTHORIZED;
        let mut response = self.error.into_response();
        if let Some(wait) = self.wait {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
        }
        if unknown {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The state of one connection, for as long as it is open, also as a WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct ClientConnection {
    pub(crate) peer: IpAddr,
    pub(crate) slot: Arc<ConnectionSlot>,
    pub(crate) socket: Arc<Mutex<Option<Share>>>,
    /// Shutdown signal for long responses.
    pub(crate) stopping: ShutdownSignal,
}

/// Limit of WebSockets and line streams.
#[derive(Clone, Debug)]
pub(crate) struct StreamSlots(pub(crate) Arc<ConnectionShares>);

impl StreamSlots {
    /// Reserves a stream until the share is dropped.
    ///
    /// # Errors
    /// If none is left for this user.
    pub(crate) fn take(&self, access: &Access, who: Option<&Identity>) -> Result<Share, Refusal> {
        // All anonymous clients count as one user.
        let stranger = || Holder { person: String::new(), is_owner: false };
        self.0.take(who.map_or_else(stranger, |who| access.holder(who))).map_err(|full| {
            let message = match full {
                NoSlot::ForPerson => "too many live connections of your user; close some pages or programs",
                NoSlot::ForAll => "too many live connections to this server; close some pages or programs",
            };
            Refusal::full(full, "too_many_sockets", message)
        })
    }
}

#[derive(Debug)]
pub(crate) struct RequestGuard {
    pub(crate) access: Access,
    pub(crate) site: Arc<ServerOrigin>,
    pub(crate) stream_slots: StreamSlots,
    pub(crate) body_time: Duration,
}

/// Checks a request, runs the route, and adds the security headers to the response.
pub(crate) async fn guard(State(guard): State<Arc<RequestGuard>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_kept = path == "/" || path.starts_with("/console/");
    let response = if guard.site.is_named(&request) {
        let caller = guard.caller(&request);
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(guard.site.clone());
        request.extensions_mut().insert(guard.stream_slots.clone());
        guard.answer(request, next).await
    } else {
        let message = format!("unknown host name; this server is at {}", guard.site.url);
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "host", message).into_response()
    };
    let mut response = as_api_error(response).await;
    let has_form = response.extensions().get::<FormPage>().is_some();
    protect(response.headers_mut(), is_kept);
    if has_form {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(FORM_POLICY));
    }
    response
}

impl RequestGuard {
    /// Identifies the caller, and checks the page's origin.
    fn caller(&self, request: &Request) -> Caller {
        let headers = request.headers();
        let cookie = self.site.cookie(headers);
        let by_cookie = cookie.is_some() && !headers.contains_key(AUTHORIZATION);
        let origin = self.site.check_origin(request, by_cookie).map_err(Refusal::from);
        let who = match origin {
            Ok(()) => self.identify(request, cookie),
            // No secret is checked for the page of another server.
            Err(ref refusal) => Err(refusal.clone()),
        };
        Caller { origin, who }
    }

    fn identify(&self, request: &Request, cookie: Option<&str>) -> Result<Identity, Refusal> {
        let unknown = |message: &str| ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", message);
        let mut given = request.headers().get_all(AUTHORIZATION).iter();
        let (found, problem) = match (given.next(), given.next(), cookie) {
            (Some(header), None, _) => (
                bearer(header).and_then(|token| self.access.by_token(token)),
                "invalid token; the owner's token is in the file `token` of the server's folder",
            ),
            (Some(_), Some(_), _) => (None, "several `Authorization` headers; send only one"),
            (None, _, Some(cookie)) => {
                // Another server on this machine receives the cookie too, so the cookie alone proves nothing.
                let Some(key) = key(request.headers()) else {
                    let message = "missing key for this browser's cookie; get a new link with `amplifier serve link`";
                    return Err(unknown(message).into());
                };
                let problem = "this browser is signed out; get a new link with `amplifier serve link`";
                (self.access.by_cookie(cookie, key), problem)
            }
            (None, _, None) => {
                let message = "not authenticated; use a token, or open a link from `amplifier serve link` in a browser";
                return Err(unknown(message).into());
            }
        };
        let connection = request.extensions().get::<ClientConnection>();
        let Some(who) = found else {
            return Err(match self.access.count_wrong_secret(connection) {
                Ok(()) => unknown(problem).into(),
                Err(wait) => Refusal::too_many("too many attempts with a wrong secret", wait),
            });
        };
        self.access.count(&who).map_err(|wait| Refusal::too_many("too many requests", wait))?;
        let kept = connection.map_or(Ok(()), |connection| connection.slot.assign(self.access.holder(&who)));
        kept.map_err(|full| {
            let message = match full {
                NoSlot::ForPerson => "you have too many connections to this server; close some",
                NoSlot::ForAll => "the server has too many connections; try again later",
            };
            Refusal::full(full, "too_many_connections", message)
        })?;
        Ok(who)
    }

    async fn answer(&self, request: Request, next: Next) -> Response {
        let connection = request.extensions().get::<ClientConnection>().cloned();
        let wants_socket = request.headers().contains_key(UPGRADE);
        let request = if is_safe(request.method()) { request } else { with_body_deadline(request, self.body_time) };
        let Some(connection) = connection.filter(|_| wants_socket) else { return next.run(request).await };
        let who = request.extensions().get::<Caller>().and_then(|caller| caller.who.as_ref().ok());
        let slot = match self.stream_slots.take(&self.access, who) {
            Ok(slot) => slot,
            Err(full) => return full.into_response(),
        };
        let response = next.run(request).await;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // Released when the connection is closed.
            *connection.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
        }
        response
    }
}

fn key(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(KEY).iter();
    match (given.next(), given.next()) {
        (Some(key), None) => key.to_str().ok(),
        (Some(_), Some(_)) => None,
        (None, _) if headers.contains_key(UPGRADE) => {
            let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|offered| offered.to_str().ok());
            offered.flat_map(|offered| offered.split(',')).find_map(|one| one.trim().strip_prefix("key."))
        }
        (None, _) => None,
    }
}

fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Returns the request with a body that fails after the time limit, also if it arrives slowly.
fn with_body_deadline(request: Request, time: Duration) -> Request {
    let until = Instant::now() + time;
    request.map(|body| {
        let pieces = stream::unfold(Some(body.into_data_stream()), move |pieces| async move {
            let mut pieces = pieces?;
            match timeout_at(until, pieces.next()).await {
                Ok(Some(Ok(piece))) => Some((Ok::<Bytes, axum::Error>(piece), Some(pieces))),
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => None,
                Err(late) => Some((Err(axum::Error::new(late)), None)),
            }
        });
        Body::from_stream(pieces)
    })
}

/// Converts failures from elsewhere (unknown routes, unreadable bodies) to API errors.
async fn as_api_error(response: Response) -> Response {
    let status = response.status();
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let is_failure = status.is_client_error() || status.is_server_error();
    if !is_failure || is_json || response.extensions().get::<Page>().is_some() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The text of an internal failure must not leave the server.
    let text = axum::body::to_bytes(body, 4096).await.ok().filter(|_| status.is_client_error());
    let text = text.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()).filter(|text| !text.is_empty());
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    let (kind, body) = ApiError::from_status(status, text).into_response().into_parts();
    parts.headers.extend(kind.headers);
    Response::from_parts(parts, body)
}

/// Sets the security headers of every response.
pub(crate) fn protect(headers: &mut HeaderMap, is_kept: bool) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The console's files contain no private data, and are revalidated with their ETag.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(if is_kept { "no-cache" } else { "no-store" }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, names: &[&str], is_secure: bool) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        ServerOrigin::new(address.parse().unwrap(), &names, is_secure).hosts.join(" ")
    }

    #[test]
    fn a_server_is_known_by_its_address_and_the_names_it_is_given() {
        assert_eq!(hosts("127.0.0.1:7", &[], false), "127.0.0.1:7 127.0.0.1:7 localhost:7 [::1]:7");
        assert_eq!(hosts("[::1]:7", &[], false), "[::1]:7 127.0.0.1:7 localhost:7 [::1]:7");
        assert_eq!(hosts("192.0.2.1:7", &["Box.example"], true), "box.example:7 192.0.2.1:7");
        assert_eq!(
            hosts("192.0.2.1:443", &["box.example"], true),
            "box.example box.example:443 192.0.2.1 192.0.2.1:443"
        );
        assert_eq!(hosts("0.0.0.0:7", &["box:9"], true), "box:9 127.0.0.1:7 localhost:7 [::1]:7");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_not_waited_for() {
        let trickle = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Some((Ok::<_, axum::Error>(Bytes::from_static(b" ")), ()))
        });
        let body = with_body_deadline(Request::new(Body::from_stream(trickle)), Duration::from_secs(20)).into_body();
        let begun = Instant::now();
        assert!(axum::body::to_bytes(body, 4096).await.is_err());
        assert_eq!(begun.elapsed().as_secs(), 20, "the time does not begin anew with each piece");
    }

    #[test]
    fn people_are_sent_to_the_first_name() {
        let url =
            |address: &str, names: &[String], secure| ServerOrigin::new(address.parse().unwrap(), names, secure).url;
        assert_eq!(url("127.0.0.1:7878", &[], false), "http://127.0.0.1:7878");
        assert_eq!(url("0.0.0.0:443", &["box".to_owned()], true), "https://box");
    }
}
