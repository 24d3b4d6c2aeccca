//! Hooks: what they have done, and how they are read and tested again.

use axum::Json as Told;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use crate::App;
use crate::access::{Admin, Viewer};
use crate::hub::Command;
use crate::wire::{Failure, HookStats};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(hooks)).routes(routes!(reload)).routes(routes!(test))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct HooksQuery {
    /// Only what they did in this session.
    session: Option<String>,
}

/// Hooks, by name.
#[derive(Debug, Serialize, ToSchema)]
struct HooksSeen {
    /// What each has done so far.
    hooks: Vec<HookStats>,
}

/// What hooks have done: how often they were called, what they answered, and how long they took.
#[utoipa::path(get, path = "/api/hooks", tag = "hooks", params(HooksQuery), responses((status = 200, body = HooksSeen)))]
async fn hooks(_: Viewer, State(App { feed, .. }): State<App>, Query(query): Query<HooksQuery>) -> Told<HooksSeen> {
    Told(HooksSeen { hooks: feed.hooks(query.session.as_deref().filter(|session| !session.is_empty())) })
}

/// Nothing has to be said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReloadBody {}

/// Who was told.
#[derive(Debug, Serialize, ToSchema)]
struct Reloaded {
    /// How many sessions read their bundles again.
    sessions: u64,
}

/// Tells all sessions that are connected to read their bundles again.
#[utoipa::path(
    post,
    path = "/api/hooks/reload",
    tag = "hooks",
    request_body = ReloadBody,
    responses((status = 200, body = Reloaded))
)]
async fn reload(_: Admin, State(App { hub, .. }): State<App>, _: Json<ReloadBody>) -> Told<Reloaded> {
    let told = hub.connected().into_iter().filter(|one| hub.tell(&one.session, Command::Reload).is_ok()).count();
    Told(Reloaded { sessions: told as u64 })
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
    responses((status = 200, description = "What came of the tests.", body = Object), (status = 422, body = Failure))
)]
async fn test(
    _: Admin,
    State(App { host, .. }): State<App>,
    Json(body): Json<TestBody>,
) -> Result<Told<Value>, ApiError> {
    host.test_bundle(body.bundle).await.map(Told).map_err(ApiError::unusable)
}
