//! Calls of foreign code, with a time limit and with panics caught.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::result::HookError;

pub(crate) enum WaitResult<T> {
    Done(T),
    Panicked(String),
    TimedOut,
}

pub(crate) async fn wait<F: Future + Unpin>(
    clock: &dyn Clock,
    limit: Duration,
    future: &mut F,
) -> WaitResult<F::Output> {
    let mut poll = |context: &mut Context<'_>| match contain(|| Pin::new(&mut *future).poll(context)) {
        Ok(Poll::Ready(value)) => Poll::Ready(WaitResult::Done(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(error) => Poll::Ready(WaitResult::Panicked(error.to_string())),
    };
    // Most futures are ready at once; a timer is armed only for the others.
    if let Poll::Ready(waited) = poll_fn(|context| Poll::Ready(poll(context))).await {
        return waited;
    }
    let mut timer = clock.sleep(limit);
    poll_fn(|context| match poll(context) {
        Poll::Pending => timer.as_mut().poll(context).map(|()| WaitResult::TimedOut),
        ready => ready,
    })
    .await
}

/// Hooks and ports may emit. At this depth, recursion is stopped before it exhausts the stack.
const DEEPEST: u32 = 16;

thread_local! {
    /// Number of nested hooks and ports on this thread's stack.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// Runs foreign code; a panic or endless nesting becomes an error.
///
/// # Errors
/// If the code panics, or is nested too deeply on this thread's stack.
#[inline]
pub fn contain<T>(piece: impl FnOnce() -> T) -> Result<T, HookError> {
    contain_or(|| Ok(piece()), Err)
}

/// Does the same for code whose value can hold the error.
#[inline]
pub(crate) fn contain_or<T>(piece: impl FnOnce() -> T, failed: impl FnOnce(HookError) -> T) -> T {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        return failed(HookError::Failed(format!("called from inside {DEEPEST} other hooks")));
    }
    DEPTH.set(depth + 1);
    let result = catch_unwind(AssertUnwindSafe(piece));
    DEPTH.set(depth);
    result.unwrap_or_else(|panic| failed(HookError::from_panic(panic)))
}

/// Drops a foreign value, whose `drop` may panic.
pub(crate) fn drop_quietly<T>(value: T) {
    quietly(|| drop(value));
}

pub(crate) fn quietly(drops: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drops)) {
        // The panic payload may panic again when dropped; that has to end somewhere.
        std::mem::forget(panic);
    }
}

/// A future whose `drop` may panic without effect, also when its waiter is cancelled.
pub(crate) struct ContainedFuture<F>(Option<F>);

impl<F> ContainedFuture<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(future))
    }
}

impl<F: Future + Unpin> Future for ContainedFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().map_or(Poll::Pending, |future| Pin::new(future).poll(context))
    }
}

impl<F> Drop for ContainedFuture<F> {
    fn drop(&mut self) {
        drop_quietly(self.0.take());
    }
}

/// Time limit of a port: long enough for a slow disk, short enough to notice a hang.
const PORT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
#[error("gave no answer within {PORT_TIMEOUT:?}")]
pub(crate) struct PortTimeout;

/// Waits for a port. A panic or a hang is an error like any other.
pub(crate) async fn port<T>(clock: &dyn Clock, call: BoxFuture<'_, Result<T, PortError>>) -> Result<T, PortError> {
    let mut call = ContainedFuture::new(call);
    match wait(clock, PORT_TIMEOUT, &mut call).await {
        WaitResult::Done(result) => result,
        WaitResult::Panicked(what) => Err(what.into()),
        WaitResult::TimedOut => Err(Box::new(PortTimeout)),
    }
}
