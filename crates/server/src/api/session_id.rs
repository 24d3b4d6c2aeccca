//! Session ids in requests: whole, or the beginning or the end of one.

use amplifier_core::session_id;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::error::ApiError;
use crate::App;
use crate::feed::Feed;
use crate::hub::Hub;

/// The session of the path. An id that no known session matches stays as it is, so that the route reports it.
///
/// Must follow the role in a handler's arguments.
#[derive(Debug)]
pub(super) struct SessionPath(pub(super) String);

impl FromRequestParts<App> for SessionPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Path(id) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|_| ApiError::from_status(StatusCode::NOT_FOUND, None))?;
        Ok(Self(find(app, id)?))
    }
}

/// Resolves the session of a query; an empty one counts as missing.
///
/// # Errors
/// If several sessions match.
pub(super) fn resolve(app: &App, session: Option<String>) -> Result<Option<String>, ApiError> {
    session.filter(|session| !session.is_empty()).map(|session| find(app, session)).transpose()
}

fn find(App { feed, hub, .. }: &App, wanted: String) -> Result<String, ApiError> {
    Ok(find_known(feed, hub, &wanted)?.unwrap_or(wanted))
}

fn find_known(feed: &Feed, hub: &Hub, wanted: &str) -> Result<Option<String>, ApiError> {
    let ambiguous = |error: session_id::AmbiguousSessionId| ApiError::conflict("ambiguous", error.to_string());
    // A connected session may have no records yet.
    let connected: Vec<String> = hub.connected().into_iter().map(|about| about.session).collect();
    let recorded = feed.find_session(wanted).map_err(ambiguous)?;
    let known = connected.iter().chain(&recorded).map(String::as_str);
    let unique: std::collections::BTreeSet<&str> = known.collect();
    Ok(session_id::find(wanted, unique).map_err(ambiguous)?.map(str::to_owned))
}
