//! The HTTP API.

mod activity;
mod answer_link;
mod approval_rules;
mod approvals;
mod audit;
pub(crate) mod error;
mod events;
mod hooks;
mod lists;
mod log_access;
mod me;
mod metrics;
mod openapi;
mod pages;
mod push;
mod search;
mod session_id;
mod sessions;
mod stream;

use std::any::Any;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::App;
use crate::access::guard::BODY_LIMIT;
use crate::fair_semaphore::FairSemaphore;
use crate::push::Notifier;
use error::ApiError;
use openapi::RenderedDescription;
use stream::StreamBroadcast;

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        .merge(activity::routes())
        .merge(answer_link::routes())
        .merge(approvals::routes())
        .merge(audit::routes())
        .merge(events::routes())
        .merge(hooks::routes())
        .merge(me::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
        .merge(pages::routes())
        .merge(push::routes())
        .merge(approval_rules::routes())
        .merge(search::routes())
        .merge(sessions::routes())
        .merge(stream::routes())
}

/// Returns the OpenAPI description, as `GET /api/openapi.json` does.
pub fn description() -> Value {
    let (_, described) = routes().split_for_parts();
    openapi::with_roles(&described)
}

/// Returns all routes. Without the guard in front, they refuse nearly every request.
pub(crate) fn router(app: App, notifier: Notifier) -> (Router, Value) {
    let (router, described) = routes().split_for_parts();
    let description = openapi::with_roles(&described);
    let router = router
        .layer(Extension(StreamBroadcast::new(app.clone())))
        .layer(Extension(notifier))
        .with_state(app)
        .layer(Extension(Arc::new(RenderedDescription::new(&description))))
        .layer(Extension(FairSemaphore::new(log_access::AT_ONCE)))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(CatchPanicLayer::custom(panicked));
    (router, description)
}

/// Hides the message of a panic, which goes to the server's log only.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    ApiError::internal("a handler panicked").into_response()
}
