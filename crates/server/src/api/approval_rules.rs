//! Approval rules.

use amplifier_core::{ApprovalRule, DefaultDecision, RuleScope};
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json};
use super::session_id::resolve;
use crate::App;
use crate::access::{Approver, Viewer};
use crate::api_types::{ApprovalRules, ErrorResponse, ListedRule};
use crate::redact;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(revoke))
}

/// An approval rule to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRule {
    /// Scope of the rule.
    scope: RuleScope,
    /// The session, for scope `session`.
    #[serde(default)]
    session: Option<String>,
    /// The folder, for scope `project`.
    #[serde(default)]
    project: Option<String>,
    /// The hook whose approval requests the rule answers.
    hook: String,
    /// Pattern of prompts; `*` matches any text. Missing if the rule is about an operation.
    #[serde(default)]
    pattern: String,
    /// Operation, such as `run cargo test *` or `write src/**`, compared letter by letter.
    #[serde(default)]
    operation: Option<String>,
    /// The decision.
    decision: DefaultDecision,
}

/// Lists the approval rules of sessions, projects and the user, and rule files that cannot be read.
#[utoipa::path(get, path = "/api/rules", tag = "rules",
    responses((status = 200, body = ApprovalRules), (status = 401, body = ErrorResponse), (status = 500, body = ErrorResponse)))]
async fn list(Viewer(who): Viewer, State(app): State<App>) -> Result<Reply<ApprovalRules>, ApiError> {
    let mut rules = app.hub.rules().await?;
    rules.rules = rules.rules.into_iter().map(|rule| redact::rule(rule, who.role)).collect();
    Ok(Reply(rules))
}

/// Adds an approval rule.
#[utoipa::path(post, path = "/api/rules", tag = "rules", request_body = NewRule,
    responses((status = 201, body = ListedRule), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 409, body = ErrorResponse), (status = 422, body = ErrorResponse), (status = 504, body = ErrorResponse)))]
async fn add(
    Approver(identity): Approver,
    State(app): State<App>,
    Json(NewRule { scope, session, project, hook, pattern, operation, decision }): Json<NewRule>,
) -> Result<(StatusCode, Reply<ListedRule>), ApiError> {
    let by = Some(identity.actor());
    let session = resolve(&app, session)?;
    let rule = ApprovalRule { scope, session, project, by, operation, ..ApprovalRule::new(hook, pattern, decision) };
    let added = app.hub.add_rule(rule).await?;
    Ok((StatusCode::CREATED, Reply(added)))
}

/// Revokes an approval rule.
#[utoipa::path(delete, path = "/api/rules/{id}", tag = "rules", params(("id" = String, Path)),
    responses((status = 204), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse), (status = 504, body = ErrorResponse)))]
async fn revoke(
    Approver(identity): Approver,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.hub.revoke(&id, identity.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
