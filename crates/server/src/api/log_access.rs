//! Limited access to the audit log.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::error::ApiError;
use crate::access::guard::{Caller, Refusal};
use crate::fair_semaphore::{FairSemaphore, Permit, UserQueue};
use crate::feed::FeedError;

/// Limit of concurrent readers. Reading a long log keeps a disk and a processor busy.
pub(super) const AT_ONCE: usize = 8;
/// Retry delay.
const AGAIN: Duration = Duration::from_secs(1);

/// A user's permission to read the log, within the limits.
#[derive(Clone, Debug)]
pub(super) struct LogAccess(UserQueue);

impl LogAccess {
    pub(super) async fn acquire(&self) -> Result<Permit, Refusal> {
        let permit = self.0.acquire().await;
        permit.ok_or_else(|| Refusal::too_many("too many requests read the audit log", AGAIN))
    }

    /// Runs a blocking read with a permit, which is held until the end also if the client disconnects.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, FeedError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.acquire().await?;
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read()
        });
        match reading.await {
            Ok(read) => Ok(read.map_err(ApiError::from)?),
            Err(error) => Err(ApiError::internal(error).into()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for LogAccess {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let semaphore = parts.extensions.get::<FairSemaphore>();
        let who = parts.extensions.get::<Caller>().and_then(|caller| caller.who.as_ref().ok());
        let semaphore = semaphore.ok_or_else(|| ApiError::from_status(StatusCode::INTERNAL_SERVER_ERROR, None))?;
        Ok(Self(semaphore.for_user(who.map(|who| who.actor()))))
    }
}
