//! The time limit of the current call, for approval requests.

use std::future::Future;
use std::time::{Duration, Instant};

tokio::task_local! {
    /// The end of the current call. Calls of one session have limits of their own, so the session cannot hold it.
    static END: Instant;
}

/// The most time that is kept for the answer after an approval request.
const RESERVE: Duration = Duration::from_secs(2);

/// Runs a call that must be answered within a limit.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    END.scope(Instant::now() + limit.saturating_sub(RESERVE.min(limit / 4)), call).await
}

/// Returns the time that is left for a user's answer.
pub(super) fn left_for_user() -> Duration {
    END.try_with(|end| end.saturating_duration_since(Instant::now())).unwrap_or_default()
}
