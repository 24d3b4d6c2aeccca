//! Pauses a hook's time limit while the hook waits for a user.
//!
//! A hook may emit an event that leads to an approval request, and await the verdict. The wait then registers with the hooks
//! on its thread's stack. Waits in other tasks of a hook count only if the clock knows about tasks.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::contain;
use crate::ports::BoxFuture;
use crate::ports::clock::Clock;

thread_local! {
    /// Waits on this thread that began inside a hook and have not been passed to it yet.
    static OPEN_WAITS: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// A wait for a user, which ends on drop.
#[derive(Debug)]
#[must_use = "the wait ends when it is dropped"]
pub struct PersonWait(Arc<AtomicBool>);

impl PersonWait {
    /// Begins a wait, and registers it with the hooks on the stack.
    pub fn open() -> Self {
        let open = Arc::new(AtomicBool::new(true));
        if contain::is_inside() {
            OPEN_WAITS.with_borrow_mut(|asked| {
                asked.retain(|open| open.load(Ordering::Relaxed));
                asked.push(open.clone());
            });
        }
        Self(open)
    }
}

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Marks the time of a future as a wait for a user.
pub(crate) async fn waiting_for_person<F: Future>(clock: &dyn Clock, future: F) -> F::Output {
    let _open = (PersonWait::open(), clock.begin_person_wait());
    future.await
}

/// The waits for users inside one hook, while it runs in [`contain`](crate::driving::contain).
#[derive(Debug, Default)]
pub struct PersonWaits {
    asked: Vec<Arc<AtomicBool>>,
}

impl PersonWaits {
    /// Returns `true` if the hook waits for a user, so that its time limit is paused. Call it right after running the hook.
    pub fn is_any_open(&mut self) -> bool {
        OPEN_WAITS.with_borrow_mut(|asked| {
            // The hooks around this one wait, too.
            let heard = if contain::is_inside() { asked.clone() } else { std::mem::take(asked) };
            self.asked.extend(heard);
        });
        self.asked.retain(|open| open.load(Ordering::Relaxed));
        !self.asked.is_empty()
    }
}

/// The time limit of a hook, which can be paused.
pub(super) struct HookTimer<'a> {
    clock: &'a dyn Clock,
    left: Duration,
    armed: Option<RunningTimer>,
}

struct RunningTimer {
    /// The start, and the blocked time until then.
    since: (u64, u64),
    sleep: BoxFuture<'static, ()>,
}

impl RunningTimer {
    fn new(clock: &dyn Clock, left: Duration) -> Self {
        Self { since: (clock.sleep_nanos(), clock.blocked_nanos()), sleep: clock.sleep(left) }
    }

    fn held_up(&self, clock: &dyn Clock) -> u64 {
        clock.blocked_nanos().saturating_sub(self.since.1)
    }

    fn used(&self, clock: &dyn Clock) -> Duration {
        Duration::from_nanos(clock.sleep_nanos().saturating_sub(self.since.0).saturating_sub(self.held_up(clock)))
    }
}

impl<'a> HookTimer<'a> {
    pub(super) fn new(clock: &'a dyn Clock, limit: Duration) -> Self {
        Self { clock, left: limit, armed: Some(RunningTimer::new(clock, limit)) }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (clock, left) = (self.clock, self.left);
        let armed = self.armed.get_or_insert_with(|| RunningTimer::new(clock, left));
        match armed.sleep.as_mut().poll(context) {
            Poll::Ready(()) if armed.held_up(clock) > 0 => {
                self.pause();
                self.poll(context)
            }
            polled => polled,
        }
    }

    pub(super) fn pause(&mut self) {
        if let Some(armed) = self.armed.take() {
            self.left = self.left.saturating_sub(armed.used(self.clock));
        }
    }
}
