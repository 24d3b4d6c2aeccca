//! The audit log: verification status and proofs.

use amplifier_audit::AuditError;
use axum::Json as Reply;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json};
use super::log_access::LogAccess;
use crate::App;
use crate::access::Viewer;
use crate::access::guard::Refusal;
use crate::api_types::{AuditStatus, ErrorResponse};
use crate::feed::FeedError;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(status)).routes(routes!(verify)).routes(routes!(proof))
}

/// Returns the verification status of the audit log.
#[utoipa::path(get, path = "/api/audit", tag = "audit", responses((status = 200, body = AuditStatus)))]
async fn status(_: Viewer, State(App { feed, .. }): State<App>) -> Reply<AuditStatus> {
    Reply(feed.status())
}

/// Request body without fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerifyBody {}

/// Verifies the whole audit log now.
#[utoipa::path(
    post,
    path = "/api/audit/verify",
    tag = "audit",
    request_body = VerifyBody,
    responses((status = 200, body = AuditStatus), (status = 503, body = ErrorResponse))
)]
async fn verify(
    _: Viewer,
    log: LogAccess,
    State(App { feed, .. }): State<App>,
    _: Json<VerifyBody>,
) -> Result<Reply<AuditStatus>, Refusal> {
    let _permit = log.acquire().await?;
    Ok(Reply(feed.verify().await.map_err(ApiError::from)?))
}

/// Returns the proof that a record is in the log. Checking it takes only the public key.
///
/// `amplifier audit prove --check` checks it.
#[utoipa::path(
    get,
    path = "/api/audit/proof/{seq}",
    tag = "audit",
    params(("seq" = u64, Path, description = "The number of the record.")),
    responses((status = 200, description = "The proof.", body = Object), (status = 404, body = ErrorResponse))
)]
async fn proof(
    _: Viewer,
    log: LogAccess,
    State(App { feed, .. }): State<App>,
    Path(seq): Path<String>,
) -> Result<Reply<Value>, Refusal> {
    let no_record = || ApiError::not_found("record not found, or not yet covered by a checkpoint");
    let seq: u64 = seq.parse().map_err(|_| no_record())?;
    let proof = log.read(move || match feed.proof(seq) {
        Err(FeedError::Audit(AuditError::NoRecord { .. })) => Ok(None),
        proof => proof.map(Some),
    });
    Ok(Reply(proof.await?.ok_or_else(no_record)?))
}
