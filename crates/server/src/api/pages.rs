//! Pages: the console, and the target of sign-in links.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, body::Body};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{DOCTYPE, Markup, html};
use rust_embed::RustEmbed;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Page, Query};
use crate::App;
use crate::access::guard::{ClientConnection, ServerOrigin};
use crate::access::{NewBrowserSession, Public};

#[derive(RustEmbed)]
#[folder = "src/console/"]
struct Console;

/// Style of the server's own pages.
#[derive(RustEmbed)]
#[folder = "src/api/style/"]
struct Style;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(console)).routes(routes!(enter))
}

/// Returns the console
#[utoipa::path(get, path = "/", tag = "console", responses((status = 200, description = "The page.", content_type = "text/html", body = String)))]
async fn index(_: Public, headers: HeaderMap) -> Result<Response, ApiError> {
    file("index.html", &headers)
}

/// Returns a file of the console
#[utoipa::path(get, path = "/console/{path}", tag = "console", params(("path" = String, Path, description = "The name of the file.")), responses(
    (status = 200, description = "The file.", content_type = "application/octet-stream", body = String),
    (status = 304, description = "Not modified."),
    (status = 404, description = "Unknown file.", body = crate::api_types::ErrorResponse),
))]
async fn console(_: Public, Path(path): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    file(&path, &headers)
}

/// Returns a file, or 304 if the browser has it.
fn file(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let found = Console::get(path).or_else(|| Style::get(path));
    let found = found.ok_or_else(|| ApiError::from_status(StatusCode::NOT_FOUND, None))?;
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(found.metadata.sha256_hash()));
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|header| header.to_str().ok());
    if known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(CONTENT_TYPE, kind(path).to_owned()), (ETAG, tag)], Body::from(found.data.into_owned())).into_response())
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SignInQuery {
    /// Code of the link.
    #[serde(default)]
    code: String,
}

/// Signs a browser in: the target of a one-time link
#[utoipa::path(get, path = "/enter", tag = "access", params(SignInQuery), responses(
    (status = 200, description = "The console. The browser is signed in by a cookie, and by a key in the page's memory.", content_type = "text/html", body = String),
    (status = 403, description = "The code is used, expired or invalid. A page shows how to get another.", content_type = "text/html", body = String),
    (status = 429, description = "Too many wrong codes.", content_type = "text/html", body = String),
))]
async fn enter(
    _: Public,
    State(app): State<App>,
    Extension(site): Extension<Arc<ServerOrigin>>,
    connection: Option<Extension<ClientConnection>>,
    method: Method,
    Query(SignInQuery { code }): Query<SignInQuery>,
) -> Result<Response, ApiError> {
    // A HEAD request must not redeem the code.
    if method != Method::GET {
        return Err(ApiError::from_status(StatusCode::METHOD_NOT_ALLOWED, None));
    }
    if let Some(NewBrowserSession { cookie, key }) = app.access.sign_in(&code).map_err(ApiError::internal)? {
        return Ok(([(SET_COOKIE, site.set_cookie(&cookie))], Html(console_page(&key)?)).into_response());
    }
    let mut response = match app.access.count_wrong_secret(connection.as_deref()) {
        Ok(()) => (StatusCode::FORBIDDEN, Html(expired_link_page())).into_response(),
        Err(wait) => {
            let seconds = wait.as_secs() + 1;
            (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds.to_string())], Html(expired_link_page()))
                .into_response()
        }
    };
    response.extensions_mut().insert(Page);
    Ok(response)
}

/// Returns the console with the key in its memory. The response is not stored (`Cache-Control: no-store`), so the key
/// never reaches a disk.
fn console_page(key: &str) -> Result<String, ApiError> {
    let page = Console::get("index.html").ok_or_else(|| ApiError::from_status(StatusCode::NOT_FOUND, None))?;
    let page = String::from_utf8(page.data.into_owned()).map_err(ApiError::internal)?;
    let meta = html! { meta name="amplifier-key" content=(key); };
    Ok(page.replacen("</head>", &format!("{}</head>", meta.into_string()), 1))
}

fn expired_link_page() -> String {
    let page = page(
        "This link is used or expired",
        html! {
            h1 { "This link is used or expired" }
            p { "A link signs one browser in, once, within ten minutes." }
            p { "For a new link, run this on the server's machine:" }
            pre { code { "amplifier serve link" } }
        },
    );
    page.into_string()
}

/// Renders a page of the server itself.
pub(super) fn page(title: &str, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Amplifier" }
                link rel="stylesheet" href="/console/page.css";
            }
            body { main { (content) } }
        }
    }
}
