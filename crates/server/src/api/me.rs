//! The authenticated user, signed-in browsers and sign-in links.

use amplifier_audit::RecordFilter;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse};
use axum::{Extension, Json as Reply};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use super::log_access::LogAccess;
use crate::App;
use crate::access::guard::{ClientConnection, Refusal, ServerOrigin};
use crate::access::{AccessError, Admin, Public, Role, Viewer};
use crate::api_types::{
    Browsers, ErrorResponse, Health, KeyProof, Me, SignInLink, SignInLinkRequest, SignedOutBrowsers,
};
use crate::push::Notifier;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(leave))
        .routes(routes!(links))
        .routes(routes!(browsers))
        .routes(routes!(end))
        .routes(routes!(proof))
        .routes(routes!(health))
}

/// Returns the authenticated user
#[utoipa::path(get, path = "/api/me", tag = "access", responses((status = 200, description = "The user.", body = Me)))]
async fn me(Viewer(who): Viewer) -> Reply<Me> {
    Reply(Me { name: who.name, role: who.role.to_string() })
}

/// Signs the browser out
#[utoipa::path(post, path = "/api/leave", tag = "access", responses((status = 204, description = "Signed out: the cookie is no longer valid.")))]
async fn leave(
    _: Viewer,
    State(app): State<App>,
    Extension(site): Extension<Arc<ServerOrigin>>,
    Extension(notifier): Extension<Notifier>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    if let Some(cookie) = site.cookie(&headers) {
        app.access.sign_out(cookie).map_err(ApiError::internal)?;
        notifier.forget_signed_out();
    }
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(SET_COOKIE, site.set_cookie(""))])))
}

/// Creates a one-time sign-in link, valid for ten minutes
#[utoipa::path(post, path = "/api/links", tag = "access", request_body = SignInLinkRequest, responses((status = 201, description = "The link. It is not shown again.", body = SignInLink)))]
async fn links(
    _: Admin,
    State(app): State<App>,
    Extension(site): Extension<Arc<ServerOrigin>>,
    Json(SignInLinkRequest { name, role }): Json<SignInLinkRequest>,
) -> Result<(StatusCode, Reply<SignInLink>), ApiError> {
    let role = role.parse::<Role>().map_err(|unknown| ApiError::unusable(unknown.to_string()))?;
    let code = app.access.code(&name, role).map_err(|error| match error {
        AccessError::NoName => ApiError::unusable(error.to_string()),
        error => ApiError::internal(error),
    })?;
    let lasts = SignedDuration::try_from(app.access.code_lifetime()).map_err(ApiError::internal)?;
    let link = SignInLink { url: site.link(&code), expires_at: Timestamp::now() + lasts };
    Ok((StatusCode::CREATED, Reply(link)))
}

/// Lists the signed-in browsers
#[utoipa::path(get, path = "/api/browsers", tag = "access", responses((status = 200, body = Browsers)))]
async fn browsers(_: Admin, State(app): State<App>) -> Reply<Browsers> {
    Reply(Browsers { browsers: app.access.browsers() })
}

/// Signs the browsers of this name out, and revokes unused links for it
#[utoipa::path(delete, path = "/api/browsers/{name}", tag = "access",
    params(("name" = String, Path, description = "The name in records of their answers.")),
    responses((status = 200, description = "Signed out.", body = SignedOutBrowsers)))]
async fn end(
    _: Admin,
    State(app): State<App>,
    Extension(notifier): Extension<Notifier>,
    Path(name): Path<String>,
) -> Result<Reply<SignedOutBrowsers>, ApiError> {
    let ended = app.access.end_browsers(&name).map_err(ApiError::internal)?;
    notifier.forget_signed_out();
    Ok(Reply(SignedOutBrowsers { ended: ended as u64 }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Challenge {
    /// A new random text: 16 to 128 letters, digits, `-` and `_`.
    challenge: String,
}

/// Proves to a page, before it sends its key, that this server issued the key
///
/// The cookie identifies the browser. The proof is the HMAC-SHA-256, under the SHA-256 of the key, of `amplifier`, the
/// page's origin and the challenge, one per line without a final line break, as base64url without padding.
#[utoipa::path(get, path = "/proof", tag = "access", params(Challenge), responses(
    (status = 200, description = "The proof.", body = KeyProof),
    (status = 401, description = "Unknown cookie.", body = ErrorResponse),
    (status = 422, description = "Invalid challenge.", body = ErrorResponse),
    (status = 429, description = "Too many unknown cookies.", body = ErrorResponse),
))]
async fn proof(
    _: Public,
    State(app): State<App>,
    Extension(site): Extension<Arc<ServerOrigin>>,
    connection: Option<Extension<ClientConnection>>,
    headers: HeaderMap,
    Query(Challenge { challenge }): Query<Challenge>,
) -> Result<Reply<KeyProof>, Refusal> {
    let is_plain = challenge.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !is_plain || !(16..=128).contains(&challenge.len()) {
        let message = "invalid challenge; expected 16 to 128 letters, digits, `-` and `_`";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", message).into());
    }
    // Includes the origin, so that another server cannot obtain this proof for itself.
    let message = site.origin(&headers).map(|origin| format!("amplifier\n{origin}\n{challenge}"));
    let proof = site.cookie(&headers).zip(message).and_then(|(cookie, message)| app.access.prove(cookie, &message));
    proof.map(|proof| Reply(KeyProof { proof })).ok_or_else(|| {
        match app.access.count_wrong_secret(connection.as_deref()) {
            Ok(()) => {
                let message = "this browser is signed out; get a new link with `amplifier serve link`";
                ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", message).into()
            }
            Err(wait) => Refusal::too_many("too many attempts with a wrong secret", wait),
        }
    })
}

/// Checks the server's health
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, description = "The server works.", body = Health),
    (status = 429, description = "Too many requests at a time.", body = ErrorResponse),
    (status = 503, description = "The audit log cannot be read.", body = ErrorResponse),
))]
async fn health(_: Public, log: LogAccess, State(app): State<App>) -> Result<Reply<Health>, Refusal> {
    let read = log.read(move || {
        let newest = app.feed.cursor().saturating_sub(1);
        Ok(app.feed.records(&RecordFilter::default(), newest, 1).map(|_| ()).map_err(|error| error.to_string()))
    });
    if let Err(error) = read.await? {
        tracing::error!(error, "the audit log cannot be read");
        let message = "the audit log cannot be read; run `amplifier audit verify`";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "audit", message).into());
    }
    Ok(Reply(Health { status: "ok".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }))
}
