//! Blocking work on a separate thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ToolError;

/// A flag that asks blocking work to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Returns `true` after the future was dropped.
    pub(super) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs blocking work on a separate thread.
///
/// # Cancel safety
/// Dropping the future asks the work to stop, or keeps it from starting.
pub(super) async fn blocking<T, W>(work: W) -> Result<T, ToolError>
where
    T: Send + 'static,
    W: FnOnce(&StopFlag) -> Result<T, ToolError> + Send + 'static,
{
    let stop = StopFlag::default();
    let _stop_on_drop = StopOnDrop(stop.clone());
    let work = move || if stop.requested() { Err(ToolError::Failed("stopped".to_owned())) } else { work(&stop) };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::Failed(format!("the tool panicked: {error}"))),
    }
}
