//! A clock for replays.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use amplifier_core::{Clock, SystemClock};

/// A clock that shows the time at which an event was recorded. Durations of hooks use the machine's clock. Cheap to clone;
/// clones share state.
#[derive(Clone, Debug)]
pub(super) struct RecordedClock {
    machine: SystemClock,
    /// Recorded time in microseconds since 1970.
    shown: Arc<AtomicU64>,
}

impl RecordedClock {
    pub(super) fn new() -> Self {
        Self { machine: SystemClock::new(), shown: Arc::default() }
    }

    pub(super) fn show(&self, at: SystemTime) {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.shown.store(since.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Clock for RecordedClock {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.shown.load(Ordering::Relaxed))
    }

    fn nanos(&self) -> u64 {
        self.machine.nanos()
    }

    fn sleep_nanos(&self) -> u64 {
        self.machine.sleep_nanos()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.machine.sleep(duration)
    }
}
