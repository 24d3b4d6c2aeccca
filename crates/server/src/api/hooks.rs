//! Hooks: statistics, reloads, tests and dry runs.

use amplifier_link::{DryRun, DryRunReport, ReloadResult};
use axum::Json as Reply;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use super::session_id::resolve;
use crate::App;
use crate::access::{Admin, Viewer};
use crate::api_types::{ErrorResponse, HookStats};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(hooks)).routes(routes!(reload)).routes(routes!(test)).routes(routes!(try_out))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct HooksQuery {
    /// Only calls in this session.
    session: Option<String>,
}

/// Statistics of hooks, by name.
#[derive(Debug, Serialize, ToSchema)]
struct HookStatsList {
    /// The statistics.
    hooks: Vec<HookStats>,
}

/// Returns statistics of hooks: calls, results and times.
#[utoipa::path(get, path = "/api/hooks", tag = "hooks", params(HooksQuery), responses((status = 200, body = HookStatsList)))]
async fn hooks(
    _: Viewer,
    State(app): State<App>,
    Query(query): Query<HooksQuery>,
) -> Result<Reply<HookStatsList>, ApiError> {
    let session = resolve(&app, query.session)?;
    Ok(Reply(HookStatsList { hooks: app.feed.hooks(session.as_deref()) }))
}

/// Request body without fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReloadBody {}

/// The results of a reload.
#[derive(Debug, Serialize, ToSchema)]
struct ReloadResults {
    /// Number of connected sessions.
    sessions: u64,
    /// The result of each session.
    results: Vec<SessionReload>,
}

/// The result of a reload in one session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionReload {
    /// The session.
    session: String,
    #[serde(flatten)]
    reload: ReloadResult,
}

/// Reloads the bundles of all connected sessions. The request takes up to five seconds; sessions without a reply by
/// then are listed as such.
#[utoipa::path(
    post,
    path = "/api/hooks/reload",
    tag = "hooks",
    request_body = ReloadBody,
    responses((status = 200, body = ReloadResults))
)]
async fn reload(_: Admin, State(App { hub, .. }): State<App>, _: Json<ReloadBody>) -> Reply<ReloadResults> {
    let results = hub.reload().await.into_iter();
    let results: Vec<_> = results.map(|(session, reload)| SessionReload { session, reload }).collect();
    Reply(ReloadResults { sessions: results.len() as u64, results })
}

/// The bundle to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// The bundle as text; by default, the bundle of the server's folder.
    #[serde(default)]
    bundle: Option<String>,
}

/// Runs the tests of a bundle, and returns the output of `amplifier hooks test --json`.
#[utoipa::path(
    post,
    path = "/api/hooks/test",
    tag = "hooks",
    request_body = TestBody,
    responses((status = 200, description = "The results of the tests.", body = Object), (status = 422, body = ErrorResponse))
)]
async fn test(
    _: Admin,
    State(App { hub, .. }): State<App>,
    Json(body): Json<TestBody>,
) -> Result<Reply<Value>, ApiError> {
    hub.test_bundle(body.bundle).await.map(Reply).map_err(ApiError::refused_by_machine("body"))
}

/// Runs an event through the hooks, and returns the output of `amplifier hooks try --json`. The hooks and their
/// programs run; approval requests are not sent.
#[utoipa::path(
    post,
    path = "/api/hooks/try",
    tag = "hooks",
    request_body = DryRun,
    responses((status = 200, body = DryRunReport), (status = 422, body = ErrorResponse))
)]
async fn try_out(
    _: Admin,
    State(App { hub, .. }): State<App>,
    Json(dry_run): Json<DryRun>,
) -> Result<Reply<DryRunReport>, ApiError> {
    hub.dry_run(dry_run).await.map(Reply).map_err(ApiError::refused_by_machine("body"))
}
