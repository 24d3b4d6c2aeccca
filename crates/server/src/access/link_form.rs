//! The check of requests to an answer link, which works without a console and without signing in.

use axum::extract::FromRequestParts;
use axum::http::header::ORIGIN;
use axum::http::request::Parts;

use super::extract::caller;
use super::guard::{Refusal, is_safe};

/// A browser that follows an answer link, or sends the form of its page.
///
/// The secret of the link is checked by the handler. Cookies do not matter here, so a link also works from a page on
/// another port of this machine. Forms of other servers' pages are refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkVisitor;

impl<S: Sync> FromRequestParts<S> for LinkVisitor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let origin = caller(parts)?.origin.clone();
        let is_followed = is_safe(&parts.method) && !parts.headers.contains_key(ORIGIN);
        if is_followed || is_own_form(parts) { Ok(Self) } else { origin.map(|()| Self) }
    }
}

/// Returns `true` for the form of the link's own page. The page sends no referrer, so browsers hide the origin of its
/// form, and tell by another header that both are the same.
fn is_own_form(parts: &Parts) -> bool {
    let only = |name: &str, value: &str| {
        let mut given = parts.headers.get_all(name).iter();
        matches!((given.next(), given.next()), (Some(one), None) if one == value)
    };
    only("origin", "null") && only("sec-fetch-site", "same-origin")
}
