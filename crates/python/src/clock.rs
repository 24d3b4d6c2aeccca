//! Time of the caller's event loop.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use amplifier_core::Clock;
use pyo3::intern;
use pyo3::prelude::*;

use crate::bridge::{Alarm, AlarmCallback};
use crate::person_wait::{self, OpenPrompt};
use crate::timer::{running_loop, seconds};

/// A clock that waits on the running event loop.
pub(crate) struct LoopClock {
    origin: Instant,
}

impl LoopClock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for LoopClock {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn nanos(&self) -> u64 {
        self.origin.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
    }

    fn sleep_nanos(&self) -> u64 {
        loop_nanos().unwrap_or_else(|| self.nanos())
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Sleep { duration, alarm: Alarm::default(), handle: None })
    }

    fn begin_person_wait(&self) -> Option<Box<dyn Send>> {
        Python::attach(|py| match OpenPrompt::open(py) {
            Ok(asked) => asked.map(|asked| Box::new(asked) as Box<dyn Send>),
            Err(error) => {
                error.write_unraisable(py, None);
                None
            }
        })
    }

    fn blocked_nanos(&self) -> u64 {
        person_wait::blocked_nanos()
    }
}

pub(crate) fn loop_nanos() -> Option<u64> {
    let time = Python::attach(|py| running_loop(py)?.call_method0(intern!(py, "time")).ok()?.extract::<f64>().ok());
    time.map(|seconds| (seconds * 1e9) as u64)
}

/// A wait on the loop. Without a loop, the wait never ends: nothing else can be awaited either.
struct Sleep {
    duration: Duration,
    alarm: Alarm,
    handle: Option<Py<PyAny>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.alarm.has_rung() {
            return Poll::Ready(());
        }
        self.alarm.wakes(context);
        if self.handle.is_none() {
            let (delay, wake) = (seconds(self.duration), AlarmCallback(self.alarm.clone()));
            self.handle = Python::attach(|py| {
                let handle = running_loop(py)?.call_method1(intern!(py, "call_later"), (delay, wake));
                handle.inspect_err(|error| error.clone_ref(py).write_unraisable(py, None)).ok().map(Bound::unbind)
            });
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take().filter(|_| !self.alarm.has_rung()) {
            Python::attach(|py| {
                if let Err(error) = handle.bind(py).call_method0(intern!(py, "cancel")) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}
