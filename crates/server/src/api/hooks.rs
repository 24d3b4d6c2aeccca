//! Hooks: what they have done, and how they are read again, tested and tried out.

use amplifier_link::{DryRun, DryRunReport, ReloadResult};
use axum::Json as Reply;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use crate::App;
use crate::access::{Admin, Viewer};
use crate::wire::{ErrorResponse, HookStats};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(hooks)).routes(routes!(reload)).routes(routes!(test)).routes(routes!(try_out))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct HooksQuery {
    /// Only what they did in this session.
    session: Option<String>,
}

/// Hooks, by name.
#[derive(Debug, Serialize, ToSchema)]
struct HookStatsList {
    /// What each has done so far.
    hooks: Vec<HookStats>,
}

/// What hooks have done: how often they were called, what they answered, and how long they took.
#[utoipa::path(get, path = "/api/hooks", tag = "hooks", params(HooksQuery), responses((status = 200, body = HookStatsList)))]
async fn hooks(
    _: Viewer,
    State(App { feed, .. }): State<App>,
    Query(query): Query<HooksQuery>,
) -> Reply<HookStatsList> {
    Reply(HookStatsList { hooks: feed.hooks(query.session.as_deref().filter(|session| !session.is_empty())) })
}

/// Nothing has to be said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReloadBody {}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
struct ReloadResults {
    /// How many sessions are connected.
    sessions: u64,
    /// What came of it in each.
    results: Vec<SessionReload>,
}

/// What came of it in one session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionReload {
    /// Which.
    session: String,
    #[serde(flatten)]
    reload: ReloadResult,
}

/// Has all sessions that are connected look at their bundles at once, and says what came of it in each. It takes up to five seconds:
/// sessions that have not answered by then are named.
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

/// Which bundle is tested.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// The bundle as text; that of the server's folder if none is given.
    #[serde(default)]
    bundle: Option<String>,
}

/// Runs the tests of a bundle, and gives what `amplifier hooks test --json` prints.
#[utoipa::path(
    post,
    path = "/api/hooks/test",
    tag = "hooks",
    request_body = TestBody,
    responses((status = 200, description = "What came of the tests.", body = Object), (status = 422, body = ErrorResponse))
)]
async fn test(
    _: Admin,
    State(App { hub, .. }): State<App>,
    Json(body): Json<TestBody>,
) -> Result<Reply<Value>, ApiError> {
    hub.test_bundle(body.bundle).await.map(Reply).map_err(ApiError::refused_by_machine("body"))
}

/// Says what would come of an event, hook by hook, with times: what `amplifier hooks try --json` prints. The hooks run, and the programs that
/// they are made of; nobody is asked.
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
