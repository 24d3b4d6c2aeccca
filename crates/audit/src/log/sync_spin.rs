//! Staying awake for what comes soon.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Whoever waits alone for a sync keeps its thread awake for about as long as one takes: on a fast disk, a thread that fell asleep is
/// woken no faster than the disk is done. Other tasks run in between. Where several wait, they wake one another fast enough.
#[derive(Default)]
pub(super) struct SyncSpin {
    /// How long an answer is likely to take, in nanoseconds. None is kept where that is zero.
    time: AtomicU64,
}

impl SyncSpin {
    /// So many are about to get an answer, after a sync that took so long.
    pub(super) fn expect(&self, waiters: usize, sync: Duration) {
        let time = if waiters == 1 { 2 * sync.as_nanos() } else { 0 };
        self.time.store(u64::try_from(time).unwrap_or(0), Ordering::Relaxed);
    }

    /// Waits for an answer.
    pub(super) async fn wait<F: Future>(&self, answer: F) -> F::Output {
        let time = Duration::from_nanos(self.time.load(Ordering::Relaxed));
        let until = (!time.is_zero()).then(|| Instant::now() + time);
        let mut answer = pin!(answer);
        poll_fn(|context| {
            let polled = answer.as_mut().poll(context);
            if polled.is_pending() && until.is_some_and(|until| Instant::now() < until) {
                context.waker().wake_by_ref();
            }
            polled
        })
        .await
    }
}
