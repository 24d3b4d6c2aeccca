//! Metrics for Prometheus.

use amplifier_audit::prometheus::{CONTENT_TYPE, MetricKind};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::access::Viewer;
use crate::api_types::SessionState;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Returns the metrics in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain"))
)]
async fn metrics(_: Viewer, State(app): State<App>) -> impl IntoResponse {
    let mut text = app.feed.metrics();
    let sessions = super::sessions::all_sessions(&app);
    text.metric("amplifier_sessions", MetricKind::Gauge, "Sessions, by state.");
    for (word, state) in [
        ("running", SessionState::Running),
        ("waiting", SessionState::Waiting),
        ("idle", SessionState::Idle),
        ("away", SessionState::Away),
        ("ended", SessionState::Ended),
        ("failed", SessionState::Failed),
        ("gone", SessionState::Gone),
    ] {
        text.value(&[("state", word)], sessions.iter().filter(|session| session.state == state).count());
    }
    let connected = app.hub.connected();
    let pending: u64 = connected.iter().map(|session| session.pending).sum();
    text.metric("amplifier_sessions_connected", MetricKind::Gauge, "Connected sessions.");
    text.value(&[], connected.len());
    text.metric("amplifier_approvals_pending", MetricKind::Gauge, "Open approval requests.");
    text.value(&[], pending);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text.finish())
}
