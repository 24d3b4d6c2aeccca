//! Standing answers.

use amplifier_core::{ApprovalRule, DefaultDecision, RuleScope};
use axum::Json as Told;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json};
use crate::App;
use crate::access::{Approver, Viewer};
use crate::masked;
use crate::wire::{Failure, Rule, Rules};

/// The paths of standing answers.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(revoke))
}

/// A standing answer that is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// For what it holds.
    scope: RuleScope,
    /// The session, if it holds for one.
    #[serde(default)]
    session: Option<String>,
    /// The folder, if it holds for one.
    #[serde(default)]
    project: Option<String>,
    /// The hook whose questions it answers.
    hook: String,
    /// The questions: `*` stands for any text.
    pattern: String,
    /// What it answers.
    decision: DefaultDecision,
}

/// Lists the standing answers of sessions, of projects and of the person, and the files of them that cannot be read.
#[utoipa::path(get, path = "/api/rules", tag = "rules",
    responses((status = 200, body = Rules), (status = 401, body = Failure), (status = 500, body = Failure)))]
async fn list(Viewer(who): Viewer, State(app): State<App>) -> Result<Told<Rules>, ApiError> {
    let mut rules = app.hub.rules().await?;
    rules.rules = rules.rules.into_iter().map(|rule| masked::rule(rule, who.role)).collect();
    Ok(Told(rules))
}

/// Adds a standing answer.
#[utoipa::path(post, path = "/api/rules", tag = "rules", request_body = Wanted,
    responses((status = 201, body = Rule), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 409, body = Failure), (status = 422, body = Failure), (status = 504, body = Failure)))]
async fn add(
    Approver(identity): Approver,
    State(app): State<App>,
    Json(Wanted { scope, session, project, hook, pattern, decision }): Json<Wanted>,
) -> Result<(StatusCode, Told<Rule>), ApiError> {
    let by = Some(identity.actor());
    let rule = ApprovalRule { scope, session, project, by, ..ApprovalRule::new(hook, pattern, decision) };
    let added = app.hub.add_rule(rule).await?;
    Ok((StatusCode::CREATED, Told(added)))
}

/// Takes a standing answer back.
#[utoipa::path(delete, path = "/api/rules/{id}", tag = "rules", params(("id" = String, Path)),
    responses((status = 204), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure), (status = 504, body = Failure)))]
async fn revoke(
    Approver(identity): Approver,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.hub.revoke(&id, identity.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
