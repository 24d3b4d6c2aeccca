//! The activity of the last hours.

use axum::Json as Reply;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::Query;
use crate::App;
use crate::access::Viewer;
use crate::api_types::Activity;
use crate::feed::MOST_HOURS;

/// Default number of hours.
const A_DAY: usize = 24;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(activity))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ActivityQuery {
    /// Number of hours: 24 by default, at most 744.
    hours: Option<usize>,
}

/// Returns the activity of each of the last hours, and the denials by hook.
#[utoipa::path(get, path = "/api/activity", tag = "sessions", params(ActivityQuery), responses((status = 200, body = Activity)))]
async fn activity(
    _: Viewer,
    State(App { feed, .. }): State<App>,
    Query(ActivityQuery { hours }): Query<ActivityQuery>,
) -> Reply<Activity> {
    Reply(feed.activity(hours.unwrap_or(A_DAY).clamp(1, MOST_HOURS)))
}
