//! Extractors that require a role.

use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};

use super::guard::{BODY_LIMIT, Caller, Refusal, is_safe};
use super::{Identity, Role};
use crate::api::error::ApiError;

/// A user who may read.
#[derive(Clone, Debug)]
pub struct Viewer(pub Identity);

/// A user who may answer approval requests.
#[derive(Clone, Debug)]
pub struct Approver(pub Identity);

/// A user who may do everything.
#[derive(Clone, Debug)]
pub struct Admin(pub Identity);

/// Any client, except the page of another server.
#[derive(Clone, Copy, Debug)]
pub struct Public;

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        authorize(parts, Role::Viewer).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Approver {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        authorize(parts, Role::Approver).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        authorize(parts, Role::Admin).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Public {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        caller(parts)?.origin.clone().map(|()| Self)
    }
}

/// Returns the caller if the role is sufficient. The body is checked afterwards, so that a refused caller learns
/// nothing about bodies.
fn authorize(parts: &Parts, needed: Role) -> Result<Identity, Refusal> {
    let Caller { origin, who } = caller(parts)?;
    origin.clone()?;
    let who = who.clone()?;
    if who.role < needed {
        let message = format!(
            "role `{needed}` required, but yours is `{}`; `amplifier serve link --role {needed}` creates a link with that role",
            who.role
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, "role", message).into());
    }
    if !is_safe(&parts.method) {
        check_body(parts)?;
    }
    Ok(who)
}

pub(super) fn caller(parts: &Parts) -> Result<&Caller, Refusal> {
    // Without the guard no caller is known, so every request is refused.
    let missing = || ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", "not authenticated").into();
    parts.extensions.get::<Caller>().ok_or_else(missing)
}

/// Checks content type and declared length. Longer bodies, and those of unknown length, end while they are read.
fn check_body(parts: &Parts) -> Result<(), ApiError> {
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let has_body = length.is_some_and(|length| length > 0) || parts.headers.contains_key(TRANSFER_ENCODING);
    let mut types = parts.headers.get_all(CONTENT_TYPE).iter();
    let is_json = match (types.next(), types.next()) {
        (None, _) => !has_body,
        (Some(only), None) => is_json(only),
        (Some(_), Some(_)) => false,
    };
    if !is_json {
        let message = "invalid content type; send JSON with the header `Content-Type: application/json`";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", message));
    }
    if length.is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(ApiError::too_large());
    }
    Ok(())
}

fn is_json(given: &HeaderValue) -> bool {
    let essence = given.to_str().ok().and_then(|text| text.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}
