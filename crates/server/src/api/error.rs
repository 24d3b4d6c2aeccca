//! Errors of the API, in one form.

use amplifier_core::Actor;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::api_types::{ErrorDetails, ErrorResponse};
use crate::hub::{HubError, HubErrorCode};

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// Error code for programs.
    pub code: &'static str,
    /// The problem, and what to do.
    pub message: String,
    /// The approver who was faster.
    pub by: Option<Actor>,
}

impl ApiError {
    /// Creates an error.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), by: None }
    }

    /// Returns a "not found" error.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Returns an error for an invalid body.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "body", message)
    }

    /// Converts a hub error; a request that the machine refuses gets this code.
    pub fn refused_by_machine(code: &'static str) -> impl FnOnce(HubError) -> Self {
        move |error| match error.code {
            HubErrorCode::Refused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.message),
            _ => error.into(),
        }
    }

    /// Returns a conflict with the current state.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// Returns an internal error. Its cause is logged, and not sent.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        Self::from_status(StatusCode::INTERNAL_SERVER_ERROR, None)
    }

    pub(crate) fn too_large() -> Self {
        Self::from_status(StatusCode::PAYLOAD_TOO_LARGE, None)
    }

    /// Returns the default error of a status, with a text from elsewhere if there is one.
    pub(crate) fn from_status(status: StatusCode, text: Option<String>) -> Self {
        let (code, message) = match status {
            StatusCode::BAD_REQUEST => ("request", "invalid request"),
            StatusCode::NOT_FOUND => ("not_found", "not found; see `/api` for the routes"),
            StatusCode::METHOD_NOT_ALLOWED => ("method", "method not allowed; see the header `Allow`"),
            StatusCode::REQUEST_TIMEOUT => ("slow", "the body did not arrive in time"),
            StatusCode::PAYLOAD_TOO_LARGE => ("too_large", "the body is larger than 1 MiB"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("content_type", "invalid content type; send JSON with the header `Content-Type: application/json`")
            }
            StatusCode::UNPROCESSABLE_ENTITY => ("body", "invalid body"),
            StatusCode::UPGRADE_REQUIRED => ("upgrade", "this route requires a WebSocket"),
            status if status.is_server_error() => ("failed", "internal error; see the server's log"),
            _ => ("refused", "request refused"),
        };
        Self::new(status, code, text.unwrap_or_else(|| message.to_owned()))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message, by } = self;
        let failure = ErrorResponse { error: ErrorDetails { code: code.to_owned(), message, by } };
        (status, axum::Json(failure)).into_response()
    }
}

impl From<HubError> for ApiError {
    fn from(HubError { code, message, by, .. }: HubError) -> Self {
        let (status, code) = match code {
            HubErrorCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            HubErrorCode::Nonce => (StatusCode::FORBIDDEN, "nonce"),
            HubErrorCode::Answered => (StatusCode::CONFLICT, "answered"),
            HubErrorCode::Late => (StatusCode::CONFLICT, "late"),
            HubErrorCode::Closed => (StatusCode::CONFLICT, "closed"),
            HubErrorCode::InvalidOption => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_option"),
            HubErrorCode::InvalidRule => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_rule"),
            HubErrorCode::NoPrompts => (StatusCode::UNPROCESSABLE_ENTITY, "no_prompts"),
            HubErrorCode::Busy => (StatusCode::CONFLICT, "busy"),
            HubErrorCode::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too_many"),
            HubErrorCode::Offline => (StatusCode::GATEWAY_TIMEOUT, "session_offline"),
            HubErrorCode::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "session_timeout"),
            HubErrorCode::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            HubErrorCode::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        Self { status, code, message, by }
    }
}

/// Appends the innermost cause to a message.
fn with_cause(wrong: &str, rejection: &dyn std::error::Error) -> String {
    let cause = std::iter::successors(rejection.source(), |error| error.source()).last();
    cause.map_or_else(|| wrong.to_owned(), |cause| format!("{wrong}: {cause}"))
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        match rejection {
            JsonRejection::JsonDataError(_) => Self::unusable(with_cause("invalid body", &rejection)),
            JsonRejection::JsonSyntaxError(_) => Self::unusable(with_cause("invalid JSON in the body", &rejection)),
            rejection if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Self::too_large(),
            // The body ended early or took too long; a client that has left does not read this.
            JsonRejection::BytesRejection(_) => Self::from_status(StatusCode::REQUEST_TIMEOUT, None),
            rejection => Self::from_status(rejection.status(), None),
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        let message = with_cause("invalid query", &rejection);
        Self::new(StatusCode::BAD_REQUEST, "query", message)
    }
}

/// A JSON body, as axum's, with the API's error form. Must follow the role in a handler's arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let axum::Json(value) = axum::Json::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// Query parameters, as axum's, with the API's error form.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let axum::extract::Query(value) = axum::extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

/// Marks an error response that is an HTML page, and is not converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page;
