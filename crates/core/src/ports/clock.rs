//! Time: read by the kernel, paused by tests.

use std::future::Future;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Where the kernel takes its time from.
pub trait Clock: Send + Sync + 'static {
    /// The time of day.
    fn wall(&self) -> SystemTime;

    /// Nanoseconds since some fixed moment; never goes back.
    fn nanos(&self) -> u64;

    /// Nanoseconds as [`sleep`](Clock::sleep) counts them, where that is another clock (as when tokio's is paused).
    fn sleep_nanos(&self) -> u64 {
        self.nanos()
    }

    /// Waits. Dropping the future ends the waiting.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Told when a person is asked; the question is open until what it gives is dropped. For clocks that know more about who waits
    /// for the answer than the stack of a thread says.
    fn begin_person_wait(&self) -> Option<Box<dyn Send>> {
        None
    }

    /// How long people have held up everything on this thread so far, where an approval system may block it. That time counts for no hook.
    fn blocked_nanos(&self) -> u64 {
        0
    }
}

impl<T: Clock + ?Sized> Clock for Arc<T> {
    fn wall(&self) -> SystemTime {
        T::wall(self)
    }

    fn nanos(&self) -> u64 {
        T::nanos(self)
    }

    fn sleep_nanos(&self) -> u64 {
        T::sleep_nanos(self)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        T::sleep(self, duration)
    }

    fn begin_person_wait(&self) -> Option<Box<dyn Send>> {
        T::begin_person_wait(self)
    }

    fn blocked_nanos(&self) -> u64 {
        T::blocked_nanos(self)
    }
}

/// The clock of the machine. Waits on tokio's timer, or on one of its own where there is none.
#[derive(Clone, Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { counter: quanta::Clock::new(), origin: Instant::now() }
    }
}

impl SystemClock {
    /// The clock of the machine.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    // The processor's counter: a third of the price of asking the system, and every hook is timed.
    fn nanos(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }

    fn sleep_nanos(&self) -> u64 {
        let since = tokio::time::Instant::now().into_std().saturating_duration_since(self.origin);
        since.as_nanos().try_into().unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // Asking for tokio's timer panics where the runtime has none.
        let tokio = tokio::runtime::Handle::try_current().is_ok();
        match catch_unwind(|| tokio.then(|| tokio::time::sleep(duration))) {
            Ok(Some(sleep)) => Box::pin(sleep),
            _ => Box::pin(futures_timer::Delay::new(duration)),
        }
    }
}
