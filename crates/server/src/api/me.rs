//! Who is asking, and how others get in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse};
use axum::{Extension, Json as Answer};
use jiff::{SignedDuration, Timestamp};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json};
use crate::App;
use crate::access::guard::Site;
use crate::access::{AccessError, Admin, Anyone, Role, Viewer};
use crate::feed::Filter;
use crate::wire::{Health, Link, LinkWanted, Me};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(me)).routes(routes!(leave)).routes(routes!(links)).routes(routes!(health))
}

/// Who is asking
#[utoipa::path(get, path = "/api/me", tag = "access", responses((status = 200, description = "That is you.", body = Me)))]
async fn me(Viewer(who): Viewer) -> Answer<Me> {
    Answer(Me { name: who.name, role: who.role.to_string() })
}

/// Leave: the browser's cookie ends
#[utoipa::path(post, path = "/api/leave", tag = "access", responses((status = 204, description = "The cookie, if there was one, is worth nothing now.")))]
async fn leave(
    _: Viewer,
    State(app): State<App>,
    Extension(site): Extension<Arc<Site>>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    if let Some(cookie) = site.cookie(&headers) {
        app.access.leave(cookie).map_err(ApiError::internal)?;
    }
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(SET_COOKIE, site.set_cookie(""))])))
}

/// Make a link that lets one browser in, once, within ten minutes
#[utoipa::path(post, path = "/api/links", tag = "access", request_body = LinkWanted, responses((status = 201, description = "The link. It is not shown again.", body = Link)))]
async fn links(
    _: Admin,
    State(app): State<App>,
    Extension(site): Extension<Arc<Site>>,
    Json(LinkWanted { name, role }): Json<LinkWanted>,
) -> Result<(StatusCode, Answer<Link>), ApiError> {
    let made = role.parse::<Role>().and_then(|role| app.access.code(&name, role));
    let code = made.map_err(|error| match error {
        AccessError::NoName | AccessError::NoRole(_) => ApiError::unusable(error.to_string()),
        error => ApiError::internal(error),
    })?;
    let lasts = SignedDuration::try_from(app.access.code_lifetime()).map_err(ApiError::internal)?;
    let link = Link { url: site.link(&code), expires_at: Timestamp::now() + lasts };
    Ok((StatusCode::CREATED, Answer(link)))
}

/// Whether the server works
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, description = "It works.", body = Health),
    (status = 503, description = "The audit log cannot be read.", body = crate::wire::Failure),
))]
async fn health(_: Anyone, State(app): State<App>) -> Result<Answer<Health>, ApiError> {
    let read = tokio::task::spawn_blocking(move || {
        let newest = app.feed.cursor().saturating_sub(1);
        app.feed.records(&Filter::default(), newest, 1).map(|_| ()).map_err(|error| error.to_string())
    });
    if let Err(error) = read.await.map_err(ApiError::internal)? {
        tracing::error!(error, "the audit log cannot be read");
        let message = "the audit log cannot be read; `amplifier audit verify` says more";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "audit", message));
    }
    Ok(Answer(Health { status: "ok".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }))
}
