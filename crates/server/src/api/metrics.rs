//! Numbers for those who watch many machines.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::access::Viewer;
use crate::feed::head;
use crate::wire::State as Doing;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// What happens, in numbers: the text form of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain"))
)]
async fn metrics(_: Viewer, State(app): State<App>) -> impl IntoResponse {
    let mut text = app.feed.metrics();
    let sessions = super::sessions::joined(&app);
    head(&mut text, "amplifier_sessions", "gauge", "Sessions, by what they do.");
    for (word, state) in [
        ("running", Doing::Running),
        ("waiting", Doing::Waiting),
        ("idle", Doing::Idle),
        ("away", Doing::Away),
        ("ended", Doing::Ended),
        ("gone", Doing::Gone),
    ] {
        let count = sessions.iter().filter(|session| session.state == state).count();
        let _ = writeln!(text, "amplifier_sessions{{state=\"{word}\"}} {count}");
    }
    let connected = app.hub.connected();
    head(&mut text, "amplifier_sessions_connected", "gauge", "Sessions that are connected.");
    let _ = writeln!(text, "amplifier_sessions_connected {}", connected.len());
    head(&mut text, "amplifier_approvals_pending", "gauge", "Questions that wait for an answer.");
    let pending: u64 = connected.iter().map(|session| session.pending).sum();
    let _ = writeln!(text, "amplifier_approvals_pending {pending}");
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
