//! A clock that tests advance.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use crate::ports::BoxFuture;
use crate::ports::clock::Clock;
use crate::sync::{Mutex, lock};

/// A clock that a test advances. A handle: clones show the same time.
///
/// ```
/// # use std::time::Duration;
/// use amplifier_core::{data, testing::ManualClock, HookRegistry, HookError, TOOL_PRE};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let clock = ManualClock::new();
/// let hooks = HookRegistry::builder().clock(clock.clone()).build();
/// hooks.on(TOOL_PRE, |_| std::future::pending::<()>());
///
/// let emission = tokio::spawn({
///     let hooks = hooks.clone();
///     async move { hooks.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await }
/// });
/// clock.advance_when_waiting(Duration::from_secs(30)).await;
/// let outcome = emission.await.unwrap();
/// assert_eq!(outcome.reports().next().unwrap().error, Some(&HookError::TimedOut(Duration::from_secs(30))));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    now: Duration,
    sleeps: u64,
    sleepers: BTreeMap<u64, (Duration, Waker)>,
}

impl ManualClock {
    /// Creates a clock at the beginning of 1970.
    pub fn new() -> Self {
        Self::default()
    }

    /// Advances the time and wakes the waiting tasks.
    pub fn advance(&self, by: Duration) {
        let woken = {
            let mut state = lock(&self.state);
            state.now += by;
            let now = state.now;
            state.sleepers.extract_if(.., |_, (until, _)| *until <= now).collect::<Vec<_>>()
        };
        for (_, (_, waker)) in woken {
            waker.wake();
        }
    }

    /// Lets other tasks run until one waits for this clock, then advances the time.
    pub async fn advance_when_waiting(&self, by: Duration) {
        while lock(&self.state).sleepers.is_empty() {
            tokio::task::yield_now().await;
        }
        self.advance(by);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + lock(&self.state).now
    }

    fn nanos(&self) -> u64 {
        lock(&self.state).now.as_nanos() as u64
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = lock(&self.state);
        state.sleeps += 1;
        let until = state.now.saturating_add(duration);
        Box::pin(Sleep { id: state.sleeps, until, state: self.state.clone() })
    }
}

struct Sleep {
    id: u64,
    until: Duration,
    state: Arc<Mutex<State>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.now >= self.until {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.id, (self.until, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        lock(&self.state).sleepers.remove(&self.id);
    }
}

impl std::fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualClock").field("now", &lock(&self.state).now).finish_non_exhaustive()
    }
}
