//! Search in the content of the audit log.

use axum::Json as Reply;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Query};
use super::events::moment;
use super::log_access::LogAccess;
use super::session_id::resolve;
use crate::App;
use crate::access::Viewer;
use crate::access::guard::Refusal;
use crate::api_types::{ErrorResponse, SearchMatch};
use crate::feed::SearchQuery;

/// Default and maximum number of matches in a response.
const LISTED: (usize, usize) = (50, 200);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    /// Up to 8 words. All of them must be in the same text, in any case.
    text: String,
    /// Only in this session.
    session: Option<String>,
    /// Only records from this time on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only records before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// The cursor of the previous response.
    cursor: Option<String>,
    /// Maximum number: 50 by default, at most 200.
    limit: Option<usize>,
}

/// The matches in a part of the log.
#[derive(Debug, Serialize, ToSchema)]
struct SearchResults {
    /// The matches, the newest first.
    matches: Vec<SearchMatch>,
    /// Continues the search with older records. Missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Time of the oldest record that was searched; missing if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched_since: Option<String>,
}

/// Searches prompts, inputs of tools, reasons and approval requests, the newest first.
///
/// A request reads a limited part of the log, so there may be more matches although there are few or none: `cursor` continues. Bodies above 64 KiB
/// are not searched. Secrets were removed before they were recorded, and are not found.
#[utoipa::path(get, path = "/api/search", tag = "sessions", params(SearchParameters),
    responses((status = 200, body = SearchResults), (status = 422, body = ErrorResponse)))]
async fn search(
    _: Viewer,
    log: LogAccess,
    State(app): State<App>,
    Query(SearchParameters { text, session, since, until, cursor, limit }): Query<SearchParameters>,
) -> Result<Reply<SearchResults>, Refusal> {
    let query = SearchQuery::parse(&text)
        .ok_or_else(|| invalid("invalid search; enter 1 to 8 words of at most 100 characters"))?;
    let query =
        SearchQuery { session: resolve(&app, session)?, since: since.map(moment), until: until.map(moment), ..query };
    let before = cursor
        .map_or(Some(u64::MAX), |cursor| decode(&cursor))
        .ok_or_else(|| invalid("invalid cursor; use the one of the previous response"))?;
    let limit = limit.unwrap_or(LISTED.0).clamp(1, LISTED.1);
    let page = log.read(move || app.feed.search(&query, before, limit)).await?;
    let cursor = (!page.is_end).then(|| encode(page.searched_from));
    Ok(Reply(SearchResults { matches: page.matches, cursor, searched_since: page.searched_since }))
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", message)
}

/// Returns an opaque cursor.
fn encode(seq: u64) -> String {
    URL_SAFE_NO_PAD.encode(seq.to_be_bytes())
}

fn decode(cursor: &str) -> Option<u64> {
    Some(u64::from_be_bytes(URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok()?))
}
