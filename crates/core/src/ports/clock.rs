//! The port for clocks, which tests can pause.

use std::future::Future;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The kernel's source of time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time of day.
    fn wall(&self) -> SystemTime;

    /// Returns the nanoseconds since a fixed moment; never goes back.
    fn nanos(&self) -> u64;

    /// Returns the nanoseconds as counted by [`sleep`](Clock::sleep), if that is another clock (such as a paused tokio clock).
    fn sleep_nanos(&self) -> u64 {
        self.nanos()
    }

    /// Waits. Dropping the future ends the wait.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Begins a wait for a user; dropping the returned value ends it. For clocks that know more about the waiting tasks than a thread's stack
    /// shows.
    fn begin_person_wait(&self) -> Option<Box<dyn Send>> {
        None
    }

    /// Returns the time for which approval systems have blocked this thread so far. It does not count for the time limits of hooks.
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

/// The machine's clock. Waits on tokio's timer, or on its own if there is no runtime.
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
    /// Creates the machine's clock.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    // The processor's counter: three times as fast as a system call, and every hook is timed.
    fn nanos(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }

    fn sleep_nanos(&self) -> u64 {
        let since = tokio::time::Instant::now().into_std().saturating_duration_since(self.origin);
        since.as_nanos().try_into().unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // tokio's timer panics if the runtime has none.
        let tokio = tokio::runtime::Handle::try_current().is_ok();
        match catch_unwind(|| tokio.then(|| tokio::time::sleep(duration))) {
            Ok(Some(sleep)) => Box::pin(sleep),
            _ => Box::pin(futures_timer::Delay::new(duration)),
        }
    }
}
