//! Waiting for code that is not ours: with a time limit, and with panics kept inside.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};

use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::result::HookError;

/// What came of waiting.
pub(crate) enum Waited<T> {
    Done(T),
    Panicked(String),
    TimedOut,
}

pub(crate) async fn wait<F: Future + Unpin>(clock: &dyn Clock, limit: Duration, future: &mut F) -> Waited<F::Output> {
    let mut future = AssertUnwindSafe(future).catch_unwind();
    // Most answers are there at once; a timer is armed only for the others.
    let result = match poll_fn(|context| Poll::Ready(future.poll_unpin(context))).await {
        Poll::Ready(result) => result,
        Poll::Pending => match select(future, clock.sleep(limit)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => return Waited::TimedOut,
        },
    };
    match result {
        Ok(value) => Waited::Done(value),
        Err(panic) => Waited::Panicked(HookError::from_panic(panic).to_string()),
    }
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
pub(crate) struct Contained<F>(Option<F>);

impl<F> Contained<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(future))
    }
}

impl<F: Future + Unpin> Future for Contained<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().map_or(Poll::Pending, |future| Pin::new(future).poll(context))
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        drop_quietly(self.0.take());
    }
}

/// How long a port may take. Long enough for a slow disk, short enough to notice that it hangs.
const PORT_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for a port. A panic or a hanging port is an error like any other.
pub(crate) async fn port<T>(clock: &dyn Clock, call: BoxFuture<'_, Result<T, PortError>>) -> Result<T, PortError> {
    let mut call = Contained::new(call);
    match wait(clock, PORT_TIMEOUT, &mut call).await {
        Waited::Done(result) => result,
        Waited::Panicked(what) => Err(what.into()),
        Waited::TimedOut => Err(format!("gave no answer within {PORT_TIMEOUT:?}").into()),
    }
}
