//! Records of the audit log, and timelines of sessions.

use std::time::Duration;

use amplifier_audit::{Kind, RecordFilter};
use amplifier_core::{EventPattern, InvalidEventName};
use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Query};
use super::log_access::LogAccess;
use super::session_id::{SessionPath, resolve};
use crate::App;
use crate::access::Viewer;
use crate::access::guard::{ClientConnection, Refusal};
use crate::api_types::ErrorResponse;
use crate::feed::{FeedError, Page, Timeline};

/// Limit in seconds of waiting for the first record.
const LONGEST_WAIT: f64 = 30.0;

/// Default and maximum number of records in a response.
const USUALLY: usize = 100;
const MOST: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events)).routes(routes!(timeline))
}

/// Filter of records.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordQuery {
    /// Only records of this session.
    pub(super) session: Option<String>,
    /// Only records of this event; `*` matches any text, as in `tool:*`.
    pub(super) event: Option<String>,
    /// Only records of this kind, such as `hook_report`; several kinds are separated by commas.
    pub(super) kind: Option<String>,
    /// Only records of this hook: results, approval requests, messages, denials.
    pub(super) hook: Option<String>,
    /// Only records that contain this text. Large bodies are not searched.
    pub(super) text: Option<String>,
    /// Only records from this time on.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(super) since: Option<Timestamp>,
    /// Only records before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(super) until: Option<Timestamp>,
}

impl RecordQuery {
    pub(super) fn filter(self, app: &App) -> Result<RecordFilter, ApiError> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let kinds = some(self.kind).map(|kinds| kinds.split(',').map(kind).collect::<Result<Vec<Kind>, ApiError>>());
        Ok(RecordFilter {
            session: resolve(app, self.session)?,
            event: some(self.event).map(|event| EventPattern::filter(&event)).transpose().map_err(invalid_event)?,
            kinds: kinds.transpose()?.unwrap_or_default(),
            hook: some(self.hook),
            text: some(self.text),
            since: self.since.map(moment),
            until: self.until.map(moment),
        })
    }
}

/// Returns a time in the format of records.
pub(super) fn moment(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn invalid_event(error: InvalidEventName) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", error.to_string())
}

fn kind(word: &str) -> Result<Kind, ApiError> {
    Kind::from_word(word.trim()).ok_or_else(|| {
        let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        let message = format!("unknown kind `{}`; expected one of {}", word.escape_debug(), words.join(", "));
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", message)
    })
}

// Not flattened: query values are text, and serde does not parse numbers inside a flattened struct from text.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    /// Records from this number on.
    after: Option<u64>,
    /// The last records before this number; excludes `after` and `wait`.
    before: Option<u64>,
    /// Maximum number: 100 by default, at most 1000.
    limit: Option<usize>,
    /// Seconds to wait for the first record, up to 30.
    wait: Option<f64>,
}

/// Lists records of the audit log, in order.
#[utoipa::path(
    get,
    path = "/api/audit/records",
    tag = "events",
    params(PageQuery, RecordQuery),
    responses((status = 200, body = Page), (status = 422, body = ErrorResponse))
)]
async fn events(
    Viewer(who): Viewer,
    log: LogAccess,
    State(app): State<App>,
    Query(query): Query<PageQuery>,
    Query(wanted): Query<RecordQuery>,
    Extension(ClientConnection { mut stopping, .. }): Extension<ClientConnection>,
) -> Result<Response, Refusal> {
    let filter = wanted.filter(&app)?;
    let App { feed, access, .. } = app;
    let limit = query.limit.unwrap_or(USUALLY).clamp(1, MOST);
    if let Some(before) = query.before {
        if query.after.is_some() || query.wait.is_some() {
            let message = "`before` cannot be combined with `after` or `wait`";
            return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", message).into());
        }
        let page = log.read(move || feed.records_before(&filter, before, limit)).await?;
        return Ok(axum::Json(page).into_response());
    }
    let wait = query.wait.unwrap_or(0.0);
    if !(0.0..=LONGEST_WAIT).contains(&wait) {
        let message = "invalid `wait`; expected 0 to 30 seconds";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "query", message).into());
    }
    let mut until = Instant::now() + Duration::from_secs_f64(wait);
    let mut after = query.after.unwrap_or(0);
    let mut changed = feed.changed();
    loop {
        // Marked before reading, so that nothing is missed.
        changed.mark_unchanged();
        let (reader, wanted) = (feed.clone(), filter.clone());
        let batch = log.read(move || reader.batch(&wanted, after, limit)).await?;
        let is_late = Instant::now() >= until;
        // A user who was signed out meanwhile receives nothing.
        if wait > 0.0 && !access.is_signed_in(&who) {
            let message = "you are signed out, or your role has changed; sign in again";
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", message).into());
        }
        if batch.count > 0 || is_late {
            let body =
                format!("{{\"records\":[{}],\"cursor\":{},\"first\":{}}}", batch.events, batch.cursor, batch.first);
            return Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response());
        }
        let is_behind = batch.cursor > after && batch.cursor < feed.cursor();
        after = batch.cursor;
        if !is_behind {
            // After the time limit, or at shutdown, the records read so far are returned.
            tokio::select! {
                _ = tokio::time::timeout_at(until, changed.changed()) => {}
                () = stopping.requested() => until = Instant::now(),
            }
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct TimelineQuery {
    /// Items from this record on: the cursor of the previous response.
    after: Option<u64>,
    /// Maximum number of items: 200 by default, at most 1000.
    limit: Option<usize>,
}

/// Returns the timeline of a session: events with hook reports, approvals, injections and messages.
#[utoipa::path(
    get,
    path = "/api/sessions/{id}/timeline",
    tag = "sessions",
    params(("id" = String, Path, description = "The session: its id, or the beginning or end of it."), TimelineQuery),
    responses((status = 200, body = Timeline), (status = 404, body = ErrorResponse))
)]
async fn timeline(
    _: Viewer,
    log: LogAccess,
    State(App { feed, hub, .. }): State<App>,
    SessionPath(id): SessionPath,
    Query(query): Query<TimelineQuery>,
) -> Result<axum::Json<Timeline>, Refusal> {
    let limit = query.limit.unwrap_or(2 * USUALLY).clamp(1, MOST);
    let after = query.after.unwrap_or(0);
    let (reader, session) = (feed.clone(), id.clone());
    let timeline = log.read(move || reader.timeline(&session, after, limit)).await?;
    let is_known = !timeline.items.is_empty() || feed.session(&id).is_some() || hub.session(&id).is_some();
    if !is_known {
        return Err(ApiError::not_found("unknown session; see `GET /api/sessions`").into());
    }
    Ok(axum::Json(timeline))
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        tracing::warn!(%error, "the audit log could not be read");
        // These errors describe the log, and reveal nothing about the machine except file names.
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "audit", error.to_string())
    }
}
