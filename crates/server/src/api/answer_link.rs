//! The page of an answer link: shows one approval request, and takes one answer.
//!
//! The page works without scripts and without signing in. Chat programs follow links for previews, so following it changes
//! nothing. The answer is a form with the secret, and with the nonce and the digest of what the page showed.

use std::sync::Arc;

use amplifier_core::text::{EscapeMode, Piece, pieces};
use amplifier_core::{ActionPreview, ApprovalAnswer, DefaultDecision, Effect, PreviewRow, PreviewRowKind};
use amplifier_link::{AnswerScope, DecidedApproval, OpenApproval};
use axum::extract::{Form, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, http::HeaderMap};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Page, Query};
use super::pages::page;
use crate::App;
use crate::access::guard::{ClientConnection, FormPage};
use crate::access::{AnswerLink, LinkVisitor};
use crate::hub::{HubError, HubErrorCode, SubmittedAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(answer))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct AnswerLinkQuery {
    /// Secret of the link.
    #[serde(default)]
    code: String,
}

/// The form of an answer link's page.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerForm {
    /// Secret of the link.
    code: String,
    /// Nonce of the request that the page showed.
    nonce: String,
    /// Digest of the request that the page showed.
    digest: String,
    /// The answer.
    answer: LinkAnswer,
    /// Reason for a denial, which the model reads.
    #[serde(default)]
    reason: String,
}

/// An answer by a link. None of them lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum LinkAnswer {
    /// The operation may run this time.
    AllowOnce,
    /// The operation does not run.
    Deny,
}

/// Shows the approval request of an answer link; this has no effect
#[utoipa::path(get, path = "/answer", tag = "approvals", params(AnswerLinkQuery), responses(
    (status = 200, description = "The request, with a form for the answer.", content_type = "text/html", body = String),
    (status = 403, description = "The link is used, expired or invalid.", content_type = "text/html", body = String),
    (status = 429, description = "Too many requests.", content_type = "text/html", body = String),
))]
async fn show(
    _: LinkVisitor,
    State(app): State<App>,
    connection: Option<Extension<ClientConnection>>,
    Query(AnswerLinkQuery { code }): Query<AnswerLinkQuery>,
) -> Response {
    let Some(link) = app.access.find_answer_link(&code) else { return refused(&app, connection, &code) };
    if let Some(busy) = too_many(&app, &link) {
        return busy;
    }
    match open_request(&app, &link) {
        Some(approval) => form_page(StatusCode::OK, request_page(&approval, &link, &code)),
        None => form_page(StatusCode::FORBIDDEN, expired_page()),
    }
}

/// Answers the approval request of an answer link, once
#[utoipa::path(post, path = "/answer", tag = "approvals",
    request_body(content = AnswerForm, content_type = "application/x-www-form-urlencoded"), responses(
    (status = 200, description = "The decision.", content_type = "text/html", body = String),
    (status = 403, description = "The link is used, expired or invalid.", content_type = "text/html", body = String),
    (status = 409, description = "The request has changed, or was decided. A page says so.", content_type = "text/html", body = String),
    (status = 429, description = "Too many requests.", content_type = "text/html", body = String),
))]
async fn answer(
    _: LinkVisitor,
    State(app): State<App>,
    connection: Option<Extension<ClientConnection>>,
    Form(form): Form<AnswerForm>,
) -> Result<Response, ApiError> {
    let Some(link) = app.access.claim_answer_link(&form.code) else {
        return Ok(refused(&app, connection, &form.code));
    };
    // Completed also if the client disconnects, so that the link is never left in use.
    let answered = tokio::spawn(async move {
        let outcome = submit(&app, &link, &form).await;
        if let Err(AnswerFailure { is_final: false, .. }) = outcome {
            app.access.release_answer_link(&form.code);
        }
        outcome
    });
    Ok(match answered.await.map_err(ApiError::internal)? {
        Ok(decided) => form_page(StatusCode::OK, decided_page(&decided)),
        Err(AnswerFailure { message, .. }) => form_page(StatusCode::CONFLICT, failure_page(&message)),
    })
}

/// The reason why an answer does not count.
struct AnswerFailure {
    message: String,
    /// `true` if the request is decided, so that the link has no further use.
    is_final: bool,
}

async fn submit(app: &App, link: &AnswerLink, form: &AnswerForm) -> Result<DecidedApproval, AnswerFailure> {
    let again = |message: &str| AnswerFailure { message: message.to_owned(), is_final: false };
    if app.access.count_link(link).is_err() {
        return Err(again("Too many requests. Wait a moment, then open the link again."));
    }
    let Some(approval) = open_request(app, link) else {
        return Err(again("The request is not open. Its session may be reconnecting: open the link again."));
    };
    let digest = approval.digest.to_string();
    if !bool::from(digest.as_bytes().ct_eq(form.digest.as_bytes())) {
        return Err(again("The page showed another request. Open the link again."));
    }
    let effect = match form.answer {
        LinkAnswer::AllowOnce => Effect::AllowOnce,
        LinkAnswer::Deny => Effect::Deny,
    };
    let Some(label) = label(&approval, effect) else {
        return Err(again("The request does not offer this answer. Open the link again."));
    };
    let answer = ApprovalAnswer::by(label, &link.name, "link");
    let answer = if form.reason.trim().is_empty() { answer } else { answer.because(form.reason.trim()) };
    let submitted = SubmittedAnswer { answer, nonce: form.nonce.clone(), scope: AnswerScope::Once };
    let decided = app.answer(&approval.id, submitted).await.map_err(|error: HubError| {
        use HubErrorCode::{Answered, Closed, Late};
        AnswerFailure { is_final: matches!(error.code, Answered | Closed | Late), message: error.message }
    })?;
    app.access.end_answer_links(&approval.id);
    app.access.touch_by_link(link);
    Ok(decided)
}

/// Returns the open request of a link, if it is the same as the one that the link was made for.
fn open_request(app: &App, link: &AnswerLink) -> Option<Arc<OpenApproval>> {
    app.hub.approval(&link.request).filter(|approval| link.is_for(approval) && Timestamp::now() < approval.deadline)
}

/// Returns the label of the first option with exactly this effect: none that lasts stands in for one that does not.
fn label(approval: &OpenApproval, effect: Effect) -> Option<&str> {
    approval.options.iter().find(|option| option.effect == effect).map(|option| option.label.as_str())
}

/// Refuses a secret. A wrong one is counted; that of a used link is not: the second press of a button is no attack.
fn refused(app: &App, connection: Option<Extension<ClientConnection>>, code: &str) -> Response {
    let counted = match app.access.known_answer_link(code) {
        Some(link) => app.access.count_link(&link),
        None => app.access.count_wrong_secret(connection.as_deref()),
    };
    match counted {
        Ok(()) => form_page(StatusCode::FORBIDDEN, expired_page()),
        Err(wait) => busy(wait.as_secs()),
    }
}

fn too_many(app: &App, link: &AnswerLink) -> Option<Response> {
    app.access.count_link(link).err().map(|wait| busy(wait.as_secs()))
}

fn busy(seconds: u64) -> Response {
    let mut response = form_page(StatusCode::TOO_MANY_REQUESTS, failure_page("Too many requests. Wait a moment."));
    response.headers_mut().insert(RETRY_AFTER, (seconds + 1).into());
    response
}

/// Returns a page whose form may be sent. Search engines and previews must not keep it.
fn form_page(status: StatusCode, content: Markup) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow, noarchive"));
    let mut response = (status, headers, Html(content.into_string())).into_response();
    response.extensions_mut().insert(Page);
    response.extensions_mut().insert(FormPage);
    response
}

fn expired_page() -> Markup {
    page(
        "This link is used or expired",
        html! {
            h1 { "This link is used or expired" }
            p { "A link answers one approval request, once, while the request is open." }
        },
    )
}

fn failure_page(message: &str) -> Markup {
    page("Not answered", html! { h1 { "Not answered" } p { (shown(message, EscapeMode::Exact)) } })
}

fn decided_page(decided: &DecidedApproval) -> Markup {
    let title = if decided.granted { "Allowed once" } else { "Denied" };
    page(title, html! { h1 { (title) } p { (shown(&decided.prompt, EscapeMode::Exact)) } })
}

/// Shows the operation first, and the answers below it.
fn request_page(approval: &OpenApproval, link: &AnswerLink, code: &str) -> Markup {
    let left = approval.deadline.duration_since(Timestamp::now()).as_secs();
    let then = if approval.default == DefaultDecision::Allow { "allowed" } else { "denied" };
    let exact = |text: &str| shown(text, EscapeMode::Exact);
    let session = approval.session_name.as_ref().unwrap_or(&approval.session);
    page(
        "Approval request",
        html! {
            h1 { "Approval request" }
            p.about { "Hook " code { (exact(&approval.hook)) } " requests approval in " (exact(session)) "." }
            h2 { (exact(&approval.prompt)) }
            @if let Some(reason) = &approval.reason { p { (shown(reason, EscapeMode::Lines)) } }
            @if let Some(warning) = &approval.warning { p.warning { (exact(warning)) } }
            (operation(&approval.preview))
            table.facts {
                tr { th { "Event" } td { code { (exact(approval.event.as_str())) } } }
                tr { th { "Folder" } td { code { (exact(&approval.workspace)) } } }
                tr { th { "Session" } td { code { (exact(&approval.session)) } } }
                tr { th { "Digest" } td { code { (approval.digest) } } }
                tr { th { "Deadline" } td { (format!("{:.0}", approval.deadline)) ", in " (left) " s; then " (then) } }
            }
            (answers(approval, link, code))
        },
    )
}

fn operation(preview: &ActionPreview) -> Markup {
    let ActionPreview { title, target, summary, warnings, body, fields, .. } = preview;
    let exact = |text: &str| shown(text, EscapeMode::Exact);
    html! {
        section.operation aria-label="Operation" {
            p {
                strong { (exact(title)) }
                @if let Some(target) = target { " " code { (exact(target)) } }
                @if let Some(summary) = summary { " " span.about { (exact(summary)) } }
            }
            @for warning in warnings { p.warning { (exact(warning)) } }
            @if !body.is_empty() { pre { @for row in body { (line(row)) } } }
            @if !fields.is_empty() {
                table { @for field in fields { tr { th { (exact(&field.name)) } td { code { (exact(&field.value)) } } } } }
            }
        }
    }
}

/// A line of the operation, with a sign, so that nothing depends on colours.
fn line(row: &PreviewRow) -> Markup {
    let (class, sign) = match row.kind {
        PreviewRowKind::Plain => ("plain", ""),
        PreviewRowKind::Context => ("context", "  "),
        PreviewRowKind::Added => ("added", "+ "),
        PreviewRowKind::Removed => ("removed", "- "),
        PreviewRowKind::Gap => ("gap", "⋯ "),
        PreviewRowKind::Note => ("note", "! "),
    };
    html! { span class=(class) { (sign) (shown(&row.text, EscapeMode::Exact)) "\n" } }
}

fn answers(approval: &OpenApproval, link: &AnswerLink, code: &str) -> Markup {
    let (allow, deny) = (label(approval, Effect::AllowOnce), label(approval, Effect::Deny));
    html! {
        form.answers method="post" action="/answer" autocomplete="off" {
            input type="hidden" name="code" value=(code);
            input type="hidden" name="nonce" value=(approval.nonce);
            input type="hidden" name="digest" value=(approval.digest);
            @if deny.is_some() {
                label for="reason" { "Reason for a denial (optional; the model reads it)" }
                input type="text" id="reason" name="reason" maxlength=(ApprovalAnswer::MAX_REASON_CHARS);
                button type="submit" name="answer" value="deny" { "Deny" }
            }
            @if allow.is_some() { button type="submit" name="answer" value="allow_once" { "Allow once" } }
            @if allow.is_none() { p { "This request cannot be allowed once. Open the console to answer it." } }
            p.about { "Your answer is recorded as " strong { (shown(&link.name, EscapeMode::Exact)) } ", by link." }
        }
    }
}

/// Renders a text from outside, with marks for characters that hide or reorder others.
fn shown(text: &str, mode: EscapeMode) -> Markup {
    html! {
        @for piece in pieces(text, mode) {
            @match piece {
                Piece::Shown(text) => (text),
                Piece::StandIn(text) => mark { (text) },
            }
        }
    }
}
