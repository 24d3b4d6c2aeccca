//! Questions: what waits, how it is answered, and what was decided.

use amplifier_core::ApprovalAnswer;
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
use crate::App;
use crate::access::guard::Refusal;
use crate::access::{Approver, Viewer};
use crate::hub::SubmittedAnswer;
use crate::redact;
use crate::wire::{ApprovalFlood, ErrorResponse};

/// How many decisions are listed unless more are asked for, and how many of them or of open questions at most.
const LISTED: (usize, usize) = (100, 1000);

/// The paths of questions.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(pending)).routes(routes!(history)).routes(routes!(one)).routes(routes!(answer))
}

/// Which questions are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct PendingQuery {
    /// Only those that were asked after that time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Timestamp>,
    /// How many: 1000 if not said, and at most; those that were asked at the same moment as the last one come with it.
    limit: Option<usize>,
}

/// What waits for an answer.
#[derive(Debug, Serialize, ToSchema)]
struct PendingApprovals {
    /// The questions, the oldest first, and long ones without the lines of their actions.
    approvals: Vec<OpenApproval>,
    /// How many there are, listed or not.
    pending: usize,
    /// Whether there are too many in a short time.
    busy: Option<ApprovalFlood>,
}

/// A question: open, or decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum ApprovalLookup {
    /// It is open.
    Open(Box<OpenApproval>),
    /// It is decided.
    Decided(Box<DecidedApproval>),
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// The label of an option.
    option: String,
    /// The nonce of the question.
    nonce: String,
    /// For what it holds.
    #[serde(default)]
    scope: AnswerScope,
}

/// Lists the questions that wait for an answer.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", params(PendingQuery),
    responses((status = 200, body = PendingApprovals), (status = 401, body = ErrorResponse)))]
async fn pending(
    Viewer(who): Viewer,
    State(app): State<App>,
    Query(PendingQuery { after, limit }): Query<PendingQuery>,
) -> Reply<PendingApprovals> {
    let mut open = app.hub.pending_shared();
    let pending = open.len();
    open.retain(|approval| after.is_none_or(|after| approval.created_at > after));
    lists::cut(&mut open, limit.unwrap_or(LISTED.1).min(LISTED.1), |approval| approval.created_at);
    let approvals = open.iter().map(|approval| app.hub.redacted(approval, who.role).brief()).collect();
    Reply(PendingApprovals { approvals, pending, busy: redact::flood(app.hub.flood(), who.role) })
}

/// Which decisions are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    /// Only those of this session.
    session: Option<String>,
    /// Only those about what this hook asked.
    hook: Option<String>,
    /// Only those that were recorded before the record of this number.
    before: Option<u64>,
    /// How many, at most.
    limit: Option<usize>,
}

/// Decisions.
#[derive(Debug, Serialize, ToSchema)]
struct Decisions {
    /// They, the newest first.
    decisions: Vec<DecidedApproval>,
}

/// Lists what was decided, the newest first.
#[utoipa::path(get, path = "/api/approvals/history", tag = "approvals", params(HistoryQuery),
    responses((status = 200, body = Decisions), (status = 401, body = ErrorResponse), (status = 500, body = ErrorResponse)))]
async fn history(
    _viewer: Viewer,
    log: LogAccess,
    State(app): State<App>,
    Query(HistoryQuery { session, hook, before, limit }): Query<HistoryQuery>,
) -> Result<Reply<Decisions>, Refusal> {
    let limit = limit.unwrap_or(LISTED.0).min(LISTED.1);
    // It may be read from the log.
    let read = move || app.feed.history(session.as_deref(), hook.as_deref(), before, limit);
    Ok(Reply(Decisions { decisions: log.read(read).await? }))
}

/// Shows a question: as it is asked, or what became of it.
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
        .map(|decided| Reply(ApprovalLookup::Decided(Box::new(redact::decided(decided, who.role)))))
        .ok_or_else(|| ApiError::not_found(format!("there is no question `{id}`")).into())
}

/// Reads the id of a request that is to be answered.
pub(super) fn parse_id(id: &str) -> Result<ApprovalId, ApiError> {
    id.parse().map_err(|_| ApiError::not_found(format!("there is no question `{id}`")))
}

/// Answers a question.
#[utoipa::path(post, path = "/api/approvals/{id}/answer", tag = "approvals", params(("id" = String, Path)),
    request_body = AnswerBody,
    responses((status = 200, body = DecidedApproval), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse), (status = 422, body = ErrorResponse),
        (status = 504, body = ErrorResponse)))]
async fn answer(
    Approver(identity): Approver,
    State(app): State<App>,
    Path(id): Path<String>,
    Json(AnswerBody { option, nonce, scope }): Json<AnswerBody>,
) -> Result<Reply<DecidedApproval>, Refusal> {
    let id = parse_id(&id)?;
    let answer = ApprovalAnswer { label: option, by: Some(identity.actor()) };
    let submitted = SubmittedAnswer { answer, nonce, scope };
    // A client that goes away does not take its answer back half-way.
    let answered = tokio::spawn(async move { app.answer(&id, submitted).await }).await;
    Ok(Reply(answered.map_err(ApiError::internal)?.map_err(ApiError::from)?))
}
