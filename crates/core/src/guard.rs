//! Waiting for code that is not ours: with a time limit, and with panics kept inside.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::result::HookError;

/// What came of waiting.
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
    // Most answers are there at once; a timer is armed only for the others.
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

/// Hooks may emit, and so may ports. This deep, one that calls itself is stopped before it exhausts the stack.
const DEEPEST: u32 = 16;

thread_local! {
    /// How many hooks and ports are being run inside each other on this thread's stack.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether a hook or a port is being run on this thread's stack.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// Runs a piece of code that is not ours, so that a panic or endless nesting becomes an error.
///
/// # Errors
/// If it panics, or runs inside too many others on this thread's stack.
#[inline]
pub fn contain<T>(piece: impl FnOnce() -> T) -> Result<T, HookError> {
    contain_or(|| Ok(piece()), Err)
}

/// The same for a piece whose value can hold the error.
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

/// Drops a value that is not ours: its `drop` may panic, too.
pub(crate) fn drop_quietly<T>(value: T) {
    quietly(|| drop(value));
}

/// Runs a `drop` that may panic.
pub(crate) fn quietly(drops: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drops)) {
        // What comes out of here may panic again when dropped; that has to end somewhere.
        std::mem::forget(panic);
    }
}

/// A future that is dropped quietly, also when whoever waits for it is cancelled.
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

/// How long a port may take. Long enough for a slow disk, short enough to notice that it hangs.
const PORT_TIMEOUT: Duration = Duration::from_secs(30);

/// A port that gave no answer in time.
#[derive(Debug, thiserror::Error)]
#[error("gave no answer within {PORT_TIMEOUT:?}")]
pub(crate) struct PortTimeout;

/// Waits for a port. A panic or a hanging port is an error like any other.
pub(crate) async fn port<T>(clock: &dyn Clock, call: BoxFuture<'_, Result<T, PortError>>) -> Result<T, PortError> {
    let mut call = ContainedFuture::new(call);
    match wait(clock, PORT_TIMEOUT, &mut call).await {
        WaitResult::Done(result) => result,
        WaitResult::Panicked(what) => Err(what.into()),
        WaitResult::TimedOut => Err(Box::new(PortTimeout)),
    }
}
