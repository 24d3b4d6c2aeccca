//! Time: read by the kernel, paused by tests.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

/// Where the kernel takes its time from.
pub trait Clock: Send + Sync + 'static {
    /// The time of day.
    fn wall(&self) -> SystemTime;

    /// Nanoseconds since some fixed moment; never goes back.
    fn nanos(&self) -> u64;

    /// Waits. Dropping the future ends the waiting.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The clock of the machine. Waits on tokio's timer, or on a thread of its own where no tokio runtime is.
#[derive(Clone, Debug, Default)]
pub struct SystemClock {
    counter: quanta::Clock,
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

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Box::pin(tokio::time::sleep(duration));
        }
        let (done, waiting) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(duration);
            let _ = done.send(());
        });
        Box::pin(async {
            let _ = waiting.await;
        })
    }
}
