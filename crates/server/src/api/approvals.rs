//! Approval requests: open ones, answers and decisions.

use amplifier_core::{ApprovalAnswer, ChosenRule};
use amplifier_link::{AnswerScope, ApprovalId, DecidedApproval, OpenApproval};
use axum::Json as Reply;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use super::lists;
use super::log_access::LogAccess;
use super::session_id::resolve;
use crate::App;
use crate::access::guard::Refusal;
use crate::access::{Approver, Viewer};
use crate::api_types::{ApprovalFlood, ErrorResponse};
use crate::hub::SubmittedAnswer;
use crate::redact;

/// Default and maximum number of decisions in a response; the maximum also limits open requests.
const LISTED: (usize, usize) = (100, 1000);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(pending)).routes(routes!(history)).routes(routes!(one)).routes(routes!(answer))
}

/// Filter of open approval requests.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct PendingQuery {
    /// Only requests created after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Timestamp>,
    /// Only requests of sessions on this machine.
    machine: Option<String>,
    /// Maximum number, 1000 by default and at most; requests created at the same moment as the last one are included.
    limit: Option<usize>,
}

/// Open approval requests.
#[derive(Debug, Serialize, ToSchema)]
struct PendingApprovals {
    /// The requests, the oldest first. Long previews are omitted.
    approvals: Vec<OpenApproval>,
    /// Number of all open requests.
    pending: usize,
    /// Report about too many requests in a short time.
    busy: Option<ApprovalFlood>,
}

/// An approval request: open, or decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum ApprovalLookup {
    /// An open request.
    Open(Box<OpenApproval>),
    /// A decided request.
    Decided(Box<DecidedApproval>),
}

/// An answer to an approval request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// Label of the chosen option.
    option: String,
    /// Reason for a denial, which the model reads; at most 2,000 characters. No effect if the option allows.
    #[serde(default)]
    reason: Option<String>,
    /// Nonce of the request.
    nonce: String,
    /// Scope of the answer.
    #[serde(default)]
    scope: AnswerScope,
    /// One of the request's `offers`, with an option that always allows: `operations` and `scope` as offered.
    #[serde(default)]
    rule: Option<ChosenRule>,
}

/// Lists the open approval requests.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", params(PendingQuery),
    responses((status = 200, body = PendingApprovals), (status = 401, body = ErrorResponse)))]
async fn pending(
    Viewer(who): Viewer,
    State(app): State<App>,
    Query(PendingQuery { after, machine, limit }): Query<PendingQuery>,
) -> Reply<PendingApprovals> {
    let mut open = app.hub.pending_shared();
    let pending = open.len();
    open.retain(|approval| after.is_none_or(|after| approval.created_at > after));
    open.retain(|approval| machine.is_none() || approval.machine == machine);
    lists::cut(&mut open, limit.unwrap_or(LISTED.1).min(LISTED.1), |approval| approval.created_at);
    let approvals = open.iter().map(|approval| app.hub.redacted(approval, who.role).brief()).collect();
    Reply(PendingApprovals { approvals, pending, busy: redact::flood(app.hub.flood(), who.role) })
}

/// Filter of decisions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    /// Only decisions of this session.
    session: Option<String>,
    /// Only decisions on requests of this hook.
    hook: Option<String>,
    /// Only decisions recorded before this record number.
    before: Option<u64>,
    /// Maximum number.
    limit: Option<usize>,
}

/// Decisions.
#[derive(Debug, Serialize, ToSchema)]
struct Decisions {
    /// The decisions, the newest first.
    decisions: Vec<DecidedApproval>,
}

/// Lists decisions, the newest first.
#[utoipa::path(get, path = "/api/approvals/history", tag = "approvals", params(HistoryQuery),
    responses((status = 200, body = Decisions), (status = 401, body = ErrorResponse), (status = 500, body = ErrorResponse)))]
async fn history(
    _viewer: Viewer,
    log: LogAccess,
    State(app): State<App>,
    Query(HistoryQuery { session, hook, before, limit }): Query<HistoryQuery>,
) -> Result<Reply<Decisions>, Refusal> {
    let limit = limit.unwrap_or(LISTED.0).min(LISTED.1);
    let session = resolve(&app, session)?;
    // May read the log.
    let read = move || app.feed.history(session.as_deref(), hook.as_deref(), before, limit);
    Ok(Reply(Decisions { decisions: log.read(read).await? }))
}

/// Returns an approval request: open, or with its decision.
#[utoipa::path(get, path = "/api/approvals/{id}", tag = "approvals", params(("id" = String, Path)),
    responses((status = 200, body = ApprovalLookup), (status = 401, body = ErrorResponse), (status = 404, body = ErrorResponse),
        (status = 500, body = ErrorResponse)))]
async fn one(
    Viewer(who): Viewer,
    log: LogAccess,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Reply<ApprovalLookup>, Refusal> {
    let known = id.parse::<ApprovalId>().ok();
    if let Some(open) = known.as_ref().and_then(|id| app.hub.approval(id)) {
        let shown = OpenApproval::clone(&app.hub.redacted(&open, who.role));
        return Ok(Reply(ApprovalLookup::Open(Box::new(shown))));
    }
    let decided = match known.as_ref().and_then(|id| app.hub.decision(id)) {
        Some(decided) => Some(decided),
        None => {
            let wanted = id.clone();
            log.read(move || app.feed.find_decision(&wanted)).await?.map(|past| past.decided)
        }
    };
    decided
        .map(|decided| Reply(ApprovalLookup::Decided(Box::new(redact::decision(decided, who.role)))))
        .ok_or_else(|| ApiError::not_found(format!("unknown approval request `{id}`")).into())
}

pub(super) fn parse_id(id: &str) -> Result<ApprovalId, ApiError> {
    id.parse().map_err(|_| ApiError::not_found(format!("unknown approval request `{id}`")))
}

/// Answers an approval request.
#[utoipa::path(post, path = "/api/approvals/{id}/answer", tag = "approvals", params(("id" = String, Path)),
    request_body = AnswerBody,
    responses((status = 200, body = DecidedApproval), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse), (status = 422, body = ErrorResponse),
        (status = 504, body = ErrorResponse)))]
async fn answer(
    Approver(identity): Approver,
    State(app): State<App>,
    Path(id): Path<String>,
    Json(AnswerBody { option, reason, nonce, scope, rule }): Json<AnswerBody>,
) -> Result<Reply<DecidedApproval>, Refusal> {
    let id = parse_id(&id)?;
    let answer = ApprovalAnswer { label: option, by: Some(identity.actor()), reason, rule };
    let submitted = SubmittedAnswer { answer, nonce, scope };
    // The answer is completed also if the client disconnects.
    let answered = tokio::spawn(async move { app.answer(&id, submitted).await }).await;
    Ok(Reply(answered.map_err(ApiError::internal)?.map_err(ApiError::from)?))
}
