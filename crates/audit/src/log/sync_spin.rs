//! Spinning before a sleep.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Spins for about the time of a sync before parking, if only one thread waits: on a fast disk, waking a thread takes longer than the sync.
/// Other tasks run in between. Several waiters wake one another fast enough.
#[derive(Default)]
pub(super) struct SyncSpin {
    /// The expected time of a sync, in nanoseconds; zero to disable spinning.
    time: AtomicU64,
}

impl SyncSpin {
    /// Sets the expected time, from the number of waiters and the duration of the last sync. A sync above the limit is not worth spinning.
    pub(super) fn expect(&self, waiters: usize, sync: Duration, limit: Duration) {
        let time = if waiters == 1 && sync <= limit { 2 * sync.as_nanos() } else { 0 };
        self.time.store(u64::try_from(time).unwrap_or(0), Ordering::Relaxed);
    }

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
